import type { PullRequest } from '../../domain/forge/publishing.ts'
import type { Publication } from '../../isolation/publish/publish.ts'
import type { FailureJson } from '../views/failure.ts'
import { environmentJson } from '../views/json.ts'
import type { View } from '../views/view.ts'
import { notPublishedTexts, openProblem } from './texts.ts'

export type PublicationJson = {
  readonly environment: ReturnType<typeof environmentJson>
  readonly remote: string
  readonly branch: string
  readonly base: string
  readonly push: 'new' | 'updated' | 'none'
  readonly commits: number
  readonly uncommitted: number
  readonly pullRequest: (Omit<PullRequest, 'forge'> & { readonly isNew: boolean }) | null
  readonly compareUrl: string | null
  /** Why there is no pull request; null if there is one, or no code host to open it on. */
  readonly problem: string | null
}

export const publicationJson = (
  publication: Publication,
  codebase: string,
  view: View,
): PublicationJson | FailureJson => {
  if (publication.outcome === 'not-published') {
    const { what, todo } = notPublishedTexts(publication, view)
    const code = publication.why.kind
    return { error: { code, message: what, reasons: [], remedies: todo === undefined ? [] : [todo] } }
  }
  const { environment, remote, branch, base, change, commits, uncommitted, opened } = publication
  return {
    environment: environmentJson(environment, () => codebase),
    remote,
    branch,
    base,
    push: change,
    commits,
    uncommitted,
    pullRequest: 'pullRequest' in opened ? pullRequestJson(opened.pullRequest, opened.outcome === 'opened') : null,
    compareUrl: publication.compareUrl ?? null,
    problem: openProblem(opened)?.what ?? null,
  }
}

const pullRequestJson = ({ number, url, draft }: PullRequest, isNew: boolean) => ({ number, url, draft, isNew })
