import type { Progress } from '../../src/conversations/outbox/delivery.ts'

/** How far a run is, as conversations report it. It began in the future, so that its time stays at 0 s. */
export const progressOf = (text: string, more: Partial<Progress> = {}): Progress => ({
  text,
  tool: undefined,
  startedAt: 10 ** 14,
  ...more,
})

/** The last line of its preview, in Markdown. */
export const status = 'Working · 0 s'
