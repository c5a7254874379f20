/*
 * The provider `worktree`: a linked worktree per environment. In: requests of the interface. Out: worktrees whose refs
 * and objects are the repository's.
 */
import { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { toEnvironmentId } from '../../../domain/names.ts'
import { clearLock, readAdminDir, readLock, readToken, readWorktreeLink, setLock } from '../../../git/admin-dir.ts'
import type { Provider } from '../../context.ts'
import { locked } from '../../lock/locked.ts'
import { checkoutProvider } from '../checkout/provider.ts'
import { followRenames } from './follow-rename.ts'
import { presenceOf } from './presence.ts'

export const worktree: Provider = {
  name: 'worktree',
  can: { adopt: true, keepSpares: true },
  ...checkoutProvider(async () => (await import('./checkout.ts')).linkedWorktree),

  adopt: async (context, codebase, path, request) =>
    (await import('./adopt.ts')).adoptWorktree(context, codebase, path, request),
  examine: async (context, codebase, path, request) =>
    (await import('./adopt.ts')).examineWorktree(context, codebase, path, request),
  tidy: async (context, codebase) => (await import('./tidy.ts')).tidy(context, codebase),
  repositoryMoved: async (context, from, to) => (await import('./relink.ts')).relink(context, from, to),
  keepSpares: async (context, codebase) => (await import('./spare.ts')).keepSpares(context, codebase),
  dropSpares: async (context, codebase) => (await import('./spare.ts')).dropSpares(context, codebase),

  presence: presenceOf,
  environmentAt: async ({ store }, codebase, path) => {
    const record = await readWorktreeLink(path).catch(() => undefined)
    if (record === undefined || dirname(record) !== join(codebase.repoPath, 'worktrees')) return undefined
    const token = await readToken(record)
    const environment = token === undefined ? undefined : await store.environments.get(toEnvironmentId(token))
    return environment?.adminName === basename(record) ? environment : undefined
  },
  identify: async (context, path) => (await import('./recall.ts')).identifyWorktree(context, path),
  recall: async (context, codebase, found, request) =>
    (await import('./recall.ts')).recallWorktree(context, codebase, found, request),
  setAuthor: async (context, codebase, tree, { name, email }) => {
    const { setWorktreeConfig } = await import('../../../git/worktree-config.ts')
    const author = [
      ['user.name', name],
      ['user.email', email],
    ] as const
    await locked(context, codebase, 'setting an author', () => setWorktreeConfig(context.git, tree, author))
  },
  recordedPath: async ({ repoPath }, { adminName }) =>
    adminName === undefined ? undefined : (await readAdminDir(join(repoPath, 'worktrees', adminName)))?.worktreePath,
  // A worktree commits to the repository itself.
  tipRef: ({ branch }) => `refs/heads/${branch}`,
  ownRepository: () => undefined,
  importCommits: async () => new Map(),
  followRenames,
  findAdoptable: async (context, request) => (await import('./adoptable.ts')).findAdoptable(context, request),
  gitWorktrees: async (context, codebase) => (await import('./listed.ts')).listedWorktrees(context, codebase),

  lock: ({ gitDir }, reason) => setLock(gitDir, reason),
  unlock: async ({ gitDir }, reason) => void (await clearLock(gitDir, reason)),
  lockReason: ({ gitDir }) => readLock(gitDir),
  // Presence opens five files: a start with 1,000 environments took 200 ms longer.
  mayBeLocked: ({ repoPath }, { adminName }) =>
    adminName === undefined || existsSync(join(repoPath, 'worktrees', adminName, 'locked')),

  launch: (_environment, program) => program,
}
