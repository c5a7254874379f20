import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../domain/clock.ts'
import { isAppError, toAppError } from '../domain/errors.ts'
import { runVariable } from '../process/run-mark.ts'
import { runProgram } from '../process/spawn.ts'
import type { AgentRequest } from './agent.ts'
import { createLines } from './lines.ts'
import { endStrays } from './strays.ts'

/** One JSON object, printed by the program on a line of its own. */
export type ProgramEvent = Readonly<Record<string, unknown>>

export type ProgramInput = { readonly write: (text: string) => void; readonly end: () => void }

export type ProgramRun = {
  readonly command: string
  readonly args: readonly string[]
  readonly stdin: string
  /** Keeps stdin open, for answers to its events, until `input.end` is called. */
  readonly keepsInput?: boolean
  /** Our variables that this program needs, added to the request's. */
  readonly granted: Readonly<Record<string, string>>
  readonly clock: Clock
  /** How long it may print nothing while no tool is running. */
  readonly silenceMs: number
  readonly onEvent: (event: ProgramEvent, input: ProgramInput) => void
  /** A tool call is pending: ten minutes of silence is then a long test, not a hang. */
  readonly toolRunning: () => boolean
}

export type ProgramEnd =
  | { readonly how: 'ended'; readonly exitCode: number | null; readonly signal: string | null; readonly stderr: string }
  | { readonly how: 'silent' }
  | { readonly how: 'cancelled' }
  | { readonly how: 'not-started'; readonly problem: string }

/**
 * Runs an agent's program to completion, event by event. If it is cancelled or silent for too long, everything it
 * started is dead before this resolves. Throws if a process can't be stopped or its start can't be recorded.
 */
export const runAgentProgram = async (run: ProgramRun, request: AgentRequest): Promise<ProgramEnd> => {
  const silence = watchSilence(run)
  try {
    const { exitCode, signal, stderr } = await runProgram({
      command: run.command,
      args: run.args,
      cwd: request.directory,
      launch: request.launch,
      env: { ...request.environment, ...run.granted, [runVariable]: request.mark.id },
      mark: request.mark,
      clock: run.clock,
      signal: AbortSignal.any([request.signal, silence.signal]),
      outputLimitBytes: STDERR_TAIL_BYTES,
      // stdout is redacted per event text: replacing in the raw stream could break its JSON.
      redact: { secrets: request.secrets, streams: ['stderr'] },
      beforeWork: request.onStart,
      onActivity: silence.onActivity,
      dialogue: (stdin, stdout) => readEvents(run, stdin, stdout, silence),
    })
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

const readEvents = (run: ProgramRun, stdin: Writable, stdout: Readable, silence: Silence): void => {
  const input: ProgramInput = {
    write: (text) => void (stdin.writable && stdin.write(text)),
    end: () => void stdin.end(),
  }
  const lines = createLines((line) => {
    const event = parsed(line)
    if (event !== undefined) run.onEvent(event, input)
  })
  stdout.setEncoding('utf8')
  stdout.on('data', (text: string) => {
    silence.onActivity()
    lines.add(text)
  })
  stdout.on('end', lines.end)
  input.write(run.stdin)
  if (run.keepsInput !== true) input.end()
}

/** Only the end of stderr is shown; stdout is consumed as it arrives. */
const STDERR_TAIL_BYTES = 16_000

/** Ignores anything printed between events. */
const parsed = (line: string): ProgramEvent | undefined => {
  if (!line.startsWith('{')) return undefined
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as ProgramEvent) : undefined
  } catch {
    return undefined
  }
}

type Silence = { readonly signal: AbortSignal; readonly onActivity: () => void; readonly end: () => void }

const watchSilence = ({ silenceMs, toolRunning }: ProgramRun): Silence => {
  const abort = new AbortController()
  const timer = setTimeout(() => {
    if (toolRunning()) timer.refresh()
    else abort.abort()
  }, silenceMs)
  return { signal: abort.signal, onActivity: () => void timer.refresh(), end: () => clearTimeout(timer) }
}
