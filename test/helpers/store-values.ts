import type { Codebase, IsolatedEnvironment } from '../../src/domain/environment.ts'
import { toBranchName, toCodebaseId, toEnvironmentId, toSha } from '../../src/domain/names.ts'

/** Values for store tests; `key` makes each of them unlike the others. */
export const aCodebase = (key = 'one', change: Partial<Codebase> = {}): Codebase => ({
  id: toCodebaseId(`codebase-${key}`),
  host: 'host-a',
  name: key,
  repoPath: `/repos/${key}/.git`,
  checkoutPath: undefined,
  remote: undefined,
  remoteUrl: undefined,
  baseBranch: undefined,
  github: undefined,
  defaultAgent: undefined,
  cloned: false,
  trustedConfig: undefined,
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
  isFork: false,
  prNumber: undefined,
  prBranch: undefined,
  ...change,
})

export const aSha = (digit: string) => toSha(digit.repeat(40))
