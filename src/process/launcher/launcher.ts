/*
 * Starting programs without stopping for it. Starting one copies the page tables of its parent, and everything else
 * waits: 1 ms with 55 MB of memory, 5.5 ms with 175 MB. A process that has grown, and starts many, lets a small one of
 * its own do it. In: a program and its input. Out: its identity, its output and how it ended.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { channel } from 'node:diagnostics_channel'
import type { ProcessIdentity } from '../../domain/process-identity.ts'
import { parentOf } from '../identity-linux.ts'
import type { LaunchEnd, LaunchRequest, LaunchReport } from './protocol.ts'

export type Launch = Omit<LaunchRequest, 'id'>

export type Launched = {
  /** Rejects if it couldn't be started. `lost`: unknown, since the small process has died. */
  readonly started: Promise<ProcessIdentity | 'lost'>
  readonly ended: Promise<LaunchEnd | 'lost'>
}

export type Launcher = {
  /** Undefined: not worth it, or not ready yet. The caller starts the program itself. */
  launch(what: Launch): Launched | undefined
  /** A program that it has just started, of which we don't know yet. */
  isStarting(pid: number): boolean
}

export type LauncherOptions = {
  /** The script that runs in the small process. */
  readonly script: string
  /** Below this, it would cost as much as it saves. */
  readonly fromRssBytes?: number
  /** A process that starts a few programs and ends is faster without it. */
  readonly afterStarts?: number
  /** It ends when it has had nothing to do for this long. */
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
      // One that can't even start would fail again.
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
    // It must not keep us running.
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

/** Whoever gave up may no longer be interested in why it failed. */
const withoutWarning = <T>(): PromiseWithResolvers<T> => {
  const resolvers = Promise.withResolvers<T>()
  resolvers.promise.catch(() => undefined)
  return resolvers
}

/** Counts as much as Node's own `child_process`, for whoever counts processes. */
const launches = channel('coppice.launch')

/** Two megabytes for young objects instead of 32. */
const SMALL = ['--max-semi-space-size=1']
