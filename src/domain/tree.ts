import type { RepoPath } from './names.ts'

/** A repository's common git directory: explicit, never discovered. */
export type Repo = { readonly commonDir: RepoPath }

/** A checkout: its own git directory and the directory with the files. */
export type Tree = Repo & { readonly gitDir: string; readonly path: string }
