import { realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { type BranchName, toBranchName, toEnvironmentId } from '../../domain/names.ts'
import { type Work, parseWorkRef, toWork } from '../../domain/work.ts'
import { readAdminDirs, readWorktreeLink } from '../../git/admin-dir.ts'
import type { IsolationContext } from '../context.ts'
import { locked } from '../locked.ts'
import type { AdoptRequest } from '../provider.ts'
import { repoOf } from '../repo-of.ts'

/**
 * Takes note of a worktree that a person or another tool made. Nothing on disk changes, now or later:
 * removing an adopted environment lets go of it.
 */
export const adoptWorktree = (
  context: IsolationContext,
  codebase: Codebase,
  path: string,
  request: AdoptRequest,
): Promise<IsolatedEnvironment> =>
  locked(context, codebase, 'adopting a worktree', async () => {
    const { branch, adminName, real } = await examine(codebase, path)
    const known = await context.store.environments.liveByPath(context.host, real)
    if (known !== undefined) return known
    await assertNoSpare(context, codebase, real)
    const environment = adopted(context, codebase, { branch, adminName, path: real }, request)
    await context.failpoint('adopt.intent')
    // Adopting changes nothing but our own records: one transaction, so there is nothing to finish or to undo.
    await context.store.transaction(async (store) => {
      const inserted = await store.environments.insert(environment, undefined)
      if (inserted.outcome !== 'inserted')
        throw taken(environment, inserted.outcome === 'conflict' ? inserted.on : 'limit')
      for (const alias of request.aliases) {
        await store.environments.addAlias(environment.id, codebase.id, alias, environment.createdAt)
      }
    })
    await context.failpoint('adopt.recorded')
    return environment
  })

const examine = async (
  codebase: Codebase,
  path: string,
): Promise<{ branch: BranchName; adminName: string; real: string }> => {
  const real = await realpath(path).catch(() => undefined)
  if (real === undefined) throw new AppError('not-adoptable', `there is nothing at ${path}`)
  if (real === codebase.checkoutPath) {
    throw new AppError(
      'not-adoptable',
      `${path} is the main working tree of ${codebase.name}, which is never an environment`,
    )
  }
  const adminDir = await readWorktreeLink(real)
  if (adminDir === undefined || dirname(adminDir) !== join(codebase.repoPath, 'worktrees')) {
    throw new AppError('not-adoptable', `${path} is not a linked worktree of ${codebase.name}`, {
      remedy: '`git worktree list` shows the ones it has',
    })
  }
  const record = (await readAdminDirs(repoOf(codebase).commonDir)).find((admin) => admin.dir === adminDir)
  const branch = record?.head !== undefined && 'branch' in record.head ? record.head.branch : undefined
  if (branch === undefined) {
    throw new AppError('not-adoptable', `${path} has no branch checked out`, {
      remedy: `check one out there first: git -C ${path} switch -c <branch>`,
    })
  }
  return { branch: toBranchName(branch), adminName: basename(adminDir), real }
}

const assertNoSpare = async (context: IsolationContext, codebase: Codebase, path: string): Promise<void> => {
  const spares = await context.store.spares.list(codebase.id)
  if (spares.some((spare) => spare.path === path)) {
    throw new AppError('not-adoptable', `${path} is a spare of Coppice's own`)
  }
}

const adopted = (
  context: IsolationContext,
  codebase: Codebase,
  { branch, adminName, path }: { branch: BranchName; adminName: string; path: string },
  request: AdoptRequest,
): IsolatedEnvironment => {
  const at = context.clock()
  return {
    id: toEnvironmentId(context.ids()),
    host: context.host,
    codebaseId: codebase.id,
    work: request.work ?? workOfBranch(branch),
    provider: 'worktree',
    path,
    branch,
    branchOrigin: 'existing',
    status: 'active',
    owned: false,
    createdBy: request.createdBy,
    createdAt: at,
    lastActivityAt: at,
    startSha: undefined,
    adminName,
    baseBranch: undefined,
    isFork: false,
    prNumber: undefined,
    prBranch: undefined,
  }
}

/** A branch named as we name them says which work it is of; any other is the work `task:<branch>`. */
export const workOfBranch = (branch: string): Work => {
  const review = /^pr-([1-9]\d*)-review$/.exec(branch)
  if (review) return toWork('review', review[1]!)
  const numbered = /^(issue|pr)-[1-9]\d*$/.test(branch) ? parseWorkRef(branch) : undefined
  return numbered ?? toWork('task', branch.replace(/^task-/, ''))
}

const taken = (environment: IsolatedEnvironment, on: string): AppError =>
  new AppError('not-adoptable', `another environment has the same ${on} as ${environment.branch}`, {
    remedy: '`coppice worktree list` shows it',
  })
