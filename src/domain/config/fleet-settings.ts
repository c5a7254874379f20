import type { PoolSettings } from '../fleet/pool.ts'
import { agentName, anyPools, defaultPool, type PoolRow, type SessionChoice, sessionChoices } from './fleet.ts'
import * as rule from './rules.ts'

export type FleetSettings = {
  readonly fleetSession: SessionChoice
  readonly patrolSeconds: number
  /** Across all pools of this host. */
  readonly maxAgents: number
  /** How often a crashed agent is restarted for one item. */
  readonly fleetRestarts: number
  /** Without a sign of life for this long, an agent with an item is stuck. */
  readonly stuckMinutes: number
  /** So many agents have to die, within so many seconds, to pause the fleet. */
  readonly massDeathAgents: number
  readonly massDeathSeconds: number
  /** A crew member, by name. */
  readonly supervisor: string | undefined
  readonly supervisorMinutes: number
  readonly pools: readonly PoolSettings[]
}

/** `fleet.…` in `config.yaml`. */
export const fleetSettingTable: {
  readonly [Name in keyof FleetSettings]: PoolRow<FleetSettings[Name]> & { readonly key: string }
} = {
  fleetSession: {
    default: 'auto',
    key: 'fleet.session',
    rule: rule.oneOf(sessionChoices),
    about:
      "Where the fleet's agents run: in `tmux`, where you can attach to them, or each as a background `process`. `auto` uses tmux if it is installed.",
  },
  patrolSeconds: {
    default: 30,
    key: 'fleet.patrolSeconds',
    rule: rule.number(1, 3_600, 30),
    about: 'How often the server checks on the fleet while there are agents, in seconds.',
  },
  maxAgents: {
    default: 20,
    key: 'fleet.maxAgents',
    rule: rule.wholeNumber(1, 1_000, 20),
    about: 'The maximum number of workers on this machine, in all pools.',
  },
  fleetRestarts: {
    default: 3,
    key: 'fleet.restarts',
    rule: rule.wholeNumber(0, 100, 3),
    about: 'How often a crashed agent is restarted for the same item. After that, the item is parked.',
  },
  stuckMinutes: {
    default: 30,
    key: 'fleet.stuckMinutes',
    rule: rule.number(1, 10_080, 30),
    about:
      'An agent with an item is asked whether it is stuck after this long without output, changes in its worktree and CPU time.',
  },
  massDeathAgents: {
    default: 3,
    key: 'fleet.massDeath.agents',
    rule: rule.wholeNumber(2, 1_000, 3),
    about: 'If so many agents die within `fleet.massDeath.seconds`, no more are started until `coppice fleet up`.',
  },
  massDeathSeconds: {
    default: 30,
    key: 'fleet.massDeath.seconds',
    rule: rule.wholeNumber(1, 86_400, 30),
    about: 'The time for `fleet.massDeath.agents`.',
  },
  supervisor: {
    default: undefined,
    key: 'fleet.supervisor',
    rule: agentName,
    about: 'A crew member who is told about problems with agents before you are.',
  },
  supervisorMinutes: {
    default: 10,
    key: 'fleet.supervisorMinutes',
    rule: rule.number(1, 1_440, 10),
    about: 'How long the supervisor may take to solve a problem. After that, it is reported to you.',
  },
  pools: {
    default: [defaultPool],
    key: 'fleet.pools',
    rule: anyPools,
    about: 'The pools of workers, by name. Default: one pool, `workers`, with the defaults below.',
  },
}
