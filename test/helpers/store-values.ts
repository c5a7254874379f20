import type { Codebase, IsolatedEnvironment } from '../../src/domain/environment.ts'
import type { InboxStore, MessageHolder, OutboxStore } from '../../src/store/store.ts'
import { toBranchName, toCodebaseId, toEnvironmentId, toSha } from '../../src/domain/names.ts'

/** Values for store tests; `key` makes each of them unlike the others. */
export const aCodebase = (key = 'one', change: Partial<Codebase> = {}): Codebase => ({
  id: toCodebaseId(`codebase-${key}`),
  host: 'host-a',
  name: key,
  repoPath: `/repos/${key}/.git`,
  checkoutPath: undefined,
  repoInode: undefined,
  remote: undefined,
  remoteUrl: undefined,
  baseBranch: undefined,
  base: undefined,
  github: undefined,
  defaultAgent: undefined,
  cloned: false,
  trustedConfig: undefined,
  configCommit: undefined,
  configText: undefined,
  fetchedAt: undefined,
  createdAt: 1_700_000_000_000,
  ...change,
})

export const anEnvironment = (key: string, change: Partial<IsolatedEnvironment> = {}): IsolatedEnvironment => ({
  id: toEnvironmentId(`environment-${key}`),
  host: 'host-a',
  codebaseId: toCodebaseId('codebase-one'),
  work: { type: 'task', id: key },
  provider: 'worktree',
  path: `/trees/${key}`,
  branch: toBranchName(`task-${key}`),
  branchOrigin: 'created',
  status: 'creating',
  owned: true,
  createdBy: 'cli',
  createdAt: 1_700_000_000_000,
  lastActivityAt: 1_700_000_000_000,
  startSha: undefined,
  adminName: undefined,
  baseBranch: undefined,
  trust: 'own',
  prNumber: undefined,
  prBranch: undefined,
  ...change,
})

export type AMessage = Parameters<InboxStore['accept']>[0][number]

export const aMessage = (key: string, change: Partial<AMessage> = {}): AMessage => ({
  id: `message-${key}`,
  platform: 'slack',
  conversationId: 'thread',
  deliveryId: `delivery-${key}`,
  kind: 'message',
  text: `do ${key}`,
  details: {},
  lane: 'turn',
  acceptedAt: 1_700_000_000_000,
  ...change,
})

export const aHolder = (pid: number, change: Partial<MessageHolder> = {}): MessageHolder => ({
  host: 'host-a',
  process: { pid, startTime: `start-${pid}` },
  ...change,
})

export type AReply = Parameters<OutboxStore['append']>[0][number]

export const aReply = (key: string, change: Partial<AReply> = {}): AReply => ({
  id: `reply-${key}`,
  platform: 'slack',
  conversationId: 'thread',
  inboxId: undefined,
  key,
  role: 'agent',
  text: `did ${key}`,
  nextAttemptAt: 100,
  createdAt: 100,
  ...change,
})

export const aSha = (digit: string) => toSha(digit.repeat(40))
