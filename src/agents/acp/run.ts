import { isAppError, toAppError } from '../../domain/errors.ts'
import { runVariable } from '../../process/run-mark.ts'
import { runProgram } from '../../process/spawn.ts'
import type { AgentRequest, AgentResult } from '../agent.ts'
import { createReply, type ReplyText } from '../reply.ts'
import { endStrays } from '../strays.ts'
import type { AcpAgentOptions } from './options.ts'
import { failed, failureOf, type TurnEnd } from './outcome.ts'
import { takeTurn } from './turn.ts'
import { CHECK_WORKTREE } from '../texts.ts'

/** Chat messages hold at most 4,000 characters, so this already fills dozens of them. */
const REPLY_LIMIT_BYTES = 100_000
/** Only the end of stderr is shown. */
const STDERR_TAIL_BYTES = 16_000
const GRACE_MS = 2_000

export const runAcp = async (options: AcpAgentOptions, request: AgentRequest): Promise<AgentResult> => {
  if (request.untrusted && !options.forks) return notInForks(options)
  const reply = createReply(options.outputLimitBytes ?? REPLY_LIMIT_BYTES, request)
  const result = await startAndTalk(options, request, reply)
  if (result.outcome === 'cancelled') await endStrays(request.mark, options.clock)
  return result
}

const startAndTalk = async (
  options: AcpAgentOptions,
  request: AgentRequest,
  reply: ReplyText,
): Promise<AgentResult> => {
  const { command, variables, clock } = options
  const { mark } = request
  const environment = { ...request.environment, ...variables, [runVariable]: mark.id }
  const end = new AbortController()
  const [program = '', ...args] = command
  let turn: Promise<TurnEnd> | undefined
  if (request.signal.aborted) return { outcome: 'cancelled', text: '' }
  const onAbort = (): void => {
    // Once a turn exists, it cancels through the protocol first.
    if (turn === undefined) end.abort()
  }
  request.signal.addEventListener('abort', onAbort, { once: true })
  try {
    const ended = await runProgram({
      command: program,
      args,
      cwd: request.directory,
      launch: request.launch,
      env: environment,
      clock,
      signal: end.signal,
      graceMs: GRACE_MS,
      outputLimitBytes: STDERR_TAIL_BYTES,
      redact: { secrets: request.secrets, streams: ['stderr'] },
      beforeWork: request.onStart,
      mark,
      dialogue: (stdin, stdout) => {
        turn = takeTurn({ options, request, reply, environment, stdin, stdout, end })
      },
    }).catch((error: unknown) => {
      if (isAppError(error, 'cancelled')) return undefined
      throw error
    })
    return resultOf(options, request, reply, await turn, ended)
  } catch (error) {
    const fault = toAppError(error)
    if (fault.code !== 'program-failed') throw error
    return failed(reply, `${options.name} couldn't be started: ${fault.message}`, CHECK_WORKTREE)
  } finally {
    request.signal.removeEventListener('abort', onAbort)
  }
}

type Ended = Awaited<ReturnType<typeof runProgram>> | undefined

const resultOf = (
  options: AcpAgentOptions,
  request: AgentRequest,
  reply: ReplyText,
  turn: TurnEnd | undefined,
  ended: Ended,
): AgentResult => {
  // A cancelled run is reported as cancelled, however far it got.
  if (request.signal.aborted) return { outcome: 'cancelled', text: reply.end() }
  if (turn?.kind === 'done') {
    return { outcome: 'done', text: reply.end(), ...(turn.usage !== undefined && { usage: turn.usage }) }
  }
  const said = turn?.kind === 'error' ? { ...turn, message: request.secrets.redact(turn.message) } : turn
  return failureOf(options, reply, said, ended)
}

const notInForks = ({ name }: AcpAgentOptions): AgentResult => ({
  outcome: 'failed',
  text: '',
  problem: `${name} doesn't run in worktrees of forks, where a stranger's settings for it could take effect.`,
  remedy: `Use another agent (/agent), or set agent.acp.${name}.forks to true if its command ignores such settings.`,
})
