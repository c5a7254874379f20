/*
 * Starts programs without blocking this process. Starting a program copies its parent's page tables, which takes 1 ms
 * with 55 MB of memory and 5.5 ms with 175 MB. So a large process that starts many programs has a small one do it. In:
 * a program and its input. Out: its identity, its output and how it ended.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { channel } from 'node:diagnostics_channel'
import type { ProcessIdentity } from '../../domain/process-identity.ts'
import { parentOf } from '../identity-linux.ts'
import type { LaunchEnd, LaunchRequest, LaunchReport } from './protocol.ts'

export type Launch = Omit<LaunchRequest, 'id'>

export type Launched = {
  /** Rejects if the program couldn't be started. `lost`: unknown, because the small process died. */
  readonly started: Promise<ProcessIdentity | 'lost'>
  readonly ended: Promise<LaunchEnd | 'lost'>
}

export type Launcher = {
  /** Undefined if it isn't worthwhile, or not ready yet: then the caller starts the program itself. */
  launch(what: Launch): Launched | undefined
  /** Whether the process was just started by the launcher and not reported yet. */
  isStarting(pid: number): boolean
}

export type LauncherOptions = {
  /** The script that runs in the small process. */
  readonly script: string
  /** Not used below this size, where it would cost as much as it saves. */
  readonly fromRssBytes?: number
  /** Not used before this many starts: a process that starts only a few programs is faster without it. */
  readonly afterStarts?: number
  /** The small process ends after this long without work. */
  readonly idleMs?: number
}

type Waiting = {
  readonly started: PromiseWithResolvers<ProcessIdentity | 'lost'>
  readonly ended: PromiseWithResolvers<LaunchEnd | 'lost'>
  isStarted: boolean
}

export const createLauncher = ({
  script,
  fromRssBytes = 100_000_000,
  afterStarts = 20,
  idleMs = 10_000,
}: LauncherOptions): Launcher => {
  let child: ChildProcess | undefined
  let isReady = false
  let isUsable = true
  let starts = 0
  let id = 0
  let idle: NodeJS.Timeout | undefined
  const waiting = new Map<number, Waiting>()

  const isWorthIt = (): boolean => {
    starts += 1
    return process.platform === 'linux' && starts > afterStarts && process.memoryUsage.rss() >= fromRssBytes
  }

  const open = (): void => {
    const opened = fork(script, {
      cwd: '/',
      env: {},
      execArgv: SMALL,
      serialization: 'advanced',
      stdio: 'ignore',
      detached: true,
    })
    child = opened
    const lost = (): void => {
      if (child !== opened) return
      // If it died before it was ready, don't try again.
      isUsable = isReady
      child = undefined
      isReady = false
      for (const one of waiting.values()) {
        one.started.resolve('lost')
        one.ended.resolve('lost')
      }
      waiting.clear()
    }
    opened.once('exit', lost)
    opened.once('error', lost)
    opened.on('message', (report) => onReport(report as LaunchReport))
    // The small process must not keep this one alive.
    opened.unref()
    opened.channel?.unref()
  }

  const onReport = (report: LaunchReport): void => {
    if (report.kind === 'ready') {
      isReady = true
      return
    }
    const one = waiting.get(report.id)
    if (one === undefined) return
    if (report.kind === 'started') {
      one.isStarted = true
      one.started.resolve(report.identity)
      return
    }
    waiting.delete(report.id)
    if (report.kind === 'ended') one.ended.resolve(report)
    else {
      const error = new Error(report.message)
      one.started.reject(error)
      one.ended.reject(error)
    }
    if (waiting.size === 0) endWhenIdle()
  }

  const endWhenIdle = (): void => {
    child?.channel?.unref()
    idle = setTimeout(() => {
      if (waiting.size === 0) child?.disconnect()
    }, idleMs).unref()
  }

  return {
    launch: (what) => {
      if (!isUsable || !isWorthIt()) return undefined
      if (child === undefined) open()
      if (child === undefined || !isReady || !child.connected) return undefined
      clearTimeout(idle)
      id += 1
      const one: Waiting = { started: withoutWarning(), ended: withoutWarning(), isStarted: false }
      waiting.set(id, one)
      child.channel?.ref()
      const request: LaunchRequest = { ...what, id }
      launches.publish(request)
      child.send(request)
      return { started: one.started.promise, ended: one.ended.promise }
    },
    isStarting: (pid) =>
      child?.pid !== undefined &&
      [...waiting.values()].some(({ isStarted }) => !isStarted) &&
      parentOf(pid) === child.pid,
  }
}

/** Avoids unhandled rejections when the caller has already given up. */
const withoutWarning = <T>(): PromiseWithResolvers<T> => {
  const resolvers = Promise.withResolvers<T>()
  resolvers.promise.catch(() => undefined)
  return resolvers
}

/** For tests and benchmarks that count started processes, like Node's own `child_process` channel. */
const launches = channel('coppice.launch')

/** Shrinks V8's young generation from 32 MB to 2. */
const SMALL = ['--max-semi-space-size=1']
