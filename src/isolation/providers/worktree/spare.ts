import { lstat, stat, utimes } from 'node:fs/promises'
import type { SpareData } from '../../../domain/journal-data.ts'
import { basename, dirname, join } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { AppError } from '../../../domain/errors.ts'
import type { Sha } from '../../../domain/names.ts'
import { toRaw } from '../../../domain/text/raw-path.ts'
import {
  clearLock,
  halfDone,
  readAdminDir,
  readToken,
  readWorktreeLink,
  setLock,
  writeToken,
} from '../../../git/admin-dir.ts'
import { checkoutDetached, checkOutHead } from '../../../git/checkout.ts'
import { convertedFiles } from '../../../git/converted.ts'
import type { Tree } from '../../../git/door.ts'
import { setHeadBranch, updateRefs } from '../../../git/refs.ts'
import { readIndexState } from '../../../git/hidden.ts'
import { scanIndex } from '../../../git/index-scan.ts'
import { readStatus } from '../../../git/status.ts'
import { submodulesOf } from '../../../git/submodule.ts'
import { addWorktree } from '../../../git/worktree-add.ts'
import { reserveSpace } from '../../../git/reserve-space.ts'
import { removeWorktreeRecord } from '../../../git/worktree-remove.ts'
import { moveWorktree } from '../../../git/worktree-move.ts'
import { mountsInside } from '../../../process/files/mounts.ts'
import type { JournalEntry, Spare, Store } from '../../../store/store.ts'
import { checkoutSettings } from '../checkout/checkout-settings.ts'
import { baseAndConfig } from '../../codebases/base-and-config.ts'
import { undoOrAbandon } from '../../abandon.ts'
import { withChild } from '../../children.ts'
import type { IsolationContext } from '../../context.ts'
import { convertedEdits } from '../checkout/look/converted-edits.ts'
import { locked } from '../../lock/locked.ts'
import { prepareRoot, spareDirectory } from '../../paths.ts'
import { treeAt } from './presence.ts'
import { madeAt, unusedAt } from './forgotten-spares.ts'
import { leaveToUser, wasTaken } from './find-unfinished.ts'
import { walk } from '../../walk.ts'
import { fastForward } from '../checkout/fast-forward.ts'
import { discarding } from '../checkout/creation-record.ts'
import type { Creation } from '../checkout/kind.ts'
import { creationReason, spareReason, spareToken } from './lock-reasons.ts'
import { unlessMissing } from '../../../domain/missing.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import { discardDirectory } from '../../trash/trash.ts'
import { undoCreation } from '../checkout/undo-creation.ts'
import { undoSteps } from './undo-creation.ts'
import { isUnusedSpare, stampToken } from '../checkout/look/untouched.ts'
import { ReasonedError } from '../../../domain/reasoned-error.ts'

/** Deletes the row and records, in the same transaction, whose directory it is now. */
export const claimSpare = async (store: Store, spare: Spare, entryId: string): Promise<boolean> => {
  if (!(await store.spares.claim(spare.id))) return false
  await store.journal.advance(entryId, { data: { spare: { path: spare.path, adminName: spare.adminName } } })
  return true
}

/** A rename and a branch switch. Undefined if the spare can't be used: then the ordinary way is. */
export const takeSpare = async (creation: Creation, entry: JournalEntry, spare: Spare): Promise<Tree | undefined> => {
  const { context, codebase, kind, environment, plan } = creation
  const found = await spareTree(codebase, spare)
  if (found === undefined) {
    await forgetLostSpare(context, codebase, spare)
    return undefined
  }
  const isSame = (await madeAt(context, codebase, found.gitDir)) === spare.sha
  // Checking out another commit would overwrite an edit hidden by a filter.
  const isUnwritten = await isUnusedSpare(found, { files: spare.sha !== plan.at })
  if (!isSame || !(isUnwritten || (await isAsMade(context, found, [spare.sha])))) {
    context.log.warn('a spare could not serve: somebody has written to it', { path: spare.path })
    await leaveToUser(found.gitDir)
    return undefined
  }
  await clearLock(found.gitDir, spareReason(spare.id))
  await setLock(found.gitDir, creationReason(environment.id))
  await context.failpoint(`${kind}.spare-locked`)
  await fastForward(context, plan)
  const tree = await switchAndMove(creation, entry, spare, found).catch(async (error: unknown) => {
    // A file in it was changed, or the commit has submodules: fall back to the ordinary way.
    context.log.warn('a spare could not serve', { spare: spare.id, error: String(error) })
    await retireSpare(context, codebase, found, environment.id, [spare.sha, plan.at])
    return undefined
  })
  if (tree === undefined) return undefined
  await context.failpoint(`${kind}.spare-moved`)
  if (plan.origin === 'created') await makeBranch(context, tree, plan.branch, plan.at)
  await context.failpoint(`${kind}.spare-branch`)
  await setHeadBranch(context.git, tree, plan.branch)
  await settleIndex(tree, spare.createdAt, context.clock())
  return tree
}

