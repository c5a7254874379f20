import type { Codebase } from '../../domain/environment.ts'
import type { IsolationContext } from '../context.ts'
import { assertRepository } from '../codebases/repository-place.ts'

/** Holds the repository's lock for `work`; reports what it waits for if that takes long. */
export const locked = async <T>(
  context: Pick<IsolationContext, 'lock' | 'progress'>,
  codebase: Codebase,
  purpose: string,
  work: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> => {
  assertRepository(codebase)
  return context.lock.withRepositoryLock(
    codebase.repoPath,
    {
      purpose,
      onWait: (holder) =>
        context.progress(
          holder === undefined
            ? `waiting for another process that is working on ${codebase.name}`
            : `waiting for process ${holder.pid}, which is ${holder.purpose} in ${codebase.name}`,
        ),
      ...(signal === undefined ? {} : { signal }),
    },
    work,
  )
}
