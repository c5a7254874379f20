/** What changed in a shared checkout while an agent ran. */
export type CheckoutChange =
  /** For display: a branch with its commit, a commit, or nowhere. */
  | { readonly kind: 'head-moved'; readonly from: string; readonly to: string }
  /** `reset`: an uncommitted change may have been replaced with what is committed. */
  | { readonly kind: 'changed' | 'new' | 'reset'; readonly path: string }
  /** The check failed. */
  | { readonly kind: 'unknown'; readonly message: string }
