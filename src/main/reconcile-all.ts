import { toAppError } from '../domain/errors.ts'
import type { Notice } from '../domain/notice.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { movedNotice } from '../isolation/moved.ts'
import { reconcile } from '../isolation/reconcile.ts'

/** Before anything is accepted: what a crash left half done is finished or undone. */
export const reconcileAll = async (context: IsolationContext): Promise<Notice[]> => {
  const notices: Notice[] = []
  for (const codebase of await context.store.codebases.list(context.host)) {
    try {
      const { settled, left, moved } = await reconcile(context, codebase)
      notices.push(...settled, ...left, ...moved.map(movedNotice))
    } catch (error) {
      // A repository that is gone must not keep the others from being served.
      notices.push({ kind: 'not-recovered', codebase: codebase.name, message: toAppError(error).message })
    }
  }
  return notices
}
