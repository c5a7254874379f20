import { join } from 'node:path'
import type { FleetSession } from '../../domain/fleet/agent.ts'
import { AppError, isAppError } from '../../domain/errors.ts'
import { lstatIfThere } from '../../process/files/lstat-if-there.ts'
import { makeDirectorySync } from '../../process/files/make-directory.ts'
import { replaceFileSync, writeNewFileSync } from '../../process/files/replace-file.ts'
import { identifySync } from '../../process/identity.ts'
import { logWriter } from '../../process/log-writer.ts'
import { createTmux, type Tmux, type TmuxPane, tmuxSettings } from '../../process/tmux.ts'
import type { SessionsContext } from './context.ts'
import { LONGEST_LOG_BYTES } from './log.ts'
import { agentDirectory, environmentFile, fleetHome, logFile } from './paths.ts'
import { endProcesses, prepareDirectory } from './prepare.ts'
import { endedAtOnce, untilRunning } from './running.ts'
import type { NewSession, SessionKindRules } from './session.ts'
import { submit } from './submit.ts'
import { tmuxSocket } from './tmux-socket.ts'
import { environmentScript, wrapped } from './wrapper.ts'

/** Runs each agent in its own tmux session, on a tmux server that only Coppice uses. */
export const createTmuxSessions = (context: SessionsContext): SessionKindRules => {
  const { home, clock, env, lock, longestLogBytes = LONGEST_LOG_BYTES } = context
  const settingsFile = join(fleetHome(home), 'tmux.conf')
  const tmux: Tmux = createTmux({ socket: tmuxSocket(home), settingsFile, env, clock })

  const start = async (
    { name, directory: worktree, command, variables, mark, answersRequests, escapeOnInterrupt }: NewSession,
    onBegun: (session: FleetSession) => Promise<void>,
  ): Promise<FleetSession> => {
    makeDirectorySync(fleetHome(home))
    // Replaced at once, because a server may be starting and reading it.
    replaceFileSync(settingsFile, tmuxSettings, { mode: 0o600 })
    await endDeadSession(name)
    const directory = prepareDirectory(context, name)
    // The session's TERM is tmux's, not ours.
    const { TERM: _ours, ...inTmux } = variables
    writeNewFileSync(environmentFile(directory), environmentScript(inTmux, command), { mode: 0o600 })
    const { pid } = await tmux.start({
      name: targetOf(name),
      directory: worktree,
      command: wrapped([], { mark, directory, worktree, answersRequests }),
      log: logWriter(logFile(home, name), longestLogBytes),
      escapeOnInterrupt: escapeOnInterrupt === true,
    })
    const startedAt = clock()
    const root = identifySync(pid)
    try {
      if (root === undefined) throw endedAtOnce(directory)
      const session: FleetSession = { kind: 'tmux', target: targetOf(name), root, startedAt }
      await onBegun(session)
      await untilRunning(directory, root)
      return session
    } catch (error) {
      await endProcesses(context, { root, marks: [mark], graceMs: 0 })
      await tmux.end(targetOf(name))
      throw error
    }
  }

  /** Removes an ended session of this name; such sessions stay until the name is needed. */
  const endDeadSession = async (name: string): Promise<void> => {
    const existing = (await tmux.list()).find(({ session }) => session === targetOf(name))
    if (existing === undefined) return
    if (!existing.dead) throw new AppError('busy', `the tmux session ${targetOf(name)} is still running`)
    await tmux.end(targetOf(name))
  }

  /** By its process: a person who is attached may have another window in front. */
  const livePaneOf = async ({ root }: FleetSession): Promise<TmuxPane> => {
    const pane = await tmux.paneOf(root.pid)
    if (pane.dead) throw new AppError('program-failed', 'its program has ended')
    return pane
  }

  /** Two texts at once would become one: the Enter of the first comes after both. */
  const inTurn = async (session: FleetSession, type: () => Promise<void>): Promise<void> => {
    const directory = agentDirectory(home, session.target.slice(PREFIX.length))
    if (lstatIfThere(directory) === undefined) {
      // It keeps a name in use, so not without a session.
      await livePaneOf(session)
      makeDirectorySync(directory)
    }
    let isOurTurn = false
    try {
      await lock.withRepositoryLock(directory, { purpose: 'sending a message', timeoutMs: TURN_MS }, () => {
        isOurTurn = true
        return type()
      })
    } catch (error) {
      if (isOurTurn || !isAppError(error, 'busy')) throw error
      throw new AppError('busy', 'it is being sent other messages', { cause: error, remedy: 'try again later' })
    }
  }

  return {
    kind: 'tmux',
    can: { attach: true },
    start,
    list: async () =>
      (await tmux.list()).flatMap(({ session: target, pid, dead, startedAt }) =>
        target.startsWith(PREFIX)
          ? [{ name: target.slice(PREFIX.length), target, root: dead ? undefined : identifySync(pid), startedAt, dead }]
          : [],
      ),
    peek: async ({ root }, lines) => tmux.capture(await tmux.paneOf(root.pid), lines),
    send: (session, text) => inTurn(session, async () => submit(tmux, await livePaneOf(session), text)),
    clear: (name) => tmux.end(targetOf(name)),
    attachCommand: ({ target }) => tmux.attachCommand(target),
  }
}

/** A program that shows nothing of what it is given takes 1.6 s for each message. */
const TURN_MS = 300_000

const PREFIX = 'coppice-'
const targetOf = (name: string): string => `${PREFIX}${name}`
