import { chooseAgent } from '../agents/registry.ts'
import type { Agent, OutsideDirectories } from '../agents/agent.ts'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import type { FleetAgent, SessionKind } from '../domain/fleet/agent.ts'
import type { PoolSettings } from '../domain/fleet/pool.ts'
import type { FleetContext } from './context.ts'
import { assertDatabaseInConfig } from './sessions/database.ts'
import { messagesDirectory, requestsDirectory } from './sessions/paths.ts'

/** What an agent of a pool with `command` runs. */
export const COMMAND_LINE = 'command line'

/** The program of a new agent, by name. Throws if it isn't installed or couldn't work: nothing has been made yet. */
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
  /** Otherwise it is Coppice, which starts the agent's program there turn by turn. */
  readonly runsInEnvironment: boolean
  /** Its commands run in a sandbox: the session answers their requests. */
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
  /** The agent's own. */
  readonly files: string
}

/**
 * The command of an agent's session. In tmux, a program with a terminal of its own runs as it is, if it can do that
 * without asking anything. Any other is run by Coppice turn by turn, with the same input and output.
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

/** Of an agent's own directory: what its program may read, and write. */
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