const switchAndMove = async (
  { context, codebase, kind, environment, plan }: Creation,
  entry: JournalEntry,
  spare: Spare,
  found: Tree,
): Promise<Tree> => {
  if (spare.sha !== plan.at) {
    const settings = checkoutSettings(plan.trust)
    await withChild(context, entry.id, {}, (onSpawn) =>
      checkoutDetached(context.git, found, plan.at, { onSpawn, settings }),
    )
    await assertNoSubmodules(context, codebase, found, plan.at)
  }
  await context.failpoint(`${kind}.spare-switched`)
  return moveWorktree(found, environment.path, () => context.failpoint(`${kind}.spare-renamed`))
}

/** Links between a submodule and its git directory don't survive a move. */
const assertNoSubmodules = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  tree: Tree,
  commit: Sha,
): Promise<void> => {
  const found = scanIndex(tree)?.gitlinks ?? (await submodulesOf(git, repoOf(codebase), commit))
  if (found.length > 0) throw new AppError('git-failed', "a worktree with submodules can't be moved")
}

/** Removes a spare that is as we made it; one that somebody wrote to is left for `doctor` to report. */
const retireSpare = async (
  context: Pick<IsolationContext, 'git' | 'clock' | 'deleteInBackground'>,
  codebase: Codebase,
  spare: Tree,
  environmentId: string,
  ours: readonly Sha[],
): Promise<void> => {
  await clearLock(spare.gitDir, creationReason(environmentId))
  if (!(await isAsMade(context, spare, ours))) return leaveToUser(spare.gitDir)
  const root = dirname(dirname(spare.path))
  context.deleteInBackground([await discardDirectory(root, spare.path, basename(spare.path))])
  await removeWorktreeRecord(context.git, repoOf(codebase), { dir: spare.gitDir })
}

/** Nobody committed, staged, wrote or mounted anything in it, or made a repository inside. */
const isAsMade = async (
  context: Pick<IsolationContext, 'git' | 'clock'>,
  spare: Tree,
  ours: readonly Sha[],
): Promise<boolean> => {
  const mounts = await mountsInside([spare.path, spare.gitDir])
  if (mounts.length > 0) return false
  const [status, index, walked] = await Promise.all([
    readStatus(context.git, spare),
    readIndexState(context.git, spare),
    walk(spare.path, context.clock()),
  ])
  const { headSha, branch, changed, unmerged, untracked, ignored } = status
  if (branch !== undefined || headSha === undefined || !ours.includes(headSha)) return false
  const left = [changed, unmerged, untracked, ignored, index.hidden, walked.gits, walked.special]
  if (left.some((list) => list.length > 0) || halfDone(spare.gitDir).length > 0) return false
  const converted = await convertedFiles(context.git, spare, index)
  const paths = converted.map(({ bytes }) => toRaw(bytes))
  return (await convertedEdits(context, spare, { commit: headSha, paths, settings: [] })).length === 0
}

/** Its directory is gone: deletes git's record too, if it is still the spare's. Leaves anything else alone. */
const forgetLostSpare = async (
  context: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  spare: Spare,
): Promise<void> => {
  const dir = join(codebase.repoPath, 'worktrees', spare.adminName)
  const record = await readAdminDir(dir)
  if (record === undefined || (await readToken(dir)) !== spareToken(spare.id)) return
  if (await wasTaken(record, [spare.path])) return leaveToUser(dir)
  if ((await unlessMissing(lstat(spare.path))) !== undefined) return
  // Somebody committed or staged in it: only git's record, and its lock, keep that.
  if ((await unusedAt(context, codebase, dir)) !== spare.sha) return
  await clearLock(dir, spareReason(spare.id))
  await removeWorktreeRecord(context.git, repoOf(codebase), { dir })
}

const makeBranch = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  branch: string,
  at: Sha,
): Promise<void> => {
  const made = await updateRefs(context.git, tree, [{ create: `refs/heads/${branch}`, to: at }], {
    reason: `branch: Created from ${at}`,
  })
  if (!made.ok) throw new AppError('git-failed', `branch ${branch} could not be made: ${made.stderr}`)
}

/**
 * Git re-reads every file whose mtime isn't older than the index (30,000 files: 0.21 s instead of 0.04 s per status);
 * after a checkout that is all of them. A spare has been untouched since, so its index may be dated now. Not within two
 * seconds of its creation: a change could go unnoticed.
 */
const settleIndex = async (tree: Tree, madeAt: number, now: number): Promise<void> => {
  if (now - madeAt < 2000) return
  await utimes(join(tree.gitDir, 'index'), new Date(now), new Date(now))
}

