import { type FSWatcher, watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import { identityWord, type ProcessIdentity } from '../../domain/process-identity.ts'
import { liveness } from '../../process/identity.ts'
import { deathsFile } from '../../process/tmux.ts'
import { tmuxSocket } from './tmux-socket.ts'

/** One look takes 20 µs per agent. */
const LOOK_MS = 1_000

export type DeathWatch = {
  /** The first processes of all sessions now. Without any, nothing runs. */
  set(roots: readonly ProcessIdentity[]): void
  stop(): void
}

/**
 * Calls back when a session has died: at once if tmux reports it, within a second otherwise. Once per session. Starts no
 * process, and doesn't keep this one alive.
 */
export const createDeathWatch = (home: string, onDeath: () => void): DeathWatch => {
  const reported = new Set<string>()
  let watched: readonly ProcessIdentity[] = []
  let timer: NodeJS.Timeout | undefined
  let reports: FSWatcher | undefined

  const look = (): void => {
    const dead = watched.map((root) => [root, identityWord(root)] as const).filter(([, word]) => !reported.has(word))
    const fresh = dead.filter(([root]) => liveness(root) === 'dead')
    for (const [, word] of fresh) reported.add(word)
    if (fresh.length > 0) onDeath()
  }

  const stop = (): void => {
    clearInterval(timer)
    reports?.close()
    timer = reports = undefined
  }

  return {
    set: (roots) => {
      watched = roots
      const words = new Set(roots.map(identityWord))
      for (const word of reported) if (!words.has(word)) reported.delete(word)
      if (roots.length === 0) return stop()
      timer ??= setInterval(look, LOOK_MS).unref()
      reports ??= watchReports(home, look)
    },
    stop,
  }
}

/** Undefined if it can't be watched, for example because the user has too many watches: then the timer is enough. */
const watchReports = (home: string, onReport: () => void): FSWatcher | undefined => {
  try {
    const file = deathsFile(tmuxSocket(home))
    const name = basename(file)
    const reports = watch(dirname(file), (_event, changed) => {
      if (changed === name) onReport()
    })
    return reports.on('error', () => reports.close()).unref()
  } catch {
    return undefined
  }
}
