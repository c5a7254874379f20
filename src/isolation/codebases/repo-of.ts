import type { Codebase } from '../../domain/environment.ts'
import { toRepoPath } from '../../domain/names.ts'
import type { Git, Repo } from '../../git/door.ts'

export type { Git }

/** The repository of a codebase, as git calls take it. */
export const repoOf = ({ repoPath }: Pick<Codebase, 'repoPath'>): Repo => ({ commonDir: toRepoPath(repoPath) })
