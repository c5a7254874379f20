import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { AppError, isAppError } from '../domain/errors.ts'
import { agentNameProblem, type FleetAgent, type FleetSession, mayHaveSession } from '../domain/fleet/agent.ts'
import { coppice, remedy } from '../domain/remedy.ts'
import { shellWord } from '../domain/text/shell-word.ts'
import { withoutInvisible } from '../domain/text/visible.ts'
import { makeDirectorySync } from '../process/files/make-directory.ts'
import { writeNewFileSync } from '../process/files/replace-file.ts'
import { liveness } from '../process/identity.ts'
import type { FleetContext } from './context.ts'
import { messageText } from './message-text.ts'
import { tailOf } from './sessions/log.ts'
import { agentDirectory, logFile, messagesDirectory } from './sessions/paths.ts'

/** A terminal in line mode accepts 4,096 bytes per line and drops the rest. */
const MOST_BYTES = 3_500

const MOST_NUDGE_CHARACTERS = 100_000

/** The last lines that the agent printed, from its session or, once that has ended, from its log. */
export const peekAt = async (context: FleetContext, name: string, lines: number): Promise<string> => {
  const { isolation, sessions, redact } = context
  const agent = await isolation.store.fleetAgents.byName(isolation.host, name)
  const session = agent !== undefined && mayHaveSession(agent.state) ? agent.session : undefined
  if (session !== undefined) {
    // If the session has just ended, its log still has the lines.
    const shown = await sessions
      .of(session.kind)
      .peek(session, lines)
      .catch(() => undefined)
    if (shown !== undefined) return redact(lastLines(shown, lines))
  }
  // The name becomes part of a path.
  if (agentNameProblem(name) !== undefined) throw unknownAgent(name)
  const log = logFile(isolation.home, name)
  if (agent === undefined && !existsSync(log)) throw unknownAgent(name)
  return redact(lastLines(tailOf(log, lines), lines))
}

const lastLines = (text: string, lines: number): string => text.trimEnd().split('\n').slice(-lines).join('\n')

/** Sends a running agent a text as if a person had typed it. */
export const nudgeAgent = async (context: FleetContext, name: string, given: string): Promise<FleetAgent> => {
  const { isolation, sessions } = context
  const agent = await isolation.store.fleetAgents.byName(isolation.host, name)
  if (agent === undefined) throw absentAgent(context, name)
  const session = runningSession(agent)
  // Removes control characters, which the program's terminal would take for keys.
  const text = messageText(withoutInvisible(given).trim(), agent)
  if (text === '' || text.length > MOST_NUDGE_CHARACTERS) {
    throw new AppError('usage', `a message needs 1 to ${MOST_NUDGE_CHARACTERS} characters`)
  }
  const sent = Buffer.byteLength(text) > MOST_BYTES ? byFile(context, name, text) : text
  try {
    await sessions.of(session.kind).send(session, sent)
  } catch (error) {
    if (!isAppError(error, 'program-failed') || error.remedy !== undefined) throw error
    throw new AppError('program-failed', `${name} can't be reached: ${error.message}`, {
      cause: error,
      remedy: remedy`start its session again: ${coppice(`fleet down ${shellWord(name)}`)}, then ${coppice(`fleet up ${shellWord(name)}`)}`,
    })
  }
  return agent
}

/** Throws if its program has ended. */
export const runningSession = ({ name, session, state }: FleetAgent): FleetSession => {
  if (session !== undefined && mayHaveSession(state) && liveness(session.root) !== 'dead') return session
  throw new AppError('not-found', `${name} isn't running`, {
    remedy: remedy`start it again: ${coppice(`fleet up ${shellWord(name)}`)}`,
  })
}

const byFile = ({ isolation: { home, ids } }: FleetContext, name: string, text: string): string => {
  const directory = messagesDirectory(agentDirectory(home, name))
  makeDirectorySync(directory)
  const file = join(directory, `${ids().slice(0, 8)}.txt`)
  writeNewFileSync(file, `${text}\n`, { mode: 0o600 })
  return `There is a long message for you. Read ${file}`
}

/** A worker is gone when its item is done; its log stays. */
export const absentAgent = ({ isolation: { home } }: Pick<FleetContext, 'isolation'>, name: string): AppError =>
  agentNameProblem(name) === undefined && existsSync(logFile(home, name))
    ? new AppError('not-found', `${name} has finished and is gone`, {
        remedy: remedy`see its last lines: ${coppice(`peek ${shellWord(name)}`)}`,
      })
    : unknownAgent(name)

export const unknownAgent = (name: string): AppError =>
  new AppError('not-found', `unknown agent ${JSON.stringify(name.slice(0, 60))}`, {
    remedy: remedy`run ${coppice('fleet status')} for a list`,
  })
