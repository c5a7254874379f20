import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import type { IsolationHints } from '../../domain/hints.ts'
import type { StaleBase } from '../../domain/merge-proof.ts'
import type { BranchName } from '../../domain/names.ts'
import type { ProviderName } from '../../domain/provider-name.ts'
import type { Notice } from '../../domain/notice.ts'
import type { Doubt } from '../../domain/trust.ts'
import type { Work } from '../../domain/work.ts'
import type { Holder } from '../../domain/holder.ts'

export type ResolveRequest = {
  readonly codebase: Codebase
  readonly work: Work
  readonly hints: IsolationHints
  readonly holder?: Holder
  readonly branch?: BranchName
  readonly base?: string
  /** A person named the links in a command, not an author in a pull request's text. */
  readonly linkedByHand?: boolean
  /** For a new environment, instead of the configured one. */
  readonly provider?: ProviderName | undefined
  /** What its conversation began with; undefined for a later message or none. */
  readonly firstMessage?: string
  readonly createdBy: string
  /** For a persistent chat, whose environments are its user's own. */
  readonly persistent?: boolean
  readonly signal?: AbortSignal
}

/** A request whose origin is known: `isForkPR` says what is proven. `earlierNotices`: notices for the user so far. */
export type RequestWithOrigin = ResolveRequest & {
  readonly doubt: Doubt | undefined
  readonly earlierNotices: Notice[]
}

export type Resolution =
  | {
      readonly outcome: 'resolved'
      readonly environment: IsolatedEnvironment
      readonly how: 'conversation' | 'same-work' | 'linked' | 'adopted' | 'created'
      /** Both the environment and the message are proven to be the repository's own. */
      readonly trusted: boolean
      /** The tree is at commit `prSha`, or a notice says why not. False: not checked. */
      readonly prShaUsed: boolean
      readonly notices: readonly Notice[]
    }
  /** Never a reason to fall back to the shared checkout. */
  | { readonly outcome: 'limit'; readonly report: LimitReport }

/** An environment that was found or made, before the pull request's head and the message's trust are looked at. */
export type Found = Omit<Extract<Resolution, { outcome: 'resolved' }>, 'trusted' | 'prShaUsed'>

/** The numbers for the limit message; the caller words it. `merged` and `stale`: what cleanup would remove now. */
export type LimitReport = {
  readonly codebase: string
  readonly limit: number
  readonly count: number
  readonly merged: number
  readonly stale: number
  /** Merged or stale, and kept by a gate. */
  readonly held: number
  readonly active: number
  /** Why it is unknown which are merged; undefined if known. */
  readonly unknownMerged: StaleBase | undefined
}
