/** What was written: an issue's or pull request's description, a comment on it, a review, a comment on its code. */
export type MessageKind = 'opened' | 'comment' | 'review' | 'review-comment'

export type MessageRef = { readonly kind: MessageKind; readonly id: number }

/** How we name a message on GitHub: `comment:1234`. */
export const messageIdOf = (kind: MessageKind, id: number): string => `${kind}:${id}`

export const messageRefOf = (messageId: string | undefined): MessageRef | undefined => {
  const [, kind, id] = /^(opened|comment|review|review-comment):(\d{1,16})$/.exec(messageId ?? '') ?? []
  return kind === undefined ? undefined : { kind: kind as MessageKind, id: Number(id) }
}
