import type { Clock, Ids } from '../../domain/clock.ts'
import { isAppError, toAppError } from '../../domain/errors.ts'
import type { ProcessIdentity } from '../../domain/process-identity.ts'
import { withPrivateFile } from '../../process/files/private-file.ts'
import { runVariable } from '../../process/run-mark.ts'
import { type ProgramResult, runProgram } from '../../process/spawn.ts'
import type { Agent, AgentRequest, AgentResult } from '../agent.ts'
import { contextOf } from '../attachments.ts'
import { createReply, type ReplyText } from '../reply.ts'
import { endStrays } from '../strays.ts'
import { CHECK_WORKTREE, exitText } from '../texts.ts'

export type CommandAgentOptions = {
  /** Run through `sh -c` in the environment. */
  readonly command: string
  readonly clock: Clock
  /** For sessions. */
  readonly ids: Ids
  readonly self: ProcessIdentity
  /** Where the context file goes: private, outside every environment. */
  readonly contextDirectory: string
  readonly outputLimitBytes?: number
}

/** Chat messages hold at most 4,000 characters, so this already fills dozens of them. */
const REPLY_LIMIT_BYTES = 100_000

/** Any program: message on stdin, everything else in variables, reply on stdout. */
export const createCommandAgent = (options: CommandAgentOptions): Agent => ({
  name: 'command',
  // What a shell command needs is only known when it runs.
  availability: async () => ({ state: 'ready', version: undefined }),
  run: async (request) => {
    // A session is a name the program may store state under.
    const session = request.session ?? options.ids()
    request.emit({ type: 'session', id: session })
    const reply = createReply(options.outputLimitBytes ?? REPLY_LIMIT_BYTES, request)
    const { contextDirectory: directory, self } = options
    const context = { directory, self, name: 'context.md', text: contextOf(request) ?? '' }
    return withPrivateFile(context, async (file) => {
      try {
        const ended = await runProgram({
          ...program(options, request),
          env: variables(request, session, file),
          onOutput: (text, stream) => {
            if (stream === 'stdout') reply.add(text)
          },
        })
        return result(ended, reply, request)
      } catch (error) {
        if (isAppError(error, 'cancelled')) await endStrays(request.mark, options.clock)
        return failedResult(error, reply)
      }
    })
  },
})

/** Only the end of stderr is shown; stdout is consumed as it arrives. */
const STDERR_TAIL_BYTES = 16_000

const program = (
  { command, clock }: CommandAgentOptions,
  { directory, launch, prompt, signal, secrets, onStart, mark }: AgentRequest,
) => ({
  shell: command,
  cwd: directory,
  launch,
  clock,
  stdin: prompt,
  signal,
  outputLimitBytes: STDERR_TAIL_BYTES,
  redact: { secrets, streams: ['stderr'] as const },
  beforeWork: onStart,
  mark,
})

/** One tool per line: rules like `Bash(git log:*)` contain spaces and may contain commas. */
const variables = (
  { environment, rules, mark }: AgentRequest,
  session: string,
  file: string,
): Record<string, string> => ({
  ...environment,
  [runVariable]: mark.id,
  COPPICE_SESSION: session,
  COPPICE_CONTEXT: file,
  COPPICE_ACCESS: rules.access,
  ...(rules.allowedTools.length > 0 && { COPPICE_ALLOWED_TOOLS: rules.allowedTools.join('\n') }),
  ...(rules.disallowedTools.length > 0 && { COPPICE_DISALLOWED_TOOLS: rules.disallowedTools.join('\n') }),
})

const result = (ended: ProgramResult, reply: ReplyText, { directory }: AgentRequest): AgentResult => {
  const text = reply.end()
  if (ended.exitCode === 0) return { outcome: 'done', text }
  const said = lastLines(ended.stderr)
  return {
    outcome: 'failed',
    text,
    problem: `The agent's command ${exitText(ended)}${said === '' ? ' without an error message' : `: ${said}`}.`,
    remedy: isNotFound(ended)
      ? "Check that COPPICE_AGENT_COMMAND is an executable on the server's PATH."
      : `Send the message again, or run COPPICE_AGENT_COMMAND yourself in ${directory} to see what fails.`,
  }
}

/** Shells exit with 127 if a command isn't found, 126 if it isn't executable. */
const isNotFound = ({ exitCode }: ProgramResult): boolean => exitCode === 126 || exitCode === 127

const SHOWN_LINES = 3
const SHOWN_CHARACTERS = 500

const lastLines = (stderr: string): string => {
  const lines = stderr.replaceAll('\0', '').split('\n')
  const said = lines.map((line) => line.trim()).filter((line) => line !== '')
  const shown = said.slice(-SHOWN_LINES).join(' · ')
  return (shown.length > SHOWN_CHARACTERS ? `…${shown.slice(-SHOWN_CHARACTERS)}` : shown).replace(/\.$/, '')
}

/** Cancelled or not started. Other errors, such as a process that can't be stopped, are the caller's. */
const failedResult = (error: unknown, reply: ReplyText): AgentResult => {
  if (isAppError(error, 'cancelled')) return { outcome: 'cancelled', text: reply.end() }
  const fault = toAppError(error)
  if (fault.code !== 'program-failed') throw error
  return {
    outcome: 'failed',
    text: reply.end(),
    problem: `The agent's command couldn't be started: ${fault.message}.`,
    remedy: CHECK_WORKTREE,
  }
}
