import type { Clock } from '../domain/clock.ts'
import { isAppError, toAppError } from '../domain/errors.ts'
import { runVariable } from '../process/run-mark.ts'
import { runProgram } from '../process/spawn.ts'
import type { AgentRequest } from './agent.ts'
import { createLines } from './lines.ts'
import { endStrays } from './strays.ts'

/** One event of a program that tells what it does in JSON, one object per line. */
export type ProgramEvent = Readonly<Record<string, unknown>>

export type ProgramRun = {
  readonly command: string
  readonly args: readonly string[]
  readonly stdin: string
  /** Beside the request's own: what this program needs of ours. */
  readonly granted: Readonly<Record<string, string>>
  readonly clock: Clock
  /** How long it may say nothing while none of its tools is at work. */
  readonly silenceMs: number
  readonly onEvent: (event: ProgramEvent) => void
  /** A tool was called and has not answered yet: ten minutes of silence are then a long test, not death. */
  readonly toolAtWork: () => boolean
}

export type ProgramEnd =
  | { readonly how: 'ended'; readonly exitCode: number | null; readonly signal: string | null; readonly stderr: string }
  | { readonly how: 'silent' }
  | { readonly how: 'cancelled' }
  | { readonly how: 'not-started'; readonly problem: string }

/**
 * Runs an agent's program to its end, event by event. When it is cancelled or says nothing for too long, everything that
 * it started is dead before this resolves. What the caller must hear of (a process that cannot be ended, a start that
 * cannot be written down) is thrown.
 */
export const runAgentProgram = async (run: ProgramRun, request: AgentRequest): Promise<ProgramEnd> => {
  const silence = watchSilence(run)
  const lines = createLines((line) => {
    const event = parsed(line)
    if (event !== undefined) run.onEvent(event)
  })
  try {
    const { exitCode, signal, stderr } = await runProgram({
      command: run.command,
      args: run.args,
      cwd: request.directory,
      launch: request.launch,
      env: { ...request.environment, ...run.granted, [runVariable]: request.mark.id },
      mark: request.mark,
      clock: run.clock,
      stdin: run.stdin,
      signal: AbortSignal.any([request.signal, silence.signal]),
      outputLimitBytes: KEPT_BYTES,
      // Of standard output the text in its events is hidden: a replacement in between could break their JSON.
      redact: { secrets: request.secrets, streams: ['stderr'] },
      beforeWork: request.onStart,
      onActivity: silence.heard,
      onOutput: (text, stream) => {
        if (stream === 'stdout') lines.add(text)
      },
    })
    lines.end()
    return { how: 'ended', exitCode, signal, stderr }
  } catch (error) {
    if (isAppError(error, 'cancelled')) {
      await endStrays(request.mark, run.clock)
      return { how: request.signal.aborted ? 'cancelled' : 'silent' }
    }
    const fault = toAppError(error)
    if (fault.code !== 'program-failed') throw error
    return { how: 'not-started', problem: fault.message }
  } finally {
    silence.end()
  }
}

/** Of standard error only the end is shown; standard output is taken as it comes. */
const KEPT_BYTES = 16_000

/** What a program prints between its events is not for us. */
const parsed = (line: string): ProgramEvent | undefined => {
  if (!line.startsWith('{')) return undefined
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as ProgramEvent) : undefined
  } catch {
    return undefined
  }
}

type Silence = { readonly signal: AbortSignal; readonly heard: () => void; readonly end: () => void }

const watchSilence = ({ silenceMs, toolAtWork }: ProgramRun): Silence => {
  const abort = new AbortController()
  const timer = setTimeout(() => {
    if (toolAtWork()) timer.refresh()
    else abort.abort()
  }, silenceMs)
  return { signal: abort.signal, heard: () => void timer.refresh(), end: () => clearTimeout(timer) }
}
