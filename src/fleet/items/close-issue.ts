import type { Codebase } from '../../domain/environment.ts'
import type { Item } from '../../domain/fleet/item.ts'
import type { ClosedIssue } from '../../domain/forge/issues.ts'
import type { IsolationContext } from '../../isolation/context.ts'

export type IssueClosing =
  | ClosedIssue
  /** `not-landed`: the work isn't on the base branch. `pull-request`: merging it closes the issue. */
  | { readonly outcome: 'left'; readonly why: 'not-landed' | 'pull-request' | 'no-issue' | 'other-repository' }

/**
 * Closes the issue of an item that landed without a pull request, with a comment. Idempotent. The issue of an item that
 * was closed without landing stays open.
 */
export const closeSourceIssue = async (
  { forge }: Pick<IsolationContext, 'forge'>,
  codebase: Codebase,
  { id, state, source, pullRequest }: Pick<Item, 'id' | 'state' | 'source' | 'pullRequest'>,
  comment: string,
  signal?: AbortSignal,
): Promise<IssueClosing> => {
  if (source?.kind !== 'github') return { outcome: 'left', why: 'no-issue' }
  if (state !== 'landed') return { outcome: 'left', why: 'not-landed' }
  if (pullRequest !== undefined) return { outcome: 'left', why: 'pull-request' }
  if (forge === undefined) return { outcome: 'no-forge' }
  if (codebase.github?.toLowerCase() !== source.repository.toLowerCase()) {
    return { outcome: 'left', why: 'other-repository' }
  }
  return forge.closeIssue(codebase, source.number, { text: comment, id: `item-${id}-landed` }, { signal })
}
