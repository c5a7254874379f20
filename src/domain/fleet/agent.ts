import { AppError } from '../errors.ts'
import type { CodebaseId, EnvironmentId } from '../names.ts'
import type { ProcessIdentity } from '../process-identity.ts'

export const fleetAgentStates = [
  'spawning',
  'working',
  'finishing',
  'stuck',
  'draining',
  'stopped',
  'crashed',
  'gone',
] as const
export type FleetAgentState = (typeof fleetAgentStates)[number]

/**
 * The state machine; an illegal transition throws. working → spawning: it waited for an item, and is being told of one.
 * finishing → working: its formula refused, so the agent has to continue. stopped, crashed → spawning: its session is
 * started again in the same worktree.
 */
const transitions: Record<FleetAgentState, readonly FleetAgentState[]> = {
  spawning: ['working', 'stopped', 'crashed', 'gone'],
  working: ['spawning', 'finishing', 'stuck', 'draining', 'stopped', 'crashed', 'gone'],
  finishing: ['working', 'stopped', 'crashed', 'gone'],
  stuck: ['working', 'finishing', 'draining', 'stopped', 'crashed', 'gone'],
  draining: ['working', 'finishing', 'stopped', 'crashed', 'gone'],
  stopped: ['spawning', 'finishing', 'gone'],
  crashed: ['spawning', 'finishing', 'stopped', 'gone'],
  gone: [],
}

export const canAgentBecome = (from: FleetAgentState, to: FleetAgentState): boolean => transitions[from].includes(to)

export const assertAgentTransition = (from: FleetAgentState, to: FleetAgentState): void => {
  if (!canAgentBecome(from, to)) throw new AppError('illegal-transition', `an agent that is ${from} can't become ${to}`)
}

/** Its session may be alive. In the others it was seen to be dead, or never started. */
export const mayHaveSession = (state: FleetAgentState): boolean => !sessionless.has(state)
const sessionless: ReadonlySet<FleetAgentState> = new Set(['stopped', 'crashed', 'gone'])

export const sessionKinds = ['tmux', 'process'] as const
export type SessionKind = (typeof sessionKinds)[number]

/** A running agent program: in tmux, or a background process with its output in a log. */
export type FleetSession = {
  readonly kind: SessionKind
  /** The tmux session's name, or the agent's. */
  readonly target: string
  /** The process at the root of the session. */
  readonly root: ProcessIdentity
  readonly startedAt: number
}

/** worker: spawned for an item, gone when that is done. crew: permanent, with a tree in any number of codebases. */
export type FleetAgentKind = 'worker' | 'crew'

/** Of the conversations that keep agents' sessions. */
export const FLEET_PLATFORM = 'fleet'

/** One named agent of the fleet. The program that it runs is `program`. */
export type FleetAgent = {
  readonly id: string
  readonly host: string
  readonly name: string
  readonly kind: FleetAgentKind
  /** Undefined for crew. */
  readonly pool: string | undefined
  /** Where it works. A crew member's first one. */
  readonly codebaseId: CodebaseId
  readonly program: string
  readonly state: FleetAgentState
  readonly itemId: number | undefined
  readonly environmentId: EnvironmentId | undefined
  /** A secret of this one life of the agent: a command of an earlier session is refused. */
  readonly spawn: string
  readonly session: FleetSession | undefined
  /** How often a session that crashed was started again for the same item. */
  readonly restarts: number
  readonly lastSignAt: number
  /** When its program first ran; undefined: it never has, so that undoing its creation loses nothing. */
  readonly workedAt: number | undefined
  /** Since when it is to end after its item. */
  readonly drainingSince: number | undefined
  /** Who is starting or stopping it. A dead one has left it half done. */
  readonly holder: ProcessIdentity
  readonly createdAt: number
  readonly endedAt: number | undefined
}

/** Part of tmux targets, directories, branches and variables. */
export const agentNameProblem = (name: string): string | undefined =>
  /^[a-z][a-z0-9-]{0,29}$/.test(name) && !name.endsWith('-')
    ? undefined
    : 'it needs 1 to 30 lower-case letters, digits and dashes, and starts with a letter'

export const toAgentName = (name: string): string => {
  const problem = agentNameProblem(name)
  if (problem === undefined) return name
  throw new AppError('name-invalid', `${JSON.stringify(name.slice(0, 60))} isn't a valid agent name: ${problem}`)
}

/** Has an agent's program run lately in this environment, or may it still? Its environment is then never removed. */
export const isLive = ({ state }: Pick<FleetAgent, 'state'>): boolean => state !== 'gone'
