import type { Codebase } from '../../../domain/environment.ts'
import type { ClosedIssue } from '../../../domain/forge/issues.ts'
import { FORGE } from '../conversation-id.ts'
import { createClient } from '../client.ts'
import { failureOf } from '../failure.ts'
import type { Repository } from '../host.ts'
import { hasMarker, withMarker } from '../marker.ts'
import { noRetries, type Octokits } from '../octokits.ts'
import { issueNumbered, type IssueParts, issuesOf, problemOf } from './issues.ts'

type CloseParts = Omit<IssueParts, 'octokits'> & { readonly octokits: () => Promise<Octokits> }

/**
 * Comments first, so that what a crash leaves is an open issue, which is closed the next time. The comment's hidden last
 * line recognises it then, and shows the bot that it is its own.
 */
export const closeIssue = async (
  parts: CloseParts,
  codebase: Codebase,
  number: number,
  comment: { readonly text: string; readonly id: string },
  { signal }: { readonly signal?: AbortSignal | undefined } = {},
): Promise<ClosedIssue> => {
  const repository = issuesOf(codebase, parts.apiUrl)
  if (repository === undefined) return { outcome: 'no-forge' }
  try {
    const octokits = await parts.octokits()
    const octokit = await octokits.of(repository)
    const issue = await issueNumbered(octokit, repository, number, signal)
    if (issue.pull_request !== undefined && issue.pull_request !== null) {
      return { outcome: 'refused', forge: FORGE, why: 'other', anonymous: false, said: `#${number} is a pull request` }
    }
    if (issue.state === 'closed') return { outcome: 'closed-already' }
    await commentOnce(parts, octokits, { ...repository, number }, comment)
    const request = { ...noRetries, ...(signal && { signal }) }
    const change = { state: 'closed', state_reason: 'completed' } as const
    await unlessDone(
      parts,
      () => octokit.rest.issues.update({ ...repository, issue_number: number, ...change, request }),
      async () => (await issueNumbered(octokit, repository, number, signal)).state === 'closed',
    )
    return { outcome: 'closed' }
  } catch (error) {
    if (signal?.aborted === true) throw error
    return problemOf(error, parts)
  }
}

const commentOnce = async (
  parts: Pick<IssueParts, 'clock'>,
  octokits: Octokits,
  thread: Repository & { readonly number: number },
  { text, id }: { readonly text: string; readonly id: string },
): Promise<void> => {
  const client = createClient({ octokits, unpaced: octokits })
  const isThere = async (): Promise<boolean> =>
    (await client.newestComments(thread, noRetries)).some(({ body }) => hasMarker(body, id))
  if (await isThere()) return
  await unlessDone(parts, () => client.createComment(thread, withMarker(text, id)), isThere)
}

/** If the answer was lost, it may have been done. */
const unlessDone = async (
  { clock }: Pick<IssueParts, 'clock'>,
  act: () => Promise<unknown>,
  isDone: () => Promise<boolean>,
): Promise<void> => {
  try {
    await act()
  } catch (error) {
    if (failureOf(error, clock).kind !== 'away' || !(await isDone())) throw error
  }
}
