/*
 * The provider `clone`: a clone per environment, which reads the repository's objects and never writes there. In:
 * requests of the interface. Out: clones, and their commits brought to the repository.
 */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { toEnvironmentId } from '../../../domain/names.ts'
import { AppError, toAppError } from '../../../domain/errors.ts'
import { readToken } from '../../../git/admin-dir.ts'
import { borrowsFrom, cloneAt, setLender } from '../../../git/borrowing-clone.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { Provider } from '../../context.ts'
import { followRename } from '../checkout/follow-rename.ts'
import { checkoutProvider } from '../checkout/provider.ts'
import { importTips } from './import-commits.ts'
import { presenceOf } from './presence.ts'
import { tipRefOf } from './refs.ts'

const shared = checkoutProvider(async () => (await import('./checkout.ts')).ownClone)

/**
 * Environments are clones with their own refs, configuration and hooks. They read the repository's objects and write
 * nothing there; their commits are imported into it.
 */
export const clone: Provider = {
  name: 'clone',
  can: { adopt: false, keepSpares: false },
  ...shared,

  adopt: async (_context, _codebase, path) => {
    throw notAdoptable(path)
  },
  examine: async (_context, _codebase, path) => {
    throw notAdoptable(path)
  },
  tidy: async () => undefined,
  repositoryMoved: async ({ store, host, log }, from, to) => {
    for (const { path, provider, host: place } of await store.environments.live(from.id)) {
      if (provider !== 'clone' || place !== host) continue
      const tree = cloneAt(path)
      try {
        if (borrowsFrom(tree, repoOf(from))) setLender(tree, repoOf(to))
      } catch (error) {
        // One that an agent broke must not block the others.
        log.warn('a clone was not told where its repository is now', { path, error: toAppError(error).message })
      }
    }
  },
  keepSpares: async () => 0,
  dropSpares: async () => undefined,

  presence: presenceOf,
  environmentAt: async ({ store }, _codebase, path) => {
    const { gitDir } = cloneAt(path)
    const token = (await readdir(gitDir).catch(() => undefined)) === undefined ? undefined : await readToken(gitDir)
    const environment = token === undefined ? undefined : await store.environments.get(toEnvironmentId(token))
    return environment?.path === path ? environment : undefined
  },
  identify: async (context, path) => (await import('./recall.ts')).identifyClone(context, path),
  recall: async (context, codebase, found, request) =>
    (await import('./recall.ts')).recallClone(context, codebase, found, request),
  // Its configuration is nobody else's.
  setAuthor: async ({ git }, _codebase, { gitDir }, { name, email }) => {
    const { writeConfigFile } = await import('../../../git/config-file.ts')
    for (const [key, value] of [
      ['user.name', name],
      ['user.email', email],
    ] as const) {
      await writeConfigFile(git, join(gitDir, 'config'), key, value)
    }
  },
  recordedPath: async () => undefined,
  tipRef: ({ id }) => tipRefOf(id),
  ownRepository: ({ path }) => cloneAt(path),
  importCommits: importTips,
  followRenames: (context, codebase, environments, options) =>
    Promise.all(
      environments.map(async (environment) => {
        const unchanged = { environment, notices: [] }
        try {
          const presence = await presenceOf(codebase, environment)
          if (environment.host !== context.host || presence.state !== 'present') return unchanged
          return await followRename(context, codebase, environment, presence.tree, options)
        } catch (error) {
          // One that an agent broke must not block the others.
          context.log.info('a renamed branch could not be followed', { branch: environment.branch, error })
          return unchanged
        }
      }),
    ),
  followHead: async (context, codebase, environment, ...asked) => {
    const followed = await shared.followHead(context, codebase, environment, ...asked)
    // Its current commit is borrowed, and the next fetch may find the pull request rewritten.
    await importTips(context, codebase, [environment])
    return followed
  },

  findAdoptable: async () => undefined,
  gitWorktrees: async () => [],

  // No other tool looks for a lock here; the lease and processes inside show who uses it.
  lock: async () => true,
  unlock: async () => undefined,
  lockReason: async () => undefined,
  mayBeLocked: () => false,

  launch: (_environment, program) => program,
}

const notAdoptable = (path: string): AppError =>
  new AppError('not-adoptable', `${path} is a clone, and only linked worktrees can be adopted`)
