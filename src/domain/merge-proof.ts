/** How we know that a branch has landed, cheapest first. The answer always names its proof. */
export type MergeProof =
  | 'ancestor' // its tip is in the base's history, and it had commits of its own
  | 'same-tree' // base has exactly its content
  | 'merge-changes-nothing' // merging it into base would change nothing
  | 'squash' // its whole patch is in base under another commit
  | 'forge' // the forge says merged, and its head is this tip

export type Merged =
  | { readonly value: 'yes'; readonly proof: MergeProof; readonly detail: string }
  | { readonly value: 'no'; readonly own: number }
  /** No commits of its own: nothing to merge, nothing to lose. Not the same as merged. */
  | { readonly value: 'empty' }
  | { readonly value: 'cannot-tell'; readonly detail: string }