const spareTree = async (codebase: Codebase, spare: Spare): Promise<Tree | undefined> => {
  try {
    if (!(await stat(spare.path)).isDirectory()) return undefined
    const adminDir = await readWorktreeLink(spare.path)
    if (adminDir === undefined || basename(adminDir) !== spare.adminName) return undefined
    if ((await readToken(adminDir)) !== spareToken(spare.id)) return undefined
    return treeAt(codebase, adminDir, spare.path)
  } catch {
    return undefined
  }
}

/** Makes spares up to the configured number, in the background. Returns how many it made. */
export const keepSpares = async (context: IsolationContext, codebase: Codebase): Promise<number> => {
  let made = 0
  while (await locked(context, codebase, 'preparing a spare', () => makeSpare(context, codebase))) {
    made += 1
  }
  return made
}

const makeSpare = async (context: IsolationContext, codebase: Codebase): Promise<boolean> => {
  const waiting = (await context.store.spares.list(codebase.id)).filter((spare) => spare.host === context.host)
  if (waiting.length >= context.settings.spares) return false
  const { base } = await baseAndConfig(context, codebase)
  // A worktree with submodules can't be moved, so such a spare could never become an environment.
  if ((await submodulesOf(context.git, repoOf(codebase), base.sha)).length > 0) return false
  const root = await prepareRoot(context.worktreesBase, codebase.name, context.host)
  const id = context.ids()
  const path = join(spareDirectory(root), id)
  const entry = spareEntry(context, codebase, { id, path, sha: base.sha })
  await context.store.journal.begin(entry)
  await context.failpoint('spare.intent')
  try {
    await addSpare(context, codebase, entry, { id, path, sha: base.sha })
  } catch (error) {
    await undoOrAbandon(context, entry.id, () => undoCreation(context, codebase, undoSteps, entry.id, 'just-failed'))
    throw error
  }
  return true
}

type NewSpare = { readonly id: string; readonly path: string; readonly sha: Sha }

const spareEntry = (
  context: Pick<IsolationContext, 'clock' | 'ids' | 'host' | 'self'>,
  codebase: Codebase,
  { id, path, sha }: NewSpare,
): JournalEntry => ({
  id: context.ids(),
  host: context.host,
  codebaseId: codebase.id,
  environmentId: undefined,
  kind: 'spare',
  step: 'adding',
  data: {
    path,
    leaf: basename(path),
    start: sha,
    spareId: id,
    directory: undefined,
    trashedFrom: undefined,
  } satisfies SpareData,
  holder: context.self,
  child: undefined,
  startedAt: context.clock(),
})

const addSpare = async (
  context: IsolationContext,
  codebase: Codebase,
  entry: JournalEntry,
  { id, path, sha }: NewSpare,
): Promise<void> => {
  const tree = await withChild(context, entry.id, {}, async (onSpawn) => {
    const add = { path, branch: { detached: true }, at: sha, lockReason: spareReason(id), onSpawn } as const
    using _ = await reserveSpace(context.git, repoOf(codebase))
    const added = await addWorktree(context.git, repoOf(codebase), add)
    await context.failpoint('spare.added')
    await checkOutHead(context.git, added, { onSpawn })
    return added
  })
  await context.failpoint('spare.tree')
  await writeToken(tree.gitDir, spareToken(id))
  await stampToken(tree)
  await context.failpoint('spare.token')
  await context.store.transaction(async (store) => {
    await store.spares.insert({
      id,
      host: context.host,
      codebaseId: codebase.id,
      path,
      adminName: basename(tree.gitDir),
      sha,
      createdAt: context.clock(),
    })
    await store.journal.end(entry.id)
  })
  await context.failpoint('spare.ready')
}

/** All of a codebase's. The caller holds the lock. */
export const dropSpares = async (context: IsolationContext, codebase: Codebase): Promise<void> => {
  for (const spare of await context.store.spares.list(codebase.id)) await discardSpare(context, codebase, spare)
}

/** Undone like a spare whose creation was interrupted, so reconciliation can finish it after a crash. */
const discardSpare = async (context: IsolationContext, codebase: Codebase, spare: Spare): Promise<void> => {
  if (spare.host !== context.host) return
  const id = context.ids()
  await context.store.transaction(async (store) => {
    if (!(await store.spares.claim(spare.id))) return
    await store.journal.begin({
      id,
      host: context.host,
      codebaseId: codebase.id,
      environmentId: undefined,
      kind: 'spare',
      step: discarding,
      data: {
        path: spare.path,
        leaf: basename(spare.path),
        start: spare.sha,
        spareId: spare.id,
        directory: undefined,
        trashedFrom: undefined,
      } satisfies SpareData,
      holder: context.self,
      child: undefined,
      startedAt: context.clock(),
    })
  })
  const undone = await undoCreation(context, codebase, undoSteps, id, 'after-crash')
  if (undone.outcome === 'undone') return
  await context.store.journal.advance(id, { data: { abandoned: true } })
  throw new ReasonedError('busy', `a spare of ${codebase.name} is in use`, [{ left: undone.why }])
}
