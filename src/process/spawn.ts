/*
 * Programs and processes. In: a program, a directory, an environment, limits. Out: its output and how it ended.
 * `kill.ts` ends processes, `identity.ts` recognises them, `inside/` finds those in a directory.
 */
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
type Command = { readonly command: string; readonly args: readonly string[] } | { readonly shell: string }

export type RunProgram = Command & {
  readonly cwd: string
  /** The whole environment: nothing else is inherited */
  readonly env: Environment
  readonly clock: Clock
  readonly stdin?: string | Uint8Array
  /**
   * For an interactive program: stdin stays open, and stdout goes here without `outputLimitBytes`. Called when the
   * program may start. Replaces `stdin`.
   */
  readonly dialogue?: (stdin: Writable, stdout: Readable) => void
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** Time for the tree to exit after SIGTERM */
  readonly graceMs?: number
  readonly outputLimitBytes: number
  readonly onOutput?: (text: string, stream: OutputStream) => void
  /** Called for every chunk, even if it is held back. */
  readonly onActivity?: () => void
  /** Streams shown to people: secrets are hidden before output is kept, truncated or passed on. */
  readonly redact?: Redacted
  /** Called right after the start, so the journal can name the process */
  readonly onStart?: (identity: ProcessIdentity) => void
  /**
   * Like `onStart`, but for recording the process first: until this resolves, the process exists and does nothing. If
   * it fails or we die, the process exits without starting. A missing command then exits with 127, as in a shell.
   */
  readonly beforeWork?: (identity: ProcessIdentity) => Promise<void>
  /** How to start it where it belongs. */
  readonly launch?: Launch | undefined
  /** Ties the process and its children to a run. A missing command then exits with 127, too. */
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
 * Runs a program to completion. On timeout or abort its whole tree is dead before this settles: a timeout is a result,
 * an abort an AppError `cancelled`. If it can't be started: `program-failed`; if it can't be stopped: `busy`.
 */
export const runProgram = async (given: RunProgram): Promise<ProgramResult> => {
  const program = applyLaunch(given)
  if (program.signal?.aborted === true) throw cancelled(program)
  const gated = program.beforeWork !== undefined
  const { child, identity } = await start(
    withMarkAndGate(program),
    {
      cwd: program.cwd,
      env: program.env,
      stdio: [hasInput(program) ? 'pipe' : 'ignore', 'pipe', 'pipe', ...(gated ? (['pipe'] as const) : [])],
    },
    program,
  )
  const { outputLimitBytes: limitBytes, onOutput, onActivity, redact } = program
  const output = createOutput({ limitBytes, onOutput, onActivity, redact })
  if (program.dialogue === undefined) child.stdout?.on('data', (chunk: Buffer) => output.add('stdout', chunk))
  child.stderr?.on('data', (chunk: Buffer) => output.add('stderr', chunk))
  const ended = untilExit(child)
  program.onStart?.(identity)
  const gateOpened = openGate(child, identity, program)
  const endReason = await waitForEnd(ended, gateOpened, program)
  if (endReason !== 'ended') await killOrThrow(identity, program)
  const { exitCode, signal } = await ended
  output.end()
  // Always awaited: nothing may be recorded after we have reported the end.
  if (endReason === 'aborted') await gateOpened.catch(() => undefined)
  if (endReason === 'aborted') throw cancelled(program)
  await gateOpened
  return { exitCode, signal, ...output.result(), timedOut: endReason === 'timed-out' }
}

export type DetachedProgram = {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Environment
  /** Appended to (default: output is discarded) */
  readonly logFile?: string
}

/** Starts background work that outlives us, in its own session, without a pipe to us that could break. */
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

const applyLaunch = (program: RunProgram): RunProgram => {
  if (program.launch === undefined) return program
  const { cwd, env } = program
  const [command, args] = 'shell' in program ? ['/bin/sh', ['-c', program.shell]] : [program.command, program.args]
  const { shell: _shell, ...rest } = { shell: undefined, ...program }
  return { ...rest, ...program.launch({ command, args, cwd, env }) }
}

type Started = { readonly child: ChildProcess; readonly identity: ProcessIdentity }

/** `detached` makes it the leader of its own session and group, by which its tree is found. */
const start = async (
  what: Command & { readonly cwd: string },
  options: SpawnOptions,
  named: Command = what,
): Promise<Started> => {
  const [command, args] = 'shell' in what ? ['/bin/sh', ['-c', what.shell]] : [what.command, what.args]
  const child = spawn(command, args, { ...options, detached: true })
  // In the same tick, Node can't have reaped it yet, so the pid is still its own even if it has exited.
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
  // spawn reports ENOENT with the command's name even if the working directory is missing
  const why = noDirectory ? `the directory ${what.cwd} doesn't exist` : reason(cause)
  throw new AppError('program-failed', `couldn't start ${nameOf(named)}: ${why}`, { cause })
}

const reason = (cause: unknown): string => (cause instanceof Error ? cause.message : "its start time couldn't be read")

/** Waits for "go" on descriptor 3; exits if it closes first (we died). */
const GATE = 'IFS= read -r _coppice_gate <&3 && [ "$_coppice_gate" = go ] || exit 125; exec 3<&-; '

/** exec keeps the pid. */
const withMarkAndGate = (program: RunProgram): Command & { readonly cwd: string } => {
  const { mark, beforeWork, cwd } = program
  const script = `${mark === undefined ? '' : MARK_SCRIPT}${beforeWork === undefined ? '' : GATE}`
  if (script === '') return program
  const own = 'shell' in program ? ['/bin/sh', '-c', program.shell] : [program.command, ...program.args]
  const marks = mark === undefined ? [] : markArguments(mark)
  return { command: '/bin/sh', args: ['-c', `${script}exec "$@"`, 'sh', ...marks, ...own], cwd }
}

const openGate = async (child: ChildProcess, identity: ProcessIdentity, program: RunProgram): Promise<void> => {
  // If the child was killed meanwhile, its exit says so.
  const gate = child.stdio[3]
  gate?.on('error', () => undefined)
  if (program.beforeWork !== undefined) await program.beforeWork(identity)
  if (gate instanceof Writable) gate.end('go\n')
  writeStdin(child, program.stdin)
  if (child.stdin !== null && child.stdout !== null) program.dialogue?.(child.stdin, child.stdout)
}

const hasInput = ({ stdin, dialogue }: RunProgram): boolean => stdin !== undefined || dialogue !== undefined

const writeStdin = (child: ChildProcess, stdin: string | Uint8Array | undefined): void => {
  // A program need not read its input, so EPIPE is fine.
  child.stdin?.on('error', () => undefined)
  if (stdin !== undefined) child.stdin?.end(stdin)
}

type Ended = { readonly exitCode: number | null; readonly signal: NodeJS.Signals | null }

/**
 * How long pipes may stay open after the program exits. A background server holds them forever; we continue without it,
 * but keep draining so it doesn't die of a broken pipe.
 */
const LINGER_MS = 500

const untilExit = async (child: ChildProcess): Promise<Ended> => {
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

type EndReason = 'ended' | 'timed-out' | 'aborted' | 'not-begun'

/** The timeout also covers lingering pipes. */
const waitForEnd = async (
  ended: Promise<Ended>,
  begun: Promise<void>,
  { timeoutMs, signal }: RunProgram,
): Promise<EndReason> => {
  const { promise, resolve } = Promise.withResolvers<EndReason>()
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

const killOrThrow = async (identity: ProcessIdentity, program: RunProgram): Promise<void> => {
  const { clock, graceMs = 5_000 } = program
  const killed = await killTree(identity, { graceMs, clock, leaderMayBeGone: true })
  if (killed.outcome !== 'survivors') return
  const pids = killed.identities.map(({ pid }) => pid).join(', ')
  throw new AppError('busy', `couldn't stop ${nameOf(program)}: process ${pids} is still running`, {
    remedy: `stop process ${pids} yourself and try again`,
  })
}

const cancelled = (program: RunProgram): AppError => new AppError('cancelled', `${nameOf(program)} was cancelled`)

/** Without arguments: this goes into messages, and they may contain a secret. */
const nameOf = (what: Command): string => ('shell' in what ? 'the shell command' : what.command)
