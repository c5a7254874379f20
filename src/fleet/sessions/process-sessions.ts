import { dirname } from 'node:path'
import { AppError } from '../../domain/errors.ts'
import type { FleetSession } from '../../domain/fleet/agent.ts'
import { unlessMissing } from '../../domain/missing.ts'
import { parseIdentityWord, identityWord, type ProcessIdentity } from '../../domain/process-identity.ts'
import { writeNewFileSync } from '../../process/files/replace-file.ts'
import { lstatIfThere } from '../../process/files/lstat-if-there.ts'
import { liveness } from '../../process/identity.ts'
import { listDirectory } from '../../process/files/list-directory.ts'
import { readUntrustedTextSync } from '../../process/files/read-untrusted.ts'
import { writeFifo } from '../../process/files/fifo.ts'
import { spawnDetached } from '../../process/spawn.ts'
import { unmarked } from '../../process/spawn-unmarked.ts'
import type { SessionsContext } from './context.ts'
import { LONGEST_LOG_BYTES, tailOf } from './log.ts'
import { agentDirectory, inputFile, logFile, rootFile } from './paths.ts'
import { endProcesses, prepareDirectory } from './prepare.ts'
import { untilRunning } from './running.ts'
import type { NewSession, SessionKindRules, ListedSession } from './session.ts'
import { wrapped } from './wrapper.ts'

/** Runs each agent as a background process without a terminal: output goes to a log, input comes from a FIFO. */
export const createProcessSessions = (context: SessionsContext): SessionKindRules => {
  const { home, clock, longestLogBytes = LONGEST_LOG_BYTES } = context

  const start = async (
    { name, directory: worktree, command, variables, mark, answersRequests }: NewSession,
    onBegun: (session: FleetSession) => Promise<void>,
  ): Promise<FleetSession> => {
    const earlier = sessionIn(agentDirectory(home, name), name)[0]
    if (earlier?.dead === false) throw new AppError('busy', `an earlier session of ${name} is still running`)
    const directory = prepareDirectory(context, name)
    let root: ProcessIdentity | undefined
    try {
      const [program, ...args] = wrapped(command, {
        mark,
        directory,
        worktree,
        answersRequests,
        log: { file: logFile(home, name), longestBytes: longestLogBytes },
      })
      root = await spawnDetached({
        // Unmarked, so that it doesn't end with an agent's session that this command may be running in.
        ...unmarked(program, args),
        cwd: worktree,
        env: variables,
        logFile: logFile(home, name),
      })
      const startedAt = clock()
      // No server lists these sessions; this file is how they are found.
      writeNewFileSync(rootFile(directory), `${identityWord(root)}\n`, { mode: 0o600, sync: true })
      const session: FleetSession = { kind: 'process', target: name, root, startedAt }
      await onBegun(session)
      await untilRunning(directory, root)
      return session
    } catch (error) {
      await endProcesses(context, { root, marks: [mark], graceMs: 0 })
      throw error
    }
  }

  return {
    kind: 'process',
    can: { attach: false },
    start,
    list: async () => {
      const entries = await unlessMissing(listDirectory(Buffer.from(dirname(agentDirectory(home, 'any')))))
      return (entries ?? []).flatMap(({ name }) => sessionIn(agentDirectory(home, name), name))
    },
    peek: async ({ target }, lines) => tailOf(logFile(home, target), lines),
    send: ({ target }, text) => writeFifo(inputFile(agentDirectory(home, target)), `${text}\n`),
    clear: async () => undefined,
  }
}

const sessionIn = (directory: string, name: string): ListedSession[] => {
  const startedAt = lstatIfThere(rootFile(directory))?.mtimeMs
  if (startedAt === undefined) return []
  const root = rootIn(directory)
  if (root === 'unusable') return [{ name, target: name, root: undefined, startedAt, dead: false }]
  return root === undefined ? [] : [{ name, target: name, root, startedAt, dead: liveness(root) === 'dead' }]
}

/** Doesn't throw: one unreadable file must not hide the sessions of other agents. */
const rootIn = (directory: string): ProcessIdentity | undefined | 'unusable' => {
  try {
    const text = readUntrustedTextSync(rootFile(directory), { maxBytes: 1_000 })
    return text === undefined ? undefined : (parseIdentityWord(text.trim()) ?? 'unusable')
  } catch {
    return 'unusable'
  }
}
