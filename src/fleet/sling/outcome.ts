import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import type { Item } from '../../domain/fleet/item.ts'
import type { SlingRefusal } from '../../domain/fleet/sling-refusal.ts'
import type { Notice } from '../../domain/notice.ts'
import type { LimitReport } from '../../isolation/resolve/resolution.ts'

export type SlingOutcome =
  | {
      readonly outcome: 'started'
      readonly agent: FleetAgent
      readonly item: Item
      readonly environment: IsolatedEnvironment
      readonly codebase: Codebase
      readonly notices: readonly Notice[]
    }
  | { readonly outcome: 'refused'; readonly item: Item; readonly why: SlingRefusal }
  /** The codebase has reached its worktree limit. */
  | { readonly outcome: 'limit'; readonly report: LimitReport }
