import type { Sha } from '../../domain/names.ts'

/** What new branches start from and work is merged into. */
export type Base = {
  /** For display: `origin/main`, `main`, a tag, or a short commit id. */
  readonly name: string
  /** The full ref, or the commit id if no ref was named. */
  readonly ref: string
  readonly sha: Sha
  /** The branch's short name, `main`; undefined for a tag or a bare commit. */
  readonly branch: string | undefined
}

export type Fresh = { readonly outcome: 'fresh' | 'fetched' | 'no-remote' | 'offline'; readonly detail?: string }
