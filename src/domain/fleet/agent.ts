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
 * The state machine; an illegal transition throws. working → spawning: an idle agent is being given an item.
 * finishing → working: its formula refused, so the agent has to continue. stopped, crashed → spawning: its session is
 * restarted in the same worktree.
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

/** Whether the session may be alive. In the other states it is known to be dead, or was never started. */
export const mayHaveSession = (state: FleetAgentState): boolean => !sessionless.has(state)
const sessionless: ReadonlySet<FleetAgentState> = new Set(['stopped', 'crashed', 'gone'])

/** `stopAgent` is ending its session. An agent that drains because its pool shrinks has `drainingSince`. */
export const isBeingStopped = ({ state, drainingSince }: Pick<FleetAgent, 'state' | 'drainingSince'>): boolean =>
  state === 'draining' && drainingSince === undefined

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

/** worker: spawned for an item, gone when it is done. crew: permanent, with a worktree in any number of codebases. */
export type FleetAgentKind = 'worker' | 'crew'

/** Tells commands in a sandbox where to leave requests. If it isn't set, they do the work themselves. */
export const REQUESTS = 'COPPICE_REQUESTS'

/** The platform of the conversations that store agents' sessions. */
export const FLEET_PLATFORM = 'fleet'

/** A named agent of the fleet. `program` is what it runs. */
export type FleetAgent = {
  readonly id: string
  readonly host: string
  readonly name: string
  readonly kind: FleetAgentKind
  /** Undefined for crew. */
  readonly pool: string | undefined
  /** Where it works. For a crew member: the codebase of its current or last item, at first its first codebase. */
  readonly codebaseId: CodebaseId
  readonly program: string
  readonly state: FleetAgentState
  readonly itemId: number | undefined
  readonly environmentId: EnvironmentId | undefined
  /** A secret token, new for each session. Commands of an earlier session are refused. */
  readonly spawn: string
  readonly session: FleetSession | undefined
  /** How often its session was restarted after a crash, for the same item. */
  readonly restarts: number
  readonly lastSignAt: number
  /** When its program first ran. Undefined: never, so undoing its creation loses nothing. */
  readonly workedAt: number | undefined
  /** When it was told to end after its item. */
  readonly drainingSince: number | undefined
  /** The process that is starting or ending it. If it has died, recovery completes or undoes that. */
  readonly holder: ProcessIdentity
  readonly createdAt: number
  readonly endedAt: number | undefined
}

/** Strict, because names become part of tmux targets, directories, branches and variables. */
export const agentNameProblem = (name: string): string | undefined =>
  /^[a-z][a-z0-9-]{0,29}$/.test(name) && !name.endsWith('-')
    ? undefined
    : 'use 1 to 30 lowercase letters, digits and dashes, starting with a letter'

export const toAgentName = (name: string): string => {
  const problem = agentNameProblem(name)
  if (problem === undefined) return name
  throw new AppError('name-invalid', `${JSON.stringify(name.slice(0, 60))} isn't a valid agent name: ${problem}`)
}

/** Whether the agent's program may be running in its environment, which is then never removed. */
export const isLive = ({ state }: Pick<FleetAgent, 'state'>): boolean => state !== 'gone'
