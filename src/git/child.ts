import { type ChildProcess, spawn } from 'node:child_process'
import { statSync } from 'node:fs'
import type { Readable } from 'node:stream'
import type { Clock } from '../domain/clock.ts'
import { AppError } from '../domain/errors.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { identifySync } from '../process/identity.ts'
import { collect } from '../process/collect.ts'
import { killTree } from '../process/kill.ts'
import type { Launched, Launcher } from '../process/launcher/launcher.ts'

export type ChildRequest = {
  readonly program: string
  readonly operation: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Record<string, string>
  readonly timeoutMs: number
  readonly now: Clock
  readonly network?: object
  readonly stdin?: string | Buffer | Readable
  readonly signal?: AbortSignal
  readonly killAtOnce?: boolean
  /** Starts the program without blocking this process, if possible and worthwhile. */
  readonly launcher?: Launcher | undefined
  readonly onStarted: (pid: number) => void
  readonly onEnded: (pid: number) => void
  readonly onSpawn?: (identity: ProcessIdentity) => void
  readonly onStdout?: (chunk: Buffer) => void | Promise<void>
  readonly onStderr?: (chunk: string) => void
}

export type Ended = {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly stdout: Buffer
  readonly stderr: string
}

/**
 * Runs one git process; used only by the door. It leads its own process group and session: Ctrl-C reaches only us, so
 * we stop it (with its ssh, index-pack and other children) and know when it has ended; and without a terminal, nothing
 * in it can prompt. If we are killed it survives, which is why `onSpawn` and the journal exist.
 */
export const runChild = async (request: ChildRequest): Promise<Ended> => {
  throwIfAborted(request)
  const launched = launch(request)
  return launched === undefined ? runOwn(request) : runLaunched(request, launched)
}

/**
 * Only for reads: a child that changes something must be journaled before it starts, and streaming needs a pipe to us.
 */
const launch = (request: ChildRequest): Launched | undefined => {
  const { launcher, program, args, cwd, env, stdin, onSpawn, onStdout, onStderr, network } = request
  if (launcher === undefined || onSpawn !== undefined || network !== undefined) return undefined
  if (onStdout !== undefined || onStderr !== undefined) return undefined
  if (stdin !== undefined && typeof stdin !== 'string' && !Buffer.isBuffer(stdin)) return undefined
  return launcher.launch({ program, args, cwd, env, stdin, stderrLimit: maxStderrBytes })
}

const runLaunched = async (request: ChildRequest, { started, ended }: Launched): Promise<Ended> => {
  const stop = stopReason(request)
  let identity: ProcessIdentity | undefined
  try {
    identity = await Promise.race([started.then(unlessLost), stop.reached])
    if (identity !== undefined) request.onStarted(identity.pid)
    const end = await Promise.race([ended.then(unlessLost), stop.reached])
    if (end !== undefined) {
      const { exitCode, signal, stdout, stderr } = end
      return { exitCode, signal, stdout: asBuffer(stdout), stderr: asBuffer(stderr).toString('utf8') }
    }
  } catch (error) {
    if (!stop.isReached()) throw notStarted(request, error)
    // The launcher may be starting it right now.
    const running = identity ?? (await started.then(unlessLost, () => undefined))
    if (running !== undefined) await endProcess(running, request)
    throw error
  } finally {
    stop.clear()
    if (identity !== undefined) request.onEnded(identity.pid)
  }
  // The launcher died, so the output is lost. It is a read, so it can be repeated.
  if (identity !== undefined) await endProcess(identity, request)
  return runOwn(request)
}

const unlessLost = <T>(value: T | 'lost'): T | undefined => (value === 'lost' ? undefined : value)

const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, byteLength)

const runOwn = async (request: ChildRequest): Promise<Ended> => {
  const child = startChild(request)
  const exited = exitOf(child, request)
  exited.catch(() => undefined)
  const identity = child.pid === undefined ? undefined : identifySync(child.pid)
  const stop = stopReason(request)
  try {
    if (child.pid !== undefined) request.onStarted(child.pid)
    if (identity !== undefined) request.onSpawn?.(identity)
    writeStdin(child, request)
    return await Promise.race([finished(child, exited, request), stop.reached])
  } catch (error) {
    if (identity !== undefined) await endProcess(identity, request)
    closePipes(child)
    throw error
  } finally {
    stop.clear()
    if (child.pid !== undefined) request.onEnded(child.pid)
  }
}

