import type { Codebase } from '../../domain/environment.ts'
import type { Item } from '../../domain/fleet/item.ts'
import type { PullRequestState } from '../../domain/forge/publishing.ts'
import type { FleetContext } from '../context.ts'
import { parkItem } from '../items/change.ts'

/** Whether any item waits for a pull request. */
export const waitsForPullRequest = ({ state, parked, pullRequest }: Item): boolean =>
  pullRequest !== undefined &&
  // One that a person parked, or whose pull request was closed, may still be merged.
  (state === 'in_review' ||
    (state === 'parked' && (parked?.kind === 'asked' || parked?.kind === 'pull-request-closed')))

/**
 * Asks the code host about the pull requests of items in review. A merged one is queued, so that its result is tested;
 * one that was closed waits for a person.
 */
export const watchPullRequests = async (
  context: FleetContext,
  codebase: Codebase,
  signal?: AbortSignal,
): Promise<void> => {
  const { store, forge, log } = context.isolation
  const items = (await store.items.list({ codebaseId: codebase.id, states: ['in_review', 'parked'] })).filter(
    waitsForPullRequest,
  )
  const byNumber = new Map(items.map((item) => [pullRequestNumber(item.pullRequest), item]))
  const numbers = [...byNumber.keys()].filter((number) => number !== undefined)
  if (forge === undefined || numbers.length === 0) return
  const { found, problem } = await forge.pullRequestStates(codebase, numbers, { signal })
  if (problem !== undefined) log.info("the code host didn't answer about pull requests", problem)
  for (const state of found) {
    const item = byNumber.get(state.number)
    if (item !== undefined) await record(context, item, state)
  }
}

const pullRequestNumber = (url: string | undefined): number | undefined => {
  const digits = /\/(\d{1,9})\/?$/.exec(url ?? '')?.[1]
  return digits === undefined ? undefined : Number(digits)
}

const record = async (context: FleetContext, { id }: Item, found: PullRequestState): Promise<void> => {
  if (found.state === 'open') return
  const { store, clock } = context.isolation
  await store.transaction(async (inside) => {
    // Read again: somebody may have changed it while the code host answered.
    const item = await inside.items.get(id)
    if (item === undefined || !waitsForPullRequest(item)) return
    if (found.state !== 'merged') {
      const reason = { kind: 'pull-request-closed', url: item.pullRequest ?? '' } as const
      if (item.state === 'in_review') await parkItem(context, inside, item, { reason, by: 'fleet' })
      return
    }
    const { mergeCommit, headSha: sha, baseBranch, headBranch: branch } = found
    const earlier = await inside.landings.list({ itemId: id, limit: 50 })
    if (earlier.some((landing) => landing.mergeCommit === mergeCommit)) return
    const { codebaseId } = item
    const at = clock()
    await inside.landings.enqueue({
      codebaseId,
      itemId: id,
      branch,
      sha,
      baseBranch,
      mergeCommit,
      createdBy: 'fleet',
      createdAt: at,
    })
  })
}
