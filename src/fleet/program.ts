import { chooseAgent } from '../agents/registry.ts'
import type { Agent, OutsideDirectories } from '../agents/agent.ts'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import type { FleetAgent, SessionKind } from '../domain/fleet/agent.ts'
import type { PoolSettings } from '../domain/fleet/pool.ts'
import type { FleetContext } from './context.ts'
import { assertDatabaseInConfig } from './sessions/database.ts'
import { messagesDirectory, requestsDirectory } from './sessions/paths.ts'

/** The `program` of agents in a pool with `command`. */
export const COMMAND_LINE = 'command line'

/** The name of a new agent's program. Throws if it can't run here, before anything has been created. */
export const programFor = async (
  { agents, isolation }: Pick<FleetContext, 'agents' | 'isolation'>,
  { agent: wanted, command }: Pick<PoolSettings, 'agent' | 'command'>,
  codebase: Pick<Codebase, 'defaultAgent'>,
): Promise<string> => {
  const { settings } = isolation
  assertDatabaseInConfig(isolation)
  if (command !== undefined) return COMMAND_LINE
  const { agent } = await chooseAgent({ agents, wanted, codebaseDefault: codebase.defaultAgent, settings })
  const found = await agent.availability()
  if (found.state !== 'ready') throw new AppError('program-failed', found.problem, { remedy: found.remedy })
  return agent.name
}

export type SessionProgram = {
  readonly command: readonly [string, ...string[]]
  readonly variables: Readonly<Record<string, string>>
  /** If false, the session runs Coppice, which starts the agent's program in the environment for each turn. */
  readonly runsInEnvironment: boolean
  /** Its commands run in a sandbox, so the session answers their requests. */
  readonly isConfined: boolean
  readonly escapeOnInterrupt?: true
}

export type ProgramRequest = {
  readonly agent: FleetAgent
  readonly environment: IsolatedEnvironment
  readonly pool: PoolSettings | undefined
  readonly kind: SessionKind
  readonly beacon: string
  readonly sessionId: string
  readonly resume: boolean
  /** The agent's directory in the home. */
  readonly files: string
}

/**
 * The command of an agent's session. In tmux, a program runs in its own terminal interface if it can do so without
 * asking questions. Otherwise Coppice runs it turn by turn, with the session's input and output.
 */
export const sessionProgram = async (
  { agents, installation }: Pick<FleetContext, 'agents' | 'installation'>,
  { agent, environment, pool, kind, beacon, sessionId, resume, files }: ProgramRequest,
): Promise<SessionProgram> => {
  if (agent.program === COMMAND_LINE) {
    const command = pool?.command
    if (command !== undefined) {
      return { command: ['/bin/sh', '-c', command], variables: {}, runsInEnvironment: true, isConfined: false }
    }
    throw new AppError('not-found', `${agent.name}'s pool no longer has a command`, {
      remedy: `set fleet.pools.${agent.pool ?? '…'}.command in config.yaml, or close its item`,
    })
  }
  const program = agentNamed(agents, agent)
  const granted = program.granted ?? {}
  const isConfined = (await program.confinesCommands?.()) === true
  const { path: directory } = environment
  const outside = outsideDirectories(files, { isConfined })
  const request = { directory, prompt: beacon, sessionId, since: agent.createdAt, resume, outside, files }
  const started = kind === 'tmux' ? await program.interactive?.(request) : undefined
  if (started !== undefined) {
    return { ...started, variables: { ...granted, ...started.variables }, runsInEnvironment: true, isConfined }
  }
  const turnByTurn = ['internal', 'agent-session', agent.id, ...(resume ? [] : ['--fresh'])]
  return { command: [...installation, ...turnByTurn], variables: granted, runsInEnvironment: false, isConfined }
}

/** What an agent's program may read and write in the agent's directory. */
export const outsideDirectories = (
  files: string,
  { isConfined }: Pick<SessionProgram, 'isConfined'>,
): OutsideDirectories => ({
  readable: [messagesDirectory(files)],
  writable: isConfined ? [requestsDirectory(files)] : [],
})

const agentNamed = (agents: ReadonlyMap<string, Agent>, { name, program }: FleetAgent): Agent => {
  const found = agents.get(program)
  if (found !== undefined) return found
  throw new AppError('not-found', `${name} runs the agent ${program}, which is no longer set up`, {
    remedy: `set it up again; the agents are: ${[...agents.keys()].join(', ')}`,
  })
}
