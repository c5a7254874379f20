import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { isSha, type Sha } from '../../../domain/names.ts'
import { halfDone } from '../../../git/admin-dir.ts'
import type { Tree } from '../../../git/door.ts'
import { readRef, resolveCommit } from '../../../git/refs.ts'
import type { JournalEntry } from '../../../store/store.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { IsolationContext } from '../../context.ts'
import type { RestorePointSource, Salvaged } from './kind.ts'
import { expectedContent } from './provision/expected-content.ts'
import { namedIn } from './restore-point/named-by-record.ts'
import { writeRestorePoint } from './restore-point/restore-point.ts'
import { branchOf, environmentOf, stagedOnly } from './salvage-creation.ts'

/**
 * An interrupted creation's directory was removed, or its disk isn't mounted. Git's record may be all that holds what
 * was committed or staged there, so save that in a restore point before deleting the record.
 */
export const saveRecord = async (
  context: IsolationContext,
  checkout: RestorePointSource,
  codebase: Codebase,
  entry: JournalEntry,
  tree: Tree,
  start: string,
): Promise<Salvaged> => {
  if (!isSha(start)) return 'cannot-keep'
  if (!(await isBeyondStart(context, tree, entry, start))) return 'nothing'
  const environment = await environmentOf(context, entry)
  // A spare isn't an environment. And a point written by an interrupted undo has files that may be gone by now.
  if (environment === undefined || (await context.store.restorePoints.get(entry.id)) !== undefined) return 'cannot-keep'
  const tip = (await readRef(context.git, repoOf(codebase), `refs/heads/${environment.branch}`))?.sha
  const fate = { tip }
  await writeRestorePoint(context, { checkout, codebase, environment, tree, dirt: undefined, fate, id: entry.id })
  return 'saved'
}

/** Whether the record has anything that neither the start commit nor a restore point has. */
const isBeyondStart = async (
  context: IsolationContext,
  tree: Tree,
  entry: JournalEntry,
  start: Sha,
): Promise<boolean> => {
  // A commit made in a submodule may be in its git directory alone.
  if (existsSync(join(tree.gitDir, 'modules'))) return true
  const content = await expectedContent(context, tree, entry, start, { isWhole: true })
  const head = await resolveCommit(context.git, tree, 'HEAD')
  if (head !== undefined && !content.commits.includes(head)) return true
  if ((await stagedOnly(context, tree, start, content)).length > 0) return true
  const named = await namedIn(context, tree, await branchOf(tree), content.commits)
  if (named.commits.length > 0) return true
  // What a restore brings back is still in its restore point.
  return !content.halfDone && (named.tags.size > 0 || named.others.length > 0 || halfDone(tree.gitDir).length > 0)
}
