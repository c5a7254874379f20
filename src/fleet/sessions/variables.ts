import { delimiter, join } from 'node:path'
import { type Setting, settingTable } from '../../domain/config/settings.ts'
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { type FleetAgent, REQUESTS } from '../../domain/fleet/agent.ts'
import type { Author } from '../../isolation/provider.ts'
import { portVariables } from '../../isolation/ports.ts'
import { runVariable, type RunMark } from '../../process/run-mark.ts'
import { makeDirectorySync } from '../../process/files/make-directory.ts'
import { replaceFileSync } from '../../process/files/replace-file.ts'
import type { FleetContext } from '../context.ts'
import type { SessionProgram } from '../program.ts'
import { agentDirectory, fleetHome, requestsDirectory } from './paths.ts'

/** Variables that tie a command to an agent. Processes that must outlive a session are started without them. */
export const sessionOnly: ReadonlySet<string> = new Set([
  'COPPICE_DIR',
  'COPPICE_AGENT',
  'COPPICE_POOL',
  'COPPICE_CODEBASE',
  'COPPICE_BRANCH',
  'COPPICE_ITEM',
  'COPPICE_SPAWN',
  'COPPICE_BEACON',
  REQUESTS,
  runVariable,
])

export type SessionVariables = {
  readonly agent: FleetAgent
  readonly codebase: Codebase
  readonly environment: IsolatedEnvironment
  readonly mark: RunMark
  readonly beacon: string
  readonly program: Pick<SessionProgram, 'variables' | 'isConfined'>
}

/**
 * The whole environment of a session. Unlike a conversation's agent, it gets COPPICE_HOME, because its commands
 * (`coppice prime`, `coppice done`) need it.
 */
export const sessionVariables = async (
  { isolation, installation }: Pick<FleetContext, 'isolation' | 'installation'>,
  { agent, codebase, environment, mark, beacon, program }: SessionVariables,
): Promise<Record<string, string>> => {
  const { programEnvironment, home } = isolation
  return {
    ...programEnvironment,
    ...ownSettings(isolation),
    ...(await portVariables(isolation, environment)),
    ...program.variables,
    PATH: [installShim(home, installation), programEnvironment['PATH']].filter(Boolean).join(delimiter),
    ...(agent.kind === 'crew' && authorOf(agent.name)),
    COPPICE_HOME: home,
    COPPICE_DIR: environment.path,
    COPPICE_AGENT: agent.name,
    ...(agent.pool !== undefined && { COPPICE_POOL: agent.pool }),
    COPPICE_CODEBASE: codebase.name,
    COPPICE_BRANCH: environment.branch,
    ...(agent.itemId !== undefined && { COPPICE_ITEM: String(agent.itemId) }),
    COPPICE_SPAWN: agent.spawn,
    COPPICE_BEACON: beacon,
    ...(program.isConfined && { [REQUESTS]: requestsDirectory(agentDirectory(home, agent.name)) }),
    [runVariable]: mark.id,
  }
}

/** Passes settings that come from variables on to the agent's commands, except secrets. */
const ownSettings = ({ ownEnvironment = {} }: Pick<FleetContext['isolation'], 'ownEnvironment'>) =>
  Object.fromEntries(
    Object.values<Setting<unknown>>(settingTable).flatMap(({ variable, rule }) => {
      if (variable === undefined || rule.secret === true || sessionOnly.has(variable)) return []
      const value = ownEnvironment[variable]
      return value === undefined ? [] : [[variable, value] as const]
    }),
  )

/** A crew member commits under the same name everywhere. No mail can be delivered to this address. */
export const identityOf = (name: string): Author => ({ name, email: `${name}@crew.coppice.invalid` })

const authorOf = (agent: string): Record<string, string> => {
  const { name, email } = identityOf(agent)
  return { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email }
}

/** Creates the directory that goes first on a session's PATH. Its `coppice` runs this installation. */
const installShim = (home: string, installation: readonly string[]): string => {
  const directory = join(fleetHome(home), 'bin')
  makeDirectorySync(directory)
  const words = installation.map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`)
  replaceFileSync(join(directory, 'coppice'), `#!/bin/sh\nexec ${words.join(' ')} "$@"\n`, { mode: 0o700 })
  return directory
}
