/** What Slack sends us, over a socket or as a webhook. */
export type SlackDelivery = {
  readonly kind: 'event' | 'interaction' | 'command'
  readonly body: unknown
  /** Which attempt this is, if it isn't the first. */
  readonly retry: number | undefined
}

/** Shown to the person who used the slash command, and to nobody else. */
export type SlackAnswer = { readonly response_type: 'ephemeral'; readonly text: string } | undefined
