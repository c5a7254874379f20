import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createOnEnvironmentLost } from '../../src/conversations/environment-lost.ts'
import { defaultSettings, type Settings } from '../../src/domain/config/settings.ts'
import type { Codebase } from '../../src/domain/environment.ts'
import { toCodebaseId } from '../../src/domain/names.ts'
import type { IsolationContext } from '../../src/isolation/context.ts'
import { providers } from '../../src/isolation/providers/registry.ts'
import { createRepositoryLock } from '../../src/isolation/lock/lock.ts'
import type { Environments } from '../../src/isolation/environments.ts'
import { leaveLiveWorktree } from '../../src/isolation/codebases/live-worktree.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { deleteTreeSync } from '../../src/process/files/delete-tree.ts'
import { allowedEnvironment } from '../../src/process/environment.ts'
import { selfIdentity } from '../../src/process/identity.ts'
import { createLogger } from '../../src/process/log.ts'
import type { Store } from '../../src/store/store.ts'
import { randomUUID } from 'node:crypto'
import { addOrigin, makeSandbox, type Sandbox, type Template, type TestRepo } from './repo.ts'
import { openCopiedStore } from './store.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'
import { knownPlatforms } from '../../src/platforms/capabilities.ts'

/** A sandbox with a registered repository and everything isolation stands on: real git, real SQLite, real files. */
export type World = {
  readonly box: Sandbox
  readonly repo: TestRepo
  readonly codebase: Codebase
  readonly context: IsolationContext
  readonly provider: Environments
  readonly progress: string[]
  [Symbol.asyncDispose](): Promise<void>
}

export type WorldOptions = {
  readonly context?: Partial<IsolationContext>
  readonly settings?: Partial<Settings>
  /** A bare repository as `origin`, pushed to and fetched from. */
  readonly remote?: boolean
  /** What is the same in many worlds. */
  readonly template?: Template
  readonly prepare?: (repo: TestRepo, box: Sandbox) => void
  readonly store?: Store
}

export const makeWorld = async (options: WorldOptions = {}): Promise<World> => {
  const box = makeSandbox()
  // What is prepared is pushed, too.
  const isCopied = options.remote === true && options.prepare === undefined
  const repo = isCopied ? box.repoWithOrigin('project', options.template) : box.repo('project', options.template)
  options.prepare?.(repo, box)
  if (options.remote === true && !isCopied) addOrigin(box, repo)
  const progress: string[] = []
  const context = await makeContext(box, { progress: (message) => progress.push(message), ...options.context }, options)
  const codebase = await register(context, repo, options.remote === true)
  return {
    box,
    repo,
    codebase,
    context,
    provider: createEnvironments(context),
    progress,
    [Symbol.asyncDispose]: async () => {
      await context.store.close()
      box[Symbol.dispose]()
    },
  }
}

/** A second process in the same world would make one of these. */
export const makeContext = async (
  box: Sandbox,
  overrides: Partial<IsolationContext>,
  options: Pick<WorldOptions, 'settings' | 'store'> = {},
): Promise<IsolationContext> => {
  const home = box.path('state')
  mkdirSync(home, { recursive: true })
  return {
    store: options.store ?? (await openCopiedStore(join(home, 'coppice.db'))),
    git: box.git({ home }),
    providers,
    lock: createRepositoryLock({ clock: Date.now, random: Math.random }),
    clock: Date.now,
    ids: randomUUID,
    log: createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text }),
    secrets: createSecrets(),
    settings: { ...defaultSettings, spares: 0, ...options.settings },
    host: 'this-host',
    home,
    worktreesBase: box.path('trees'),
    self: selfIdentity(),
    programEnvironment: allowedEnvironment(box.env),
    progress: () => undefined,
    approve: undefined,
    repoConfigs: new Map(),
    onEnvironmentLost: createOnEnvironmentLost({
      isolation: { ids: randomUUID, clock: Date.now },
      redact: (text) => text,
      platforms: async () => knownPlatforms,
    }),
    deleteInBackground: (paths) => {
      for (const path of paths) {
        try {
          deleteTreeSync(path, { leave: leaveLiveWorktree })
        } catch {
          // As in the background, where what had to be left is logged.
        }
      }
    },
    failpoint: async () => undefined,
    ...overrides,
  }
}

const register = async (context: IsolationContext, repo: TestRepo, remote: boolean): Promise<Codebase> => {
  const codebase: Codebase = {
    id: toCodebaseId('project-id'),
    host: context.host,
    name: 'project',
    repoPath: repo.commonDir,
    checkoutPath: repo.path,
    repoInode: undefined,
    remote: remote ? 'origin' : undefined,
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
    createdAt: context.clock(),
  }
  await context.store.codebases.insert(codebase)
  return codebase
}
