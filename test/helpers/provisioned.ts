import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { defaultRepoConfig, type RepoConfig } from '../../src/domain/config/repository.ts'
import { defaultSettings } from '../../src/domain/config/settings.ts'
import type { Codebase, EnvironmentStatus, IsolatedEnvironment } from '../../src/domain/environment.ts'
import { toBranchName, toCodebaseId, toEnvironmentId } from '../../src/domain/names.ts'
import type { Tree } from '../../src/git/door.ts'
import type { IsolationContext } from '../../src/isolation/context.ts'
import { providers } from '../../src/isolation/providers/registry.ts'
import { createRepositoryLock } from '../../src/isolation/lock/lock.ts'
import type { Provisioning } from '../../src/isolation/providers/checkout/provision/provisioning.ts'
import { allowedEnvironment } from '../../src/process/environment.ts'
import { selfIdentity } from '../../src/process/identity.ts'
import { makeSandbox, type Sandbox, type TestRepo } from './repo.ts'
import { openCopiedStore } from './store.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'

/** A registered repository with one environment, made with plain git, in a sandbox of its own. */
export type Dressed = AsyncDisposable & {
  readonly box: Sandbox
  readonly repo: TestRepo
  readonly context: IsolationContext
  readonly codebase: Codebase
  readonly environment: IsolatedEnvironment
  readonly tree: Tree
  /** What the user was told while waiting. */
  readonly progress: string[]
  provisioning(config?: Partial<RepoConfig>, more?: Partial<Provisioning>): Provisioning
  /** Another environment of the same codebase. */
  another(
    branch: string,
    status?: EnvironmentStatus,
    more?: Partial<IsolatedEnvironment>,
  ): Promise<{ environment: IsolatedEnvironment; tree: Tree }>
}

export type DressedOptions = {
  /** Called before the worktree is made: what the branch tracks. */
  readonly prepare?: (repo: TestRepo) => void
  readonly context?: Partial<IsolationContext>
  readonly codebase?: Partial<Codebase>
}

export const makeDressed = async (options: DressedOptions = {}): Promise<Dressed> => {
  const box = makeSandbox()
  const repo = box.repo('project')
  options.prepare?.(repo)
  const home = box.path('state')
  mkdirSync(home)
  const progress: string[] = []
  const store = await openCopiedStore(join(home, 'coppice.db'))
  let ids = 0
  const context: IsolationContext = {
    store,
    git: box.git(),
    providers,
    lock: createRepositoryLock({ clock: Date.now, random: Math.random }),
    clock: Date.now,
    ids: () => `id-${(ids += 1)}`,
    log: silent,
    secrets: createSecrets(),
    settings: defaultSettings,
    host: 'here',
    home,
    worktreesBase: box.path('worktrees'),
    self: selfIdentity(),
    programEnvironment: allowedEnvironment(box.env),
    progress: (message) => progress.push(message),
    approve: undefined,
    repoConfigs: new Map(),
    onEnvironmentLost: async () => undefined,
    deleteInBackground: () => undefined,
    failpoint: () => Promise.resolve(),
    ...options.context,
  }
  const codebase = codebaseOf(repo, options.codebase)
  await store.codebases.insert(codebase)
  const another: Dressed['another'] = async (branch, status = 'active', more = {}) => {
    const tree = repo.worktree(branch, '-b', branch)
    const environment = { ...environmentOf(codebase, tree, branch, repo), status, ...more }
    await store.environments.insert(environment, undefined)
    return { environment, tree }
  }
  const { environment, tree } = await another('issue-42')
  const provisioning = (config: Partial<RepoConfig> = {}, more: Partial<Provisioning> = {}): Provisioning => ({
    codebase,
    environment,
    tree,
    config: { ...defaultRepoConfig, ...config },
    ...more,
  })
  return {
    box,
    repo,
    context,
    codebase,
    environment,
    tree,
    progress,
    provisioning,
    another,
    [Symbol.asyncDispose]: async () => {
      await store.close()
      box[Symbol.dispose]()
    },
  }
}

const codebaseOf = (repo: TestRepo, more: Partial<Codebase> = {}): Codebase => ({
  id: toCodebaseId('codebase-1'),
  host: 'here',
  name: 'project',
  repoPath: repo.commonDir,
  checkoutPath: repo.path,
  repoInode: undefined,
  remote: undefined,
  remoteUrl: undefined,
  baseBranch: 'main',
  base: undefined,
  github: undefined,
  defaultAgent: undefined,
  cloned: false,
  trustedConfig: undefined,
  configCommit: undefined,
  configText: undefined,
  fetchedAt: undefined,
  createdAt: 1,
  ...more,
})

/** Adopted, so that no token has to be in git's record. */
const environmentOf = (codebase: Codebase, tree: Tree, branch: string, repo: TestRepo): IsolatedEnvironment => ({
  id: toEnvironmentId(`environment-${branch}`),
  host: 'here',
  codebaseId: codebase.id,
  work: { type: 'task', id: branch },
  provider: 'worktree',
  path: tree.path,
  branch: toBranchName(branch),
  branchOrigin: 'created',
  status: 'active',
  owned: false,
  createdBy: 'test',
  createdAt: 1,
  lastActivityAt: 1,
  startSha: repo.sha(),
  adminName: tree.gitDir.slice(tree.gitDir.lastIndexOf('/') + 1),
  baseBranch: 'main',
  trust: 'own',
  prNumber: undefined,
  prBranch: undefined,
})

const nothing = (): void => undefined
const silent: IsolationContext['log'] = {
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  child: () => silent,
}
