import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import type { FleetAgent, FleetSession } from '../domain/fleet/agent.ts'
import type { Item } from '../domain/fleet/item.ts'
import type { PoolSettings } from '../domain/fleet/pool.ts'
import { acquireLease } from '../isolation/lease.ts'
import { providerOf } from '../isolation/provider-of.ts'
import { makeDirectorySync } from '../process/files/make-directory.ts'
import { agentMark } from '../process/run-mark.ts'
import { writeAgentFile } from './agent-file.ts'
import type { FleetContext } from './context.ts'
import { type SessionProgram, sessionProgram } from './program.ts'
import { beaconFor } from './sessions/beacon.ts'
import type { NewSession } from './sessions/session.ts'
import { agentDirectory } from './sessions/paths.ts'
import { sessionVariables } from './sessions/variables.ts'
import { treeOf } from './tree.ts'

export type SessionStart = {
  /** Must be `spawning`, with us as its holder. */
  readonly agent: FleetAgent
  readonly item: Item | undefined
  readonly codebase: Codebase
  readonly environment: IsolatedEnvironment
  readonly pool: PoolSettings | undefined
  /** Continue the program's own session. */
  readonly resume: boolean
}

/**
 * Starts the agent's program in its environment, and leases the environment for it. Resolves once the program itself is
 * running. A failure leaves nothing of the session behind.
 */
export const startSession = async (
  context: FleetContext,
  { agent, item, codebase, environment, pool, resume }: SessionStart,
): Promise<FleetSession> => {
  const { isolation, sessions } = context
  const { failpoint, home, ids } = isolation
  isolation.progress(`starting ${agent.name}`)
  writeAgentFile(await treeOf(isolation, codebase, environment), agent, item)
  await failpoint('spawn.noted')
  const kind = sessions.chosen()
  const mark = agentMark(home, agent.spawn)
  const beacon = beaconFor(agent, item, codebase, environment)
  const files = agentDirectory(home, agent.name)
  makeDirectorySync(files)
  const program = await sessionProgram(context, {
    agent,
    environment,
    pool,
    kind: kind.kind,
    beacon,
    sessionId: resume || agent.restarts === 0 ? agent.id : ids(),
    resume,
    files,
  })
  const variables = await sessionVariables(context, { agent, codebase, environment, mark, beacon, program })
  const session = await kind.start(
    {
      name: agent.name,
      ...(await launched(context, environment, program, variables)),
      mark,
      answersRequests: program.isConfined,
      escapeOnInterrupt: program.escapeOnInterrupt,
    },
    async (begun) => {
      await failpoint('spawn.started')
      // Before anything else, because it protects the environment from removal.
      await isolation.store.fleetAgents.update(agent.id, { session: begun })
      const purpose = `the fleet's agent ${agent.name}`
      await acquireLease(isolation, codebase, environment, { purpose, holder: begun.root, alone: true })
      await failpoint('spawn.leased')
    },
  )
  await failpoint('spawn.running')
  return session
}

/**
 * Lets the provider wrap a program that runs in the environment. Coppice itself runs outside it, and starts each turn
 * inside.
 */
const launched = async (
  { isolation }: Pick<FleetContext, 'isolation'>,
  environment: IsolatedEnvironment,
  { command: [first, ...args], runsInEnvironment }: SessionProgram,
  variables: Readonly<Record<string, string>>,
): Promise<Pick<NewSession, 'directory' | 'command' | 'variables'>> => {
  const program = { command: first, args, cwd: environment.path, env: variables }
  const {
    command,
    args: words,
    cwd,
    env,
  } = runsInEnvironment ? (await providerOf(isolation, environment)).launch(environment, program) : program
  const set = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return { directory: cwd, command: [command, ...words], variables: Object.fromEntries(set) }
}
