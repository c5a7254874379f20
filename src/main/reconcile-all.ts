import { toAppError } from '../domain/errors.ts'
import type { Notice } from '../domain/notice.ts'
import { recoverRepositoryClones } from '../isolation/codebases/clone-repository.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { movedNotice } from '../isolation/moved.ts'
import { reconcile } from '../isolation/reconcile.ts'

/** Runs before any message is accepted: finishes or undoes what a crash interrupted. */
export const reconcileAll = async (context: IsolationContext): Promise<Notice[]> => {
  const clones = await recoverRepositoryClones(context)
  const notices: Notice[] = [...clones.settled, ...clones.left]
  for (const codebase of await context.store.codebases.list(context.host)) {
    try {
      const { settled, left, moved } = await reconcile(context, codebase)
      notices.push(...settled, ...left, ...moved.map(movedNotice))
    } catch (error) {
      // A missing repository must not block the others.
      notices.push({ kind: 'not-recovered', codebase: codebase.name, message: toAppError(error).message })
    }
  }
  return notices
}
