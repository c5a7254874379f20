import { realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { BranchOrigin, Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { AppError } from '../../../domain/errors.ts'
import { unlessMissing } from '../../../domain/missing.ts'
import { type BranchName, toBranchName, toEnvironmentId } from '../../../domain/names.ts'
import { aliasesFor, type Trust } from '../../../domain/trust.ts'
import { shellWord, writeLine } from '../../../domain/text/shell-word.ts'
import { workOfBranch } from '../../../domain/work.ts'
import { type AdminDir, readAdminDir, readToken, readWorktreeLink, writeToken } from '../../../git/admin-dir.ts'
import { resolveCommit } from '../../../git/refs.ts'
import { pointRecordAtWorktree, pointWorktreeAtRecord } from '../../../git/worktree-repair.ts'
import { contentTrust } from '../checkout/content-trust.ts'
import type { IsolationContext } from '../../context.ts'
import { locked } from '../../lock/locked.ts'
import { environmentAt, followed } from '../../moved.ts'
import { otherHomeOf } from './other-home.ts'
import { claimRootOf, isInternal } from '../../paths.ts'
import type { AdoptRequest, Examined, ExamineRequest } from '../../provider.ts'
import { treeAt } from './presence.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import { creationReason, spareToken } from './lock-reasons.ts'
import { coppice, type Remedy, remedy, shell } from '../../../domain/remedy.ts'

/**
 * Tracks a worktree that a person or another tool made. Nothing on disk changes, now or later: removing an adopted
 * environment only untracks it. One of our own becomes the user's when a person claims it.
 */
export const adoptWorktree = (
  context: IsolationContext,
  codebase: Codebase,
  path: string,
  request: AdoptRequest,
): Promise<IsolatedEnvironment> =>
  locked(context, codebase, 'adopting a worktree', async () => {
    const real = await realpath(path).catch(() => undefined)
    if (real === undefined) throw new AppError('not-adoptable', `${path} doesn't exist`)
    if (request.relink !== undefined) await relink(codebase, real, request.relink)
    const known = await knownAt(context, codebase, real)
    if (known !== undefined && request.claim === true) return handOver(context, codebase, known)
    if (known !== undefined) return request.own === undefined ? known : takeOver(context, codebase, known, request.own)
    const { branch, adminName } = await examine(context, codebase, path, real)
    const trust = await trustOf(context, codebase, { branch, adminName }, request)
    const environment = { ...adopted(context, codebase, { branch, adminName, path: real }, request), trust }
    await context.failpoint('adopt.intent')
    // Before the row says so: without a row, the mark means nothing.
    if (environment.owned) await markAsOurs(context, codebase, environment)
    // Adopting only changes our own records: one transaction, so there is nothing to finish or undo.
    await context.store.transaction(async (store) => {
      const inserted = await store.environments.insert(environment, undefined)
      if (inserted.outcome !== 'inserted')
        throw taken(environment, inserted.outcome === 'conflict' ? inserted.on : 'limit')
      for (const alias of aliasesFor(trust, environment.work, request.aliases)) {
        await store.environments.addAlias(environment.id, codebase.id, alias, environment.createdAt)
      }
    })
    await context.failpoint('adopt.recorded')
    return environment
  })

/** What `adoptWorktree` would record, without the lock. */
export const examineWorktree = async (
  context: IsolationContext,
  codebase: Codebase,
  path: string,
  request: ExamineRequest,
): Promise<Examined> => {
  const real = await realpath(path)
  const { branch, adminName } = await examine(context, codebase, path, real, request.adminDir)
  const trust = await trustOf(context, codebase, { branch, adminName }, request)
  return { branch, tree: treeAt(codebase, join(codebase.repoPath, 'worktrees', adminName), real), trust }
}

/** Somebody made it, perhaps from a fork's pull request: its origin must be proven like any other. */
const trustOf = async (
  context: IsolationContext,
  codebase: Codebase,
  { branch, adminName }: { branch: BranchName; adminName: string },
  { work, forFork }: Pick<AdoptRequest, 'work' | 'forFork'>,
): Promise<Trust> => {
  if (forFork === true || (work ?? workOfBranch(branch)).type === 'review') return 'unproven'
  const tip = await resolveCommit(context.git, repoOf(codebase), `refs/heads/${branch}`)
  if (tip === undefined) return 'unproven'
  const gitDir = join(codebase.repoPath, 'worktrees', adminName)
  return (await contentTrust(context, codebase, { tip, branch, gitDir })).trust
}

/** By its token first: a moved worktree is the same environment, whichever row has that path. */
const knownAt = async (
  context: IsolationContext,
  codebase: Codebase,
  path: string,
): Promise<IsolatedEnvironment | undefined> => {
  const known =
    (await environmentAt(context, codebase, path)) ?? (await context.store.environments.liveByPath(context.host, path))
  if (known === undefined || known.codebaseId === codebase.id) return known
  throw new AppError('not-adoptable', `${path} is a worktree of another repository`)
}

/** From now on it counts as adopted: Coppice never deletes it or its branch. */
const handOver = async (
  context: Pick<IsolationContext, 'store' | 'providers' | 'host'>,
  codebase: Codebase,
  known: IsolatedEnvironment,
): Promise<IsolatedEnvironment> => {
  if (known.status === 'creating' || known.status === 'removing') {
    throw new AppError(
      'not-adoptable',
      `${known.branch} is being ${known.status === 'creating' ? 'made' : 'removed'}`,
      {
        remedy: remedy`try again when that is done; run ${coppice('worktree list')} to see it`,
      },
    )
  }
  const { environment } = await followed(context, codebase, known)
  await context.store.environments.update(environment.id, { owned: false })
  return { ...environment, owned: false }
}

/** From now on it counts as created here: with our token, inside a root of ours. */
const takeOver = async (
  context: Pick<IsolationContext, 'store' | 'providers' | 'host'>,
  codebase: Codebase,
  known: IsolatedEnvironment,
  { branchOrigin }: { readonly branchOrigin: BranchOrigin },
): Promise<IsolatedEnvironment> => {
  if (known.owned || known.status !== 'active') return known
  const { environment } = await followed(context, codebase, known)
  await markAsOurs(context, codebase, environment)
  await context.store.environments.update(environment.id, { owned: true, branchOrigin })
  return { ...environment, owned: true, branchOrigin }
}

const markAsOurs = async (
  context: Pick<IsolationContext, 'host'>,
  { repoPath }: Codebase,
  { id, path, adminName }: Pick<IsolatedEnvironment, 'id' | 'path' | 'adminName'>,
): Promise<void> => {
  if (adminName === undefined) throw new AppError('not-adoptable', `git's record of ${path} is unknown`)
  await claimRootOf(path, context.host)
  await writeToken(join(repoPath, 'worktrees', adminName), id)
}

const examine = async (
  context: Pick<IsolationContext, 'store' | 'host'>,
  codebase: Codebase,
  path: string,
  real: string,
  given?: string,
): Promise<{ branch: BranchName; adminName: string }> => {
  if (real === codebase.checkoutPath) {
    throw new AppError(
      'not-adoptable',
      `${path} is the main working tree of ${codebase.name}, which Coppice doesn't track`,
    )
  }
  const adminDir = given ?? (await readWorktreeLink(real))
  const record = adminDir === undefined ? undefined : await readAdminDir(adminDir)
  if (record === undefined || dirname(record.dir) !== join(codebase.repoPath, 'worktrees')) {
    throw new AppError('not-adoptable', `${path} is not a linked worktree of ${codebase.name}`, {
      remedy: remedy`run ${coppice('worktree orphans')} for a list`,
    })
  }
  await assertNotInternal(context, codebase, path, real, record)
  await assertNoOtherHome(context, real, record.dir)
  if (given === undefined && record.worktreePath !== real) {
    throw await misplaced(path, real, record)
  }
  const branch = record.head !== undefined && 'branch' in record.head ? record.head.branch : undefined
  if (branch === undefined) {
    throw new AppError('not-adoptable', `${path} has no branch checked out`, {
      remedy: remedy`check one out there first: ${shell(`git -C ${shellWord(path)} switch -c <branch>`)}`,
    })
  }
  return { branch: toBranchName(branch), adminName: record.name }
}

/** Only if neither leads anywhere else on this machine. */
const relink = async (codebase: Codebase, real: string, adminDir: string): Promise<void> => {
  const record = await readAdminDir(adminDir)
  const leads = await readWorktreeLink(real)
  const recorded = record?.worktreePath === undefined ? undefined : await unlessMissing(realpath(record.worktreePath))
  const elsewhere = recorded !== undefined && recorded !== real
  const isIts = dirname(adminDir) === join(codebase.repoPath, 'worktrees') && record !== undefined
  if (!isIts || elsewhere || (leads !== undefined && leads !== adminDir)) {
    throw new AppError('not-adoptable', `${real} and git's record of it don't belong together`)
  }
  pointWorktreeAtRecord(real, adminDir)
  pointRecordAtWorktree(adminDir, real)
}

/** Never suggest `git worktree repair`: two worktrees that swapped places would swap branches. */
const misplaced = async (path: string, real: string, { dir, worktreePath }: AdminDir): Promise<AppError> => {
  const there = worktreePath === undefined ? undefined : await readWorktreeLink(worktreePath).catch(() => undefined)
  if (worktreePath !== undefined && there === dir) {
    return new AppError('not-adoptable', `${path} is a copy of the worktree at ${worktreePath}`, {
      remedy: remedy`adopt that one, or unlink the copy to keep its files: ${shell(`rm ${shellWord(join(real, '.git'))}`)}`,
    })
  }
  return new AppError('not-adoptable', `git has ${path} at ${worktreePath ?? 'an unknown place'}`, {
    remedy: remedy`if you moved it, tell git where it is now: ${shell(writeLine(join(dir, 'gitdir'), join(real, '.git')))}`,
  })
}

/** Nobody may adopt what Coppice is creating or removing, whatever its path or name. */
const assertNotInternal = async (
  context: Pick<IsolationContext, 'store'>,
  codebase: Codebase,
  path: string,
  real: string,
  { dir, lockReason }: AdminDir,
): Promise<void> => {
  const refused = (why: string, way?: Remedy): AppError =>
    new AppError('not-adoptable', `${path} ${why}`, way === undefined ? {} : { remedy: way })
  const spares = await context.store.spares.list(codebase.id)
  const isSpare = spares.some(
    (spare) => spare.path === real || join(codebase.repoPath, 'worktrees', spare.adminName) === dir,
  )
  if (isSpare || (await readToken(dir))?.startsWith(spareToken('')) === true) {
    throw refused('is a spare worktree that Coppice keeps for the next one')
  }
  if (lockReason?.startsWith(creationReason('')) === true) throw refused('is being made', 'try again when that is done')
  if (!isInternal(real)) return
  throw refused(
    'is in a directory that Coppice manages',
    remedy`move it out first: ${shell('git worktree move <from> <to>')}`,
  )
}

const assertNoOtherHome = async (
  context: Pick<IsolationContext, 'store' | 'host'>,
  path: string,
  dir: string,
): Promise<void> => {
  const other = await otherHomeOf(context, path, dir)
  if (other === undefined) return
  const which = other.home === undefined ? '' : ` (${other.home})`
  throw new AppError('not-adoptable', `${path} was created with another Coppice home${which}, which may delete it`, {
    remedy: other.remedy,
  })
}

const adopted = (
  context: Pick<IsolationContext, 'clock' | 'ids' | 'host'>,
  codebase: Codebase,
  { branch, adminName, path }: { branch: BranchName; adminName: string; path: string },
  request: AdoptRequest,
): Omit<IsolatedEnvironment, 'trust'> => {
  const now = context.clock()
  return {
    id: toEnvironmentId(context.ids()),
    host: context.host,
    codebaseId: codebase.id,
    work: request.work ?? workOfBranch(branch),
    provider: 'worktree',
    path,
    branch,
    branchOrigin: request.own?.branchOrigin ?? 'existing',
    status: 'active',
    owned: request.own !== undefined,
    createdBy: request.createdBy,
    createdAt: request.age?.createdAt ?? now,
    lastActivityAt: request.age?.lastActivityAt ?? now,
    startSha: undefined,
    adminName,
    baseBranch: undefined,
    prNumber: undefined,
    prBranch: undefined,
  }
}

const taken = (environment: IsolatedEnvironment, on: string): AppError =>
  new AppError('not-adoptable', `another worktree has the same ${on} as ${environment.branch}`, {
    remedy: remedy`run ${coppice('worktree list')} to see it`,
  })
