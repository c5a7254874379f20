import { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { toEnvironmentId } from '../../../domain/names.ts'
import {
  clearLock,
  readAdminDir,
  readHead,
  readLock,
  readToken,
  readWorktreeLink,
  setLock,
} from '../../../git/admin-dir.ts'
import type { Provider } from '../../context.ts'
import { uncommittedWork } from '../checkout/look/uncommitted.ts'
import { detachedCommits } from '../checkout/look/unreachable.ts'
import { followRenames } from './follow-rename.ts'
import { presenceOf } from './presence.ts'

/**
 * Environments are linked worktrees of the codebase's own repository: one directory each, refs and objects shared. What
 * looking needs is imported here, and the rest when it is first needed.
 */
export const worktree: Provider = {
  name: 'worktree',
  can: { adopt: true, keepSpares: true },

  create: async (context, request) => {
    const [{ createEnvironment }, { linkedWorktree }] = await Promise.all([
      import('../checkout/create.ts'),
      import('./checkout.ts'),
    ])
    return createEnvironment(context, linkedWorktree, request)
  },
  adopt: async (context, codebase, path, request) =>
    (await import('./adopt.ts')).adoptWorktree(context, codebase, path, request),
  destroy: async (context, codebase, environment, options) => {
    const [{ removeEnvironment }, { linkedWorktree }] = await Promise.all([
      import('../checkout/remove.ts'),
      import('./checkout.ts'),
    ])
    return removeEnvironment(context, linkedWorktree, codebase, environment, options)
  },
  restore: async (context, codebase, point, lookAgain) => {
    const [{ restoreEnvironment }, { linkedWorktree }] = await Promise.all([
      import('../checkout/restore.ts'),
      import('./checkout.ts'),
    ])
    return restoreEnvironment(context, linkedWorktree, codebase, point, lookAgain)
  },
  giveWay: async (context, codebase, missing) => {
    const [{ saveMissing }, { linkedWorktree }] = await Promise.all([
      import('../checkout/save-missing.ts'),
      import('./checkout.ts'),
    ])
    await saveMissing(context, linkedWorktree, codebase, missing)
  },
  vouch: async (context, codebase, environment, options) =>
    (await import('../checkout/vouch.ts')).vouchFor(context, codebase, environment, options),

  settle: async (context, codebase, entry) => (await import('./settle.ts')).settle(context, codebase, entry),
  tidy: async (context, codebase) => (await import('./settle.ts')).tidy(context, codebase),
  repositoryMoved: async (context, from, to) => (await import('./relink.ts')).relink(context, from, to),
  keepSpares: async (context, codebase) => (await import('./spare.ts')).keepSpares(context, codebase),
  dropSpares: async (context, codebase) => (await import('./spare.ts')).dropSpares(context, codebase),

  discardPoint: async (context, codebase, id) =>
    (await import('../checkout/restore-point/restore-point.ts')).discardRestorePoint(context, codebase, id),
  isKept: async (context, codebase, point) =>
    (await import('../checkout/restore-point/restore-point.ts')).isKept(context, codebase, point),

  presence: presenceOf,
  environmentAt: async ({ store }, codebase, path) => {
    const record = await readWorktreeLink(path).catch(() => undefined)
    if (record === undefined || dirname(record) !== join(codebase.repoPath, 'worktrees')) return undefined
    const token = await readToken(record)
    const environment = token === undefined ? undefined : await store.environments.get(toEnvironmentId(token))
    return environment?.adminName === basename(record) ? environment : undefined
  },
  recordedPath: async ({ repoPath }, { adminName }) =>
    adminName === undefined ? undefined : (await readAdminDir(join(repoPath, 'worktrees', adminName)))?.worktreePath,
  headBranch: async ({ gitDir }) => {
    const head = await readHead(gitDir)
    return head !== undefined && 'branch' in head ? head.branch : undefined
  },
  // A worktree commits to the repository itself.
  tipRef: ({ branch }) => `refs/heads/${branch}`,
  reflogIn: () => undefined,
  bring: async () => new Map(),
  glance: async (context, tree, options) => ({
    dirty: await uncommittedWork(context, tree, options),
    detached: await detachedCommits(context, tree),
  }),

  followRenames,
  followHead: async (context, codebase, environment, work, hints, options) =>
    (await import('../checkout/follow.ts')).followPullRequest(context, codebase, environment, work, hints, options),

  findAdoptable: async (context, request) => (await import('./adoptable.ts')).findAdoptable(context, request),
  orphans: async (context, codebase) => (await import('./orphans.ts')).orphanedWorktrees(context, codebase),

  lock: ({ gitDir }, reason) => setLock(gitDir, reason),
  unlock: async ({ gitDir }, reason) => void (await clearLock(gitDir, reason)),
  lockReason: ({ gitDir }) => readLock(gitDir),
  // Presence opens five files: a start with 1,000 environments took 200 ms longer.
  mayBeLocked: ({ repoPath }, { adminName }) =>
    adminName === undefined || existsSync(join(repoPath, 'worktrees', adminName, 'locked')),

  launch: (_environment, program) => program,
}