const startChild = (request: ChildRequest): ChildProcess => {
  const { program, args, cwd, env, stdin, operation } = request
  try {
    return spawn(program, args, {
      cwd,
      env,
      detached: true,
      stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    })
  } catch (cause) {
    if (!isDirectory(cwd)) throw notStarted(request, cause)
    // A NUL in an argument, or too many arguments.
    throw new AppError('git-failed', `couldn't start git ${operation} with these arguments`, { cause })
  }
}

type Exit = Pick<Ended, 'exitCode' | 'signal'>

const exitOf = (child: ChildProcess, request: ChildRequest): Promise<Exit> =>
  new Promise((resolve, reject) => {
    child.once('exit', (exitCode, signal) => resolve({ exitCode, signal }))
    child.once('error', (cause) => reject(notStarted(request, cause)))
  })

const notStarted = ({ cwd, program, operation }: ChildRequest, cause: unknown): AppError => {
  // ENOENT can mean a missing program or a missing working directory.
  if (!isDirectory(cwd)) {
    return new AppError('not-found', `git ${operation} failed: directory ${cwd} doesn't exist`, { cause })
  }
  return new AppError(
    'git-unavailable',
    `couldn't start git: ${cause instanceof Error ? cause.message : String(cause)}`,
    {
      cause,
      remedy:
        program === 'git' ? 'install git 2.38 or newer and make sure it is on PATH' : `check that ${program} exists`,
    },
  )
}

const isDirectory = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

const finished = async (child: ChildProcess, exited: Promise<Exit>, request: ChildRequest): Promise<Ended> => {
  // ssh with ControlPersist leaves a process that keeps our pipes open for minutes after git has exited.
  if (request.network !== undefined)
    exited.then(
      () => setTimeout(() => closePipes(child), lingerMs).unref(),
      () => undefined,
    )
  const decoder = new TextDecoder()
  const errors = (chunk: Buffer): void => request.onStderr?.(decoder.decode(chunk, { stream: true }))
  const [exit, stdout, stderr] = await Promise.all([
    exited,
    collect(child.stdout, { take: request.onStdout }),
    // A remote can send endless messages.
    collect(child.stderr, { watch: request.onStderr && errors, limit: maxStderrBytes }),
  ])
  return { ...exit, stdout, stderr: stderr.toString('utf8') }
}

const lingerMs = 2_000
const maxStderrBytes = 64 * 1024

/** Writing fails if the child stops reading early; its exit code says why. */
const writeStdin = (child: ChildProcess, { stdin }: ChildRequest): void => {
  if (!child.stdin || stdin === undefined) return
  child.stdin.on('error', () => undefined)
  if (typeof stdin === 'string' || Buffer.isBuffer(stdin)) child.stdin.end(stdin)
  else stdin.pipe(child.stdin)
}

type StopReason = {
  readonly reached: Promise<never>
  readonly isReached: () => boolean
  readonly clear: () => void
}

const stopReason = (request: ChildRequest): StopReason => {
  const { promise: reached, reject } = Promise.withResolvers<never>()
  let isReached = false
  reached.catch(() => (isReached = true))
  const timer = setTimeout(() => reject(timedOut(request)), request.timeoutMs)
  const abort = (): void => reject(cancelled(request))
  request.signal?.addEventListener('abort', abort, { once: true })
  if (request.signal?.aborted === true) abort()
  return {
    reached,
    isReached: () => isReached,
    clear: () => {
      clearTimeout(timer)
      request.signal?.removeEventListener('abort', abort)
    },
  }
}

const timedOut = ({ operation, timeoutMs }: ChildRequest): AppError =>
  new AppError('timeout', `git ${operation} timed out after ${Math.round(timeoutMs / 100) / 10} s and was stopped`)

export const throwIfAborted = (request: Pick<ChildRequest, 'operation' | 'signal'>): void => {
  if (request.signal?.aborted === true) throw cancelled(request)
}

const cancelled = ({ operation }: Pick<ChildRequest, 'operation'>): AppError =>
  new AppError('cancelled', `git ${operation} was cancelled`)

/** SIGTERM first: git then removes its lock files. */
const endProcess = async (identity: ProcessIdentity, request: ChildRequest): Promise<void> => {
  const { now, operation, killAtOnce = false } = request
  const options = { graceMs: killAtOnce ? 0 : 5_000, clock: now, leaderMayBeGone: true }
  const { outcome } = await killTree(identity, options)
  if (outcome !== 'survivors') return
  throw new AppError('busy', `git ${operation} (process ${identity.pid}) is still running after being stopped`)
}

const closePipes = (child: ChildProcess): void => {
  child.stdin?.destroy()
  child.stdout?.destroy()
  child.stderr?.destroy()
}
