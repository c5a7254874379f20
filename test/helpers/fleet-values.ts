import type { FleetAgent } from '../../src/domain/fleet/agent.ts'
import type { FormulaRun } from '../../src/domain/fleet/formula.ts'
import { toBranchName, toCodebaseId } from '../../src/domain/names.ts'
import type { Conversation } from '../../src/store/store.ts'
import type { LandingStore, NewItem, RecoveredItem } from '../../src/store/fleet/store.ts'
import { aSha } from './store-values.ts'

/** Values for store tests of the fleet, as in `store-values.ts`. */
export const aNewItem = (title: string, change: Partial<NewItem> = {}): NewItem => ({
  codebaseId: toCodebaseId('codebase-one'),
  title,
  body: '',
  priority: 2,
  after: [],
  source: undefined,
  createdBy: 'cli',
  createdAt: 1_700_000_000_000,
  ...change,
})

export const aRecoveredItem = (id: number, change: Partial<RecoveredItem> = {}): RecoveredItem => ({
  ...aNewItem(`recovered ${id}`),
  id,
  state: 'hooked',
  environmentId: undefined,
  pullRequest: undefined,
  ...change,
})

export const anAgent = (name: string, change: Partial<FleetAgent> = {}): FleetAgent => ({
  id: `agent-${name}`,
  host: 'host-a',
  name,
  kind: 'worker',
  pool: 'workers',
  codebaseId: toCodebaseId('codebase-one'),
  program: 'demo',
  state: 'spawning',
  itemId: undefined,
  environmentId: undefined,
  spawn: `spawn-${name}`,
  session: undefined,
  restarts: 0,
  lastSignAt: 1,
  workedAt: undefined,
  drainingSince: undefined,
  holder: { pid: 1, startTime: 'start-1' },
  createdAt: 1,
  endedAt: undefined,
  ...change,
})

export const aRun = (id: string, agentId: string, change: Partial<FormulaRun> = {}): FormulaRun => ({
  id,
  agentId,
  itemId: undefined,
  formula: 'push',
  steps: [{ step: 'validate', state: 'pending' }],
  waiter: undefined,
  state: 'running',
  branch: 'agent/alder-1',
  sha: undefined,
  pullRequest: undefined,
  close: false,
  holder: undefined,
  createdAt: 1,
  updatedAt: 1,
  ...change,
})

type NewLanding = Parameters<LandingStore['enqueue']>[0]

export const aNewLanding = (branch: string, change: Partial<NewLanding> = {}): NewLanding => ({
  codebaseId: toCodebaseId('codebase-one'),
  itemId: undefined,
  branch: toBranchName(branch),
  sha: aSha('a'),
  createdBy: 'cli',
  createdAt: 1,
  ...change,
})

export const aConversation = (key: string, change: Partial<Conversation> = {}): Conversation => ({
  id: `conversation-${key}`,
  platform: 'slack',
  conversationId: key,
  codebaseId: undefined,
  environmentId: undefined,
  persistent: false,
  agent: undefined,
  lastActivityAt: 1,
  closedAt: undefined,
  createdAt: 1,
  ...change,
})
