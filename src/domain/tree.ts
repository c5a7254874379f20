import type { RepoPath } from './names.ts'

/** A repository by its common git directory: explicit, never found by looking around. */
export type Repo = { readonly commonDir: RepoPath }

/** A checkout: its own git directory and the directory with the files. */
export type Tree = Repo & { readonly gitDir: string; readonly path: string }
