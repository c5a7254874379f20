import { lstat, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { AppError } from '../../../domain/errors.ts'
import { type BranchName, branchNameProblem, toBranchName, toEnvironmentId } from '../../../domain/names.ts'
import type { NameTaken, Notice } from '../../../domain/notice.ts'
import { bytesBelow } from '../../../domain/text/raw-path.ts'
import { deleteTree } from '../../../process/files/delete-tree.ts'
import type { LeftOut, RestorePoint } from '../../../domain/removal/restore-point.ts'
import { branchCheckedOut } from '../../../git/admin-dir.ts'
import { checkoutDetached } from '../../../git/checkout.ts'
import type { Tree } from '../../../git/door.ts'
import { withoutLargeFiles } from '../../../git/large-files.ts'
import type { Setting } from '../../../git/neutral.ts'
import { branchNames, readRef, resolveCommit, setHeadBranch } from '../../../git/refs.ts'
import { baseAndConfig } from '../../codebases/base-and-config.ts'
import type { IsolationContext } from '../../context.ts'
import { locked } from '../../lock/locked.ts'
import { prepareRoot } from '../../paths.ts'
import { workForRestore } from '../../work-for-restore.ts'
import type { Restored } from '../../provider.ts'
import { checkoutSettings } from './checkout-settings.ts'
import { copyTree } from './restore-point/archive.ts'
import { activate, choosePath, createTree, undoFailed } from './creation-steps.ts'
import type { CreatedTree, Creation } from './kind.ts'
import { finishing } from './creation-record.ts'
import { unlessMissing } from '../../../domain/missing.ts'
import { shellWord } from '../../../domain/text/shell-word.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import { restoreLargeFiles } from './restore-point/large-files.ts'
import { bringTags } from './restore-point/named-by-record.ts'
import { applyPermissions } from './restore-point/permissions.ts'
import type { Plan } from './plan.ts'
import { leasePorts } from '../../ports.ts'
import { restoreRawBytes } from './restore-point/raw-files.ts'
import { blockerOf, bringOwnBranch, settingsFor } from './restore-point/restore-branch.ts'
import { restoreFiles, restoreIgnored, parentOf } from './restore-point/restore-files.ts'
import { restoreDirectory } from '../../restore-points.ts'
import { makeFull, takeSkippedAway } from './restore-point/restore-skipped.ts'
import { restoreSubmodules } from './restore-point/restore-submodules.ts'
import type { CheckoutKind } from './kind.ts'
import { coppice, remedy } from '../../../domain/remedy.ts'

/**
 * Restores a removed environment at a new path: branch, commits, index, files, untracked and saved ignored ones.
 * `found` was selected without the lock; `lookAgain` selects again with it.
 */
export const restoreEnvironment = async (
  context: IsolationContext,
  checkout: CheckoutKind,
  codebase: Codebase,
  found: RestorePoint,
  lookAgain: () => Promise<RestorePoint> = async () => found,
): Promise<Restored> => {
  const root = await prepareRoot(context.worktreesBase, codebase.name, context.host)
  const branch = found.contents.environment.branch
  const { point, creation, made } = await locked(context, codebase, `restoring ${branch}`, async () => {
    // A removal that held the lock until now may have written a newer point of this work.
    const newest = withClearTrust(await lookAgain())
    return { point: newest, ...(await begin(context, checkout, codebase, newest, root)) }
  })
  try {
    const leftOut = await fill(context, checkout, made.tree, point)
    await context.store.journal.advance(made.entry.id, { step: finishing })
    await leasePorts(context, creation.environment, (await baseAndConfig(context, codebase)).config.ports)
    await context.failpoint('restore.filled')
    const brought = checkout.sharesRefs ? await bringOwnBranch(context, codebase, point, made.entry.id) : []
    const environment = await activate(creation, made)
    const lost = [...point.contents.leftOut, ...leftOut].map((left) => ({ kind: 'not-restored', left }) as const)
    return { environment, notices: [...creation.plan.notices, ...brought, ...lost] }
  } catch (error) {
    throw await undoFailed(creation, made, error)
  }
}

/** An earlier version didn't record what a vouching covers: then it covers nothing. */
const withClearTrust = (point: RestorePoint): RestorePoint => {
  const { trust, vouchedLog } = point.contents.environment
  if (trust !== 'vouched' || vouchedLog !== undefined) return point
  const environment: IsolatedEnvironment = { ...point.contents.environment, trust: 'lapsed', vouchedSha: undefined }
  return { ...point, contents: { ...point.contents, environment } }
}

const begin = async (
  context: IsolationContext,
  checkout: CheckoutKind,
  codebase: Codebase,
  point: RestorePoint,
  root: string,
): Promise<{ creation: Creation; made: CreatedTree }> => {
  if (point.host !== context.host) {
    throw new AppError('restore-failed', 'that worktree was removed on another host, which has its files')
  }
  await assertWhole(context, point)
  const old = point.contents.environment
  const known = await workForRestore(context.store, codebase.id, old)
  if ('live' in known) throw occupied(known.live)
  const planned = await planRestore(context, codebase, point)
  const apart: Notice[] =
    known.linkedTo === undefined ? [] : [{ kind: 'restored-apart', work: old.work, other: known.linkedTo.branch }]
  const plan = { ...planned, notices: [...planned.notices, ...apart] }
  const path = await choosePath(context, codebase, root, plan)
  const at = context.clock()
  const environment: IsolatedEnvironment = {
    ...old,
    work: known.work,
    id: toEnvironmentId(context.ids()),
    host: context.host,
    path,
    branch: plan.branch,
    branchOrigin:
      plan.origin === 'created' ? old.branchOrigin : plan.branch === old.branch ? old.branchOrigin : 'existing',
    status: 'creating',
    owned: true,
    adminName: undefined,
    createdAt: at,
    lastActivityAt: at,
  }
  const limit = context.settings.worktreesPerCodebase
  const { aliases } = point.contents
  const creation: Creation = {
    context,
    codebase,
    checkout,
    kind: 'restore',
    environment,
    plan,
    aliases,
    limit,
    useSpare: false,
    pointId: point.id,
    settings: checkoutSettingsFor(point),
    signal: undefined,
  }
  const made = await createTree(creation)
  if (!('outcome' in made)) return { creation, made }
  throw new AppError(
    'restore-failed',
    made.outcome === 'limit'
      ? `the limit of ${limit} worktrees is reached`
      : `another worktree has the same ${made.on}`,
    {
      remedy: remedy`remove one first; run ${coppice('worktree list')} for a list`,
    },
  )
}

/** It may have expired since it was selected, or someone may have deleted its files. */
const assertWhole = async (
  context: Pick<IsolationContext, 'store' | 'home'>,
  { id, contents }: RestorePoint,
): Promise<void> => {
  if ((await context.store.restorePoints.get(id)) === undefined) {
    throw new AppError('restore-failed', 'that restore point has expired', {
      remedy: remedy`run ${coppice('worktree restore --list')} for the others`,
    })
  }
  const directory = restoreDirectory(context, id)
  const parts = ['admin', ...(contents.ignored.length > 0 ? ['ignored'] : [])]
  const places = [
    ...parts.map((part) => join(directory, part)),
    ...contents.nested.map((path) => nestedPlace(directory, path)),
  ]
  for (const place of places) {
    if ((await unlessMissing(lstat(place))) !== undefined) continue
    throw new AppError('restore-failed', `the restore point is incomplete: ${String(place)} is missing`, {
      remedy: `restore it from a backup and try again; the rest is in ${directory}`,
    })
  }
}

const nestedPlace = (directory: string, path: string): Buffer => bytesBelow(join(directory, 'nested'), path)

const occupied = (live: IsolatedEnvironment): AppError =>
  new AppError('restore-failed', `it already has a worktree again: ${live.branch} at ${live.path}`, {
    remedy: remedy`remove that one first: ${coppice(`worktree remove ${shellWord(live.branch)}`)}`,
  })

/** The same branch, if its name is free or still at that commit; else a new name, and the user is told. */
const planRestore = async (
  context: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  point: RestorePoint,
): Promise<Plan> => {
  const { environment, head, tip } = point.contents
  const repo = repoOf(codebase)
  // HEAD may have been detached, or on a branch without commits: the environment's own branch is restored, and `fill`
  // then puts HEAD where it was.
  const elsewhere = head.branch === undefined || head.sha === undefined
  const at = (elsewhere ? (tip ?? environment.startSha) : undefined) ?? head.sha
  if (at === undefined || (await resolveCommit(context.git, repo, at)) === undefined) {
    throw new AppError('restore-failed', 'its commits are gone from the repository')
  }
  const { branch: onHead = '' } = head
  const wanted = elsewhere || branchNameProblem(onHead) !== undefined ? environment.branch : toBranchName(onHead)
  const plain = {
    repo,
    at,
    start: environment.startSha,
    trust: environment.trust,
    prNumber: environment.prNumber,
    prBranch: environment.prBranch,
    ...upstreamOf(codebase, environment),
  }
  const ref = await readRef(context.git, repo, `refs/heads/${wanted}`)
  const names = await branchNames(context.git, repo)
  const blocked = blockerOf(wanted, names)
  const detachedElsewhere = elsewhere && ref !== undefined
  const free = (await branchCheckedOut(repo.commonDir, wanted)) === undefined
  // A deleted branch lost its settings; one that stayed still has them.
  const branchSettings = settingsFor(point, wanted)
  const anew = { ...plain, ...(branchSettings !== undefined && { branchSettings }), origin: 'created' } as const
  if (ref === undefined && blocked === undefined) return { ...anew, branch: wanted, notices: [] }
  if (ref !== undefined && free && (ref.sha === at || detachedElsewhere)) {
    return { ...plain, at: ref.sha, branch: wanted, origin: 'existing', notices: [] }
  }
  const branch = freeName(wanted, names)
  const why: NameTaken =
    blocked !== undefined
      ? { kind: 'blocked', by: blocked }
      : free && ref !== undefined
        ? { kind: 'moved', to: ref.sha }
        : { kind: 'checked-out' }
  return { ...anew, branch, notices: [{ kind: 'restored-as', branch: wanted, name: branch, why }] }
}

const upstreamOf = (
  { remote }: Codebase,
  { prBranch, branch, prNumber }: IsolatedEnvironment,
): Pick<Plan, 'upstream'> =>
  remote === undefined || prBranch === undefined || branch === `pr-${prNumber}-review`
    ? {}
    : { upstream: { remote, branch: prBranch } }

const freeName = (branch: string, names: readonly string[]): BranchName => {
  // If a branch `a` exists, no name below `a/` is free.
  const plain = names.some((name) => branch.startsWith(`${name}/`)) ? branch.replaceAll('/', '-') : branch
  for (let n = 1; ; n += 1) {
    const name = `${plain}-restored${n === 1 ? '' : `-${n}`}`
    if (!names.includes(name) && blockerOf(name, names) === undefined) return toBranchName(name)
  }
}

/** Writes index, files and half-done operations over the checkout, then what lies outside git. */
const fill = async (
  context: Pick<IsolationContext, 'git' | 'home' | 'failpoint'>,
  checkout: CheckoutKind,
  tree: Tree,
  point: RestorePoint,
): Promise<LeftOut[]> => {
  const directory = restoreDirectory(context, point.id)
  const { head, dirty, nested, ignored } = point.contents
  const settings = checkoutSettingsFor(point)
  await makeFull(context, tree, point, settings)
  if (head.branch === undefined && head.sha !== undefined) {
    await checkoutDetached(context.git, tree, head.sha, { settings })
  }
  const laid = await resolveCommit(context.git, tree, 'HEAD')
  if (head.branch !== undefined && head.sha === undefined && branchNameProblem(head.branch) === undefined) {
    await setHeadBranch(context.git, tree, toBranchName(head.branch))
  }
  const leftOut: LeftOut[] = []
  await restoreRawBytes(context, tree, point)
  if (dirty) await restoreFiles(context, tree, point, laid, leftOut)
  await restoreLargeFiles(tree, directory, point, leftOut)
  await context.failpoint('restore.files')
  await bringTags(context, tree, point)
  await checkout.restoreGitFiles(join(directory, 'admin'), tree, leftOut)
  await takeSkippedAway(context, tree, point)
  await context.failpoint('restore.record')
  // Go by the point, not by what exists: a directory that has vanished since isn't an empty one.
  if (ignored.length > 0) await restoreIgnored(join(directory, 'ignored'), tree, ignored, leftOut)
  for (const path of nested) {
    // A nested repository is restored whole, replacing an empty directory made by the checkout for a submodule.
    await deleteTree(bytesBelow(tree.path, path))
    await mkdir(bytesBelow(tree.path, parentOf(path)), { recursive: true })
    await copyTree(join(directory, 'nested'), tree.path, path, leftOut)
  }
  await restoreSubmodules(context, join(directory, 'admin'), tree, point, { leftOut, settings })
  const { permissions, modes } = point.contents
  if (permissions !== undefined) await applyPermissions(tree.path, { ...permissions, modes })
  return leftOut
}

/** Large files come from the restore point, so none has to be fetched. */
const checkoutSettingsFor = ({ contents }: RestorePoint): readonly Setting[] =>
  contents.largeFiles === undefined ? checkoutSettings(contents.environment.trust) : withoutLargeFiles
