/** How we know that a branch was merged, cheapest first. The answer always names its proof. */
export type MergeProof =
  | 'ancestor' // its tip is in base's history, and it had its own commits
  | 'same-tree' // base has exactly the same content
  | 'merge-changes-nothing' // merging it into base would change nothing
  | 'squash' // its whole patch is in base under another commit
  | 'forge' // the forge reports it merged, with this tip as head

export type Merged =
  | { readonly value: 'yes'; readonly proof: MergeProof; readonly detail: string }
  | { readonly value: 'no'; readonly own: number }
  /** No commits beyond base: nothing to merge or lose. Not the same as merged. */
  | { readonly value: 'empty' }
  | { readonly value: 'cannot-tell'; readonly detail: string }
