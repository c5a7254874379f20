import { join } from 'node:path'
import type { FleetSession } from '../../domain/fleet/agent.ts'
import { AppError } from '../../domain/errors.ts'
import { makeDirectorySync } from '../../process/files/make-directory.ts'
import { writeNewFileSync } from '../../process/files/replace-file.ts'
import { identifySync } from '../../process/identity.ts'
import { logWriter } from '../../process/log-writer.ts'
import { createTmux, type Tmux, tmuxSettings } from '../../process/tmux.ts'
import type { SessionsContext } from './context.ts'
import { LONGEST_LOG_BYTES } from './log.ts'
import { environmentFile, fleetHome, logFile } from './paths.ts'
import { endProcesses, prepareDirectory } from './prepare.ts'
import { endedAtOnce, untilRunning } from './running.ts'
import type { NewSession, SessionKindRules } from './session.ts'
import { submit } from './submit.ts'
import { tmuxSocket } from './tmux-socket.ts'
import { environmentScript, wrapped } from './wrapper.ts'

/** Runs each agent in its own tmux session, on a tmux server that only Coppice uses. */
export const createTmuxSessions = (context: SessionsContext): SessionKindRules => {
  const { home, clock, env, longestLogBytes = LONGEST_LOG_BYTES } = context
  const settingsFile = join(fleetHome(home), 'tmux.conf')
  const tmux: Tmux = createTmux({ socket: tmuxSocket(home), settingsFile, env, clock })

  const start = async (
    { name, directory: worktree, command, variables, mark, answersRequests, escapeOnInterrupt }: NewSession,
    onBegun: (session: FleetSession) => Promise<void>,
  ): Promise<FleetSession> => {
    makeDirectorySync(fleetHome(home))
    writeNewFileSync(settingsFile, tmuxSettings, { mode: 0o600 })
    await endDeadSession(name)
    const directory = prepareDirectory(context, name)
    // The session's TERM is tmux's, not ours.
    const { TERM: _ours, ...inTmux } = variables
    writeNewFileSync(environmentFile(directory), environmentScript(inTmux), { mode: 0o600 })
    const { pid } = await tmux.start({
      name: targetOf(name),
      directory: worktree,
      command: wrapped(command, { mark, directory, answersRequests }),
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
    // Finds the pane by its process, because an attached person may have opened other windows.
    send: async ({ root }, text) => {
      const pane = await tmux.paneOf(root.pid)
      if (pane.dead) throw new AppError('program-failed', 'its program has ended')
      await submit(tmux, pane, text)
    },
    clear: (name) => tmux.end(targetOf(name)),
    attachCommand: ({ target }) => tmux.attachCommand(target),
  }
}

const PREFIX = 'coppice-'
const targetOf = (name: string): string => `${PREFIX}${name}`
