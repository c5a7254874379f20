import { readdir } from 'node:fs/promises'
import { toEnvironmentId } from '../../../domain/names.ts'
import { AppError, toAppError } from '../../../domain/errors.ts'
import { readHead, readToken } from '../../../git/admin-dir.ts'
import { borrowsFrom, cloneAt, lendTo } from '../../../git/borrowing-clone.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { Provider } from '../../context.ts'
import { followRename } from '../checkout/follow-rename.ts'
import { uncommittedWork } from '../checkout/look/uncommitted.ts'
import { detachedCommits } from '../checkout/look/unreachable.ts'
import { bringTips } from './bring.ts'
import { presenceOf } from './presence.ts'
import { tipRefOf } from './refs.ts'

/**
 * Environments are clones with refs, configuration and hooks of their own. They read the repository's objects and write
 * nothing there; what they commit is brought to it. What looking needs is imported here, and the rest when it is first
 * needed.
 */
export const clone: Provider = {
  name: 'clone',
  can: { adopt: false, keepSpares: false },

  create: async (context, request) => {
    const [{ createEnvironment }, { ownClone }] = await Promise.all([
      import('../checkout/create.ts'),
      import('./checkout.ts'),
    ])
    return createEnvironment(context, ownClone, request)
  },
  adopt: async (_context, _codebase, path) => {
    throw new AppError('not-adoptable', `${path} is a clone, and only linked worktrees can be adopted`)
  },
  destroy: async (context, codebase, environment, options) => {
    const [{ removeEnvironment }, { ownClone }] = await Promise.all([
      import('../checkout/remove.ts'),
      import('./checkout.ts'),
    ])
    return removeEnvironment(context, ownClone, codebase, environment, options)
  },
  restore: async (context, codebase, point, lookAgain) => {
    const [{ restoreEnvironment }, { ownClone }] = await Promise.all([
      import('../checkout/restore.ts'),
      import('./checkout.ts'),
    ])
    return restoreEnvironment(context, ownClone, codebase, point, lookAgain)
  },
  giveWay: async (context, codebase, missing) => {
    const [{ saveMissing }, { ownClone }] = await Promise.all([
      import('../checkout/save-missing.ts'),
      import('./checkout.ts'),
    ])
    await saveMissing(context, ownClone, codebase, missing)
  },
  vouch: async (context, codebase, environment, options) =>
    (await import('../checkout/vouch.ts')).vouchFor(context, codebase, environment, options),

  settle: async (context, codebase, { id, kind }) => {
    const { ownClone } = await import('./checkout.ts')
    if (kind === 'remove') {
      await (await import('../checkout/removal-steps.ts')).settleRemoval(context, ownClone, codebase, id)
      return undefined
    }
    const undone = await ownClone.undoMaking(context, codebase, id, 'after-crash')
    return undone.outcome === 'left' ? undone.detail : undefined
  },
  tidy: async () => undefined,
  repositoryMoved: async ({ store, host, log }, from, to) => {
    for (const { path, provider, host: place } of await store.environments.live(from.id)) {
      if (provider !== 'clone' || place !== host) continue
      const tree = cloneAt(path)
      try {
        if (borrowsFrom(tree, repoOf(from))) lendTo(tree, repoOf(to))
      } catch (error) {
        // The others must not wait for one that an agent has spoilt.
        log.warn('a clone was not told where its repository is now', { path, error: toAppError(error).message })
      }
    }
  },
  keepSpares: async () => 0,
  dropSpares: async () => undefined,

  discardPoint: async (context, codebase, id) =>
    (await import('../checkout/restore-point/restore-point.ts')).discardRestorePoint(context, codebase, id),
  isKept: async (context, codebase, point) =>
    (await import('../checkout/restore-point/restore-point.ts')).isKept(context, codebase, point),

  presence: presenceOf,
  environmentAt: async ({ store }, _codebase, path) => {
    const { gitDir } = cloneAt(path)
    const token = (await readdir(gitDir).catch(() => undefined)) === undefined ? undefined : await readToken(gitDir)
    const environment = token === undefined ? undefined : await store.environments.get(toEnvironmentId(token))
    return environment?.path === path ? environment : undefined
  },
  recordedPath: async () => undefined,
  headBranch: async ({ gitDir }) => {
    const head = await readHead(gitDir)
    return head !== undefined && 'branch' in head ? head.branch : undefined
  },
  tipRef: ({ id }) => tipRefOf(id),
  reflogIn: ({ path }) => cloneAt(path),
  bring: bringTips,
  glance: async (context, tree, options) => ({
    dirty: await uncommittedWork(context, tree, options),
    detached: await detachedCommits(context, tree),
  }),

  followRenames: (context, codebase, environments, options) =>
    Promise.all(
      environments.map(async (environment) => {
        const presence = await presenceOf(codebase, environment)
        const isHere = environment.host === context.host && presence.state === 'present'
        return isHere
          ? followRename(context, codebase, environment, presence.tree, options)
          : { environment, notices: [] }
      }),
    ),
  followHead: async (context, codebase, environment, work, hints, options) => {
    const { followPullRequest } = await import('../checkout/follow.ts')
    const followed = await followPullRequest(context, codebase, environment, work, hints, options)
    // The commit it is at now is borrowed, and the next fetch may find the pull request rewritten.
    await bringTips(context, codebase, [environment])
    return followed
  },

  findAdoptable: async () => undefined,
  orphans: async () => [],

  // No other tool looks for a lock here; a lease and the processes inside say who uses it.
  lock: async () => true,
  unlock: async () => undefined,
  lockReason: async () => undefined,
  mayBeLocked: () => false,

  launch: (_environment, program) => program,
}
