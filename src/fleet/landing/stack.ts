import type { Codebase } from '../../domain/environment.ts'
import { toAppError } from '../../domain/errors.ts'
import type { Landing, LandingRefusal } from '../../domain/fleet/landing.ts'
import type { Sha } from '../../domain/names.ts'
import { resolveCommit } from '../../git/refs.ts'
import { bringOnto } from '../../isolation/codebases/landing/bring-onto.ts'
import type { LandingBase } from '../../isolation/codebases/landing/target.ts'
import { repoOf } from '../../isolation/codebases/repo-of.ts'
import type { FleetContext } from '../context.ts'

export type Member = { readonly landing: Landing; readonly commit: Sha }

export type Stack = {
  /** Each with the base and all members before it. */
  readonly members: readonly Member[]
  /** These can't land on the base as it is. */
  readonly refused: readonly { readonly landing: Landing; readonly why: LandingRefusal }[]
}

/**
 * Brings the branches onto the base one after the other. One that conflicts with the base itself is refused; one that
 * conflicts with a member before it isn't in this stack, and is tried again on the next base.
 */
export const stackUp = async (
  { isolation }: FleetContext,
  codebase: Codebase,
  { sha: base, config }: Pick<LandingBase, 'sha' | 'config'>,
  landings: readonly Landing[],
  signal?: AbortSignal,
): Promise<Stack> => {
  const members: Member[] = []
  const refused: { landing: Landing; why: LandingRefusal }[] = []
  let tip = base
  for (const landing of landings) {
    const { sha, branch } = landing
    if ((await resolveCommit(isolation.git, repoOf(codebase), sha)) === undefined) {
      refused.push({ landing, why: { kind: 'commit-gone' } })
      continue
    }
    const item = landing.itemId === undefined ? undefined : await isolation.store.items.get(landing.itemId)
    const bring = { onto: tip, tip: sha, branch, strategy: config.landingStrategy, title: item?.title }
    try {
      const brought = await bringOnto(isolation, codebase, bring, { signal })
      if (brought.outcome === 'brought') tip = brought.commit
      if (brought.outcome !== 'conflict') members.push({ landing, commit: tip })
      else if (tip === base) refused.push({ landing, why: { kind: 'conflict', paths: brought.paths } })
    } catch (error) {
      if (signal?.aborted === true) throw error
      refused.push({ landing, why: { kind: 'failed', message: toAppError(error).message } })
    }
  }
  return { members, refused }
}
