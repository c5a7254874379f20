/** What became different in a shared checkout while an agent ran. */
export type CheckoutChange =
  /** As they are shown: a branch with its commit, a commit, or nowhere. */
  | { readonly kind: 'head-moved'; readonly from: string; readonly to: string }
  /** `reset`: an uncommitted change may have been replaced with what is committed. */
  | { readonly kind: 'changed' | 'new' | 'reset'; readonly path: string }
  /** Nobody could look. */
  | { readonly kind: 'unknown'; readonly message: string }
