import { spawn } from 'node:child_process'
import type { ChildProcess, SpawnOptions } from 'node:child_process'
import { closeSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { type Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../domain/clock.ts'
import { AppError } from '../domain/errors.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { identifySync } from './identity.ts'
import { killTree } from './kill.ts'
import { createOutput } from './output.ts'
import type { OutputStream, Redacted } from './output.ts'
import { openLogSync } from './files/replace-file.ts'
import type { Launch } from '../domain/program.ts'
import { MARK_SCRIPT, markArguments, type RunMark } from './run-mark.ts'

type Environment = Readonly<Record<string, string | undefined>>
type What = { readonly command: string; readonly args: readonly string[] } | { readonly shell: string }

export type RunProgram = What & {
  readonly cwd: string
  /** The whole environment: nothing is inherited beside it */
  readonly env: Environment
  readonly clock: Clock
  readonly stdin?: string | Uint8Array
  /**
   * For a program that is talked with: its standard input stays open and its standard output comes here, unbounded by
   * `outputLimitBytes`. Called when the program has been let go. Instead of `stdin`.
   */
  readonly dialogue?: (stdin: Writable, stdout: Readable) => void
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** How long the tree may take to end by itself after SIGTERM */
  readonly graceMs?: number
  readonly outputLimitBytes: number
  readonly onOutput?: (text: string, stream: OutputStream) => void
  /** Called for every chunk, also for one that is kept back for a while. */
  readonly onActivity?: () => void
  /** The streams that people will read: secrets in them are hidden before anything is kept, cut or handed on. */
  readonly redact?: Redacted
  /** Called before the program can have done much, so that the journal can name it */
  readonly onStart?: (identity: ProcessIdentity) => void
  /**
   * Like `onStart`, for whoever must have written it down first: until it resolves the process exists and does nothing.
   * If it fails, or if we die, the process ends without having begun. A command that is not there is then an exit
   * code 127, as a shell says it.
   */
  readonly beforeWork?: (identity: ProcessIdentity) => Promise<void>
  /** How it has to be started to run where it belongs. */
  readonly launch?: Launch | undefined
  /** Ties the process and whatever it starts to a run. A command that does not exist is then an exit code 127, too. */
  readonly mark?: RunMark
}

export type ProgramResult = {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  readonly output: string
  readonly truncated: boolean
  readonly timedOut: boolean
}

/**
 * Runs a program to its end. On time-out and on abort its whole tree is dead before this settles: the time-out is a
 * result, the abort an AppError `cancelled`. A program that cannot be started is an AppError
 * `program-failed`, one that cannot be ended an AppError `busy`.
 */
export const runProgram = async (given: RunProgram): Promise<ProgramResult> => {
  const program = launched(given)
  if (program.signal?.aborted === true) throw cancelled(program)
  const held = program.beforeWork !== undefined
  const { child, identity } = await start(
    wrapped(program),
    {
      cwd: program.cwd,
      env: program.env,
      stdio: [hasInput(program) ? 'pipe' : 'ignore', 'pipe', 'pipe', ...(held ? (['pipe'] as const) : [])],
    },
    program,
  )
  const { outputLimitBytes: limitBytes, onOutput, onActivity, redact } = program
  const output = createOutput({ limitBytes, onOutput, onActivity, redact })
  if (program.dialogue === undefined) child.stdout?.on('data', (chunk: Buffer) => output.add('stdout', chunk))
  child.stderr?.on('data', (chunk: Buffer) => output.add('stderr', chunk))
  const ended = untilEnded(child)
  program.onStart?.(identity)
  const begun = begin(child, identity, program)
  const why = await firstOf(ended, begun, program)
  if (why !== 'ended') await endTree(identity, program)
  const { exitCode, signal } = await ended
  output.end()
  // Waited for in any case: what it writes down must not appear after we have said that all is over.
  if (why === 'aborted') await begun.catch(() => undefined)
  if (why === 'aborted') throw cancelled(program)
  await begun
  return { exitCode, signal, ...output.result(), timedOut: why === 'timed-out' }
}

export type DetachedProgram = {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Environment
  /** Appended to; without it the output is thrown away */
  readonly logFile?: string
}

/** Starts background work that outlives us: a session of its own, no pipe to us that could break under it. */
export const spawnDetached = async (program: DetachedProgram): Promise<ProcessIdentity> => {
  const log = program.logFile === undefined ? undefined : openLogSync(program.logFile)
  try {
    const { child, identity } = await start(program, {
      cwd: program.cwd,
      env: program.env,
      stdio: ['ignore', log ?? 'ignore', log ?? 'ignore'],
    })
    child.unref()
    return identity
  } finally {
    if (log !== undefined) closeSync(log)
  }
}

const launched = (program: RunProgram): RunProgram => {
  if (program.launch === undefined) return program
  const { cwd, env } = program
  const [command, args] = 'shell' in program ? ['/bin/sh', ['-c', program.shell]] : [program.command, program.args]
  const { shell: _shell, ...rest } = { shell: undefined, ...program }
  return { ...rest, ...program.launch({ command, args, cwd, env }) }
}

type Started = { readonly child: ChildProcess; readonly identity: ProcessIdentity }

/** `detached` makes it the leader of a session and group of its own, by which its tree is found again. */
const start = async (
  what: What & { readonly cwd: string },
  options: SpawnOptions,
  named: What = what,
): Promise<Started> => {
  const [command, args] = 'shell' in what ? ['/bin/sh', ['-c', what.shell]] : [what.command, what.args]
  const child = spawn(command, args, { ...options, detached: true })
  // Read in the same turn: Node cannot have reaped it yet, so the pid is still its own even if it has ended.
  const identity = child.pid === undefined ? undefined : identifySync(child.pid)
  if (identity !== undefined) return { child, identity }
  const cause = await new Promise<unknown>((resolve) => {
    child.once('error', resolve)
    child.once('spawn', () => resolve(undefined))
  })
  child.kill('SIGKILL')
  const noDirectory = await stat(what.cwd).then(
    () => false,
    () => true,
  )
  // spawn says "ENOENT" and the command's name also when it is the working directory that is missing
  const why = noDirectory ? `the directory ${what.cwd} does not exist` : reason(cause)
  throw new AppError('program-failed', `${nameOf(named)} could not be started: ${why}`, { cause })
}

const reason = (cause: unknown): string => (cause instanceof Error ? cause.message : 'its start time cannot be read')

/** A word on descriptor 3 opens it; its end without one (we died) does not. */
const GATE = 'IFS= read -r _coppice_gate <&3 && [ "$_coppice_gate" = go ] || exit 125; exec 3<&-; '

/** The pid stays: exec, not a child. */
const wrapped = (program: RunProgram): What & { readonly cwd: string } => {
  const { mark, beforeWork, cwd } = program
  const script = `${mark === undefined ? '' : MARK_SCRIPT}${beforeWork === undefined ? '' : GATE}`
  if (script === '') return program
  const own = 'shell' in program ? ['/bin/sh', '-c', program.shell] : [program.command, ...program.args]
  const marks = mark === undefined ? [] : markArguments(mark)
  return { command: '/bin/sh', args: ['-c', `${script}exec "$@"`, 'sh', ...marks, ...own], cwd }
}

const begin = async (child: ChildProcess, identity: ProcessIdentity, program: RunProgram): Promise<void> => {
  // A child that was ended meanwhile cannot be told to go: its exit says so.
  const gate = child.stdio[3]
  gate?.on('error', () => undefined)
  if (program.beforeWork !== undefined) await program.beforeWork(identity)
  if (gate instanceof Writable) gate.end('go\n')
  feed(child, program.stdin)
  if (child.stdin !== null && child.stdout !== null) program.dialogue?.(child.stdin, child.stdout)
}

const hasInput = ({ stdin, dialogue }: RunProgram): boolean => stdin !== undefined || dialogue !== undefined

const feed = (child: ChildProcess, stdin: string | Uint8Array | undefined): void => {
  // A program need not read its input: EPIPE is its choice, not a fault.
  child.stdin?.on('error', () => undefined)
  if (stdin !== undefined) child.stdin?.end(stdin)
}

type Ended = { readonly exitCode: number | null; readonly signal: NodeJS.Signals | null }

/**
 * How long after the program's end its pipes may stay open. A server it left in the background holds them for ever;
 * we go on without it, and go on draining, so that it does not die of a broken pipe.
 */
const LINGER_MS = 500

const untilEnded = async (child: ChildProcess): Promise<Ended> => {
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const ended = await new Promise<Ended>((resolve) => {
    child.once('exit', (exitCode, signal) => resolve({ exitCode, signal }))
  })
  const waiting = new AbortController()
  await Promise.race([closed, delay(LINGER_MS, undefined, { signal: waiting.signal }).catch(() => undefined)])
  waiting.abort()
  for (const stream of [child.stdout, child.stderr]) {
    if (stream !== null && 'unref' in stream && typeof stream.unref === 'function') stream.unref()
  }
  return ended
}

type Why = 'ended' | 'timed-out' | 'aborted' | 'not-begun'

/** The time-out also covers the lingering pipes. */
const firstOf = async (
  ended: Promise<Ended>,
  begun: Promise<void>,
  { timeoutMs, signal }: RunProgram,
): Promise<Why> => {
  const { promise, resolve } = Promise.withResolvers<Why>()
  const onAbort = () => resolve('aborted')
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => resolve('timed-out'), timeoutMs)
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted === true) onAbort()
  begun.catch(() => resolve('not-begun'))
  void ended.then(() => resolve('ended'))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

const endTree = async (identity: ProcessIdentity, program: RunProgram): Promise<void> => {
  const { clock, graceMs = 5_000 } = program
  const killed = await killTree(identity, { graceMs, clock, leaderMayBeGone: true })
  if (killed.outcome !== 'survivors') return
  const pids = killed.identities.map(({ pid }) => pid).join(', ')
  throw new AppError('busy', `${nameOf(program)} could not be ended: process ${pids} survives`, {
    remedy: `end process ${pids} by hand and try again`,
  })
}

const cancelled = (program: RunProgram): AppError => new AppError('cancelled', `${nameOf(program)} was cancelled`)

/** Without its arguments: they may hold a secret, and this goes into messages. */
const nameOf = (what: What): string => ('shell' in what ? 'the shell command' : what.command)
