import type { Codebase } from '../../../domain/environment.ts'
import { endScripts, endLeftoverGit } from '../../children.ts'
import type { IsolationContext } from '../../context.ts'
import type { Undone, UndoSteps, UndoWhen } from './kind.ts'
import { readCreationRecord } from './creation-record.ts'
import { endCreation, isNotUndone, removeIfEmpty, resumeDiscarding } from './discard-creation.ts'

/**
 * Undoes exactly what one creation, restore or spare made. Idempotent. Someone may be working in the directory:
 * then it stays. Or they may have worked in it: then that work is saved first.
 */
export const undoCreation = async (
  context: IsolationContext,
  codebase: Codebase,
  steps: UndoSteps,
  entryId: string,
  when: UndoWhen,
): Promise<Undone> => {
  const entry = await context.store.journal.get(entryId)
  if (entry === undefined) return { outcome: 'undone', work: 'nothing' }
  const data = readCreationRecord(entry)
  // Before git: a script gets time to clean up after itself.
  if (!(await endScripts(context, entry))) {
    return { outcome: 'left', why: { kind: 'setup-running' } }
  }
  // One that failed in this process has awaited its children.
  const running =
    when === 'after-crash'
      ? ((await endLeftoverGit(context, codebase.repoPath, entry)) ?? (await steps.stillRunning(context, data)))
      : undefined
  if (running !== undefined) return { outcome: 'left', why: { kind: 'failed', message: running } }
  const from = steps.paths(data).filter((path) => data.trashedFrom === undefined || path === data.trashedFrom)
  const astray = await resumeDiscarding(context, entry, from)
  if (astray !== undefined) return { outcome: 'left', why: astray }
  const undoing = { codebase, entry, data }
  const saved = await steps.takeBack(context, undoing)
  if (isNotUndone(saved)) return { outcome: 'left', why: saved.left }
  for (const path of steps.paths(data)) await removeIfEmpty(path)
  await steps.dropRefs(context, undoing, saved)
  await context.failpoint('undo.branch')
  await endCreation(context, entry, saved)
  return { outcome: 'undone', work: saved }
}
