/** Why an item can't be given to an agent now. `commands/views/` has the wording and remedies. */
export type SlingRefusal =
  | { readonly kind: 'settled'; readonly state: 'landed' | 'closed' }
  | { readonly kind: 'in-review' }
  | { readonly kind: 'hooked'; readonly agent: string }
  | { readonly kind: 'waits'; readonly after: readonly number[] }
  | { readonly kind: 'other-codebase'; readonly pool: string; readonly codebase: string }
  | { readonly kind: 'pool-full'; readonly pool: string; readonly max: number }
  /** Its repository, or its agent, is on another host. */
  | { readonly kind: 'other-host' }
  | { readonly kind: 'fleet-full'; readonly max: number }
  | { readonly kind: 'fleet-down' }
  | { readonly kind: 'fleet-paused'; readonly why: string }
  /** A crew member has another item, isn't running, or has no worktree in the item's codebase. */
  | { readonly kind: 'crew-busy'; readonly crew: string; readonly item: number }
  | { readonly kind: 'crew-asleep'; readonly crew: string; readonly state: string }
  | { readonly kind: 'crew-elsewhere'; readonly crew: string; readonly codebase: string }
