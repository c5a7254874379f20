import { AppError } from '../../../domain/errors.ts'
import type { Item } from '../../../domain/fleet/item.ts'
import { publish } from '../../../isolation/publish/publish.ts'
import { refusal, type Step } from '../step.ts'

/** Opens a draft pull request for the pushed branch, unless one is open. */
export const openPullRequest: Step = async ({ isolation }, { codebase, environment, item, signal }) => {
  if (environment === undefined) throw new AppError('not-found', 'the worktree is gone')
  const request = { title: item?.title, fixes: issuesOf(item, codebase.github), signal }
  const publication = await publish(isolation, codebase, environment, request)
  if (publication.outcome === 'not-published')
    return refusal({ kind: 'not-published', environment, why: publication.why })
  const { opened } = publication
  switch (opened.outcome) {
    case 'no-forge':
      return refusal({ kind: 'no-forge' })
    case 'refused':
    case 'unreachable':
      return refusal({ kind: 'no-pull-request', said: opened.said })
    case 'opened':
    case 'exists': {
      const { url } = opened.pullRequest
      return {
        state: 'done',
        patch: { pullRequest: url },
        record: async (store) => {
          if (item === undefined || item.pullRequest === url) return
          await store.items.update(item.id, { pullRequest: url })
          const at = isolation.clock()
          await store.items.note(item.id, { kind: 'pull-request', url }, { by: 'fleet', at })
        },
      }
    }
  }
}

/** The issue to close: that of an item imported from this repository. */
const issuesOf = (item: Item | undefined, github: string | undefined): readonly number[] =>
  item?.source?.kind === 'github' && item.source.repository.toLowerCase() === github?.toLowerCase()
    ? [item.source.number]
    : []
