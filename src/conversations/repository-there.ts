import { lstat } from 'node:fs/promises'
import type { Codebase } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'

/** Without its repository every environment looks broken: what is wrong is said once, where it is. */
export const assertRepositoryThere = async ({ name, repoPath, checkoutPath }: Codebase): Promise<void> => {
  try {
    await lstat(repoPath)
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw cause
    throw new AppError('not-a-repository', `the repository of ${name} is not at ${checkoutPath ?? repoPath} any more`, {
      cause,
      remedy: 'bring it back there (is its disk mounted?) and send the message again; its worktrees were not touched',
    })
  }
}
