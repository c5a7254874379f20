import type { Clock } from '../../domain/clock.ts'
import type { Logger } from '../../process/log.ts'
import type { Call, Found } from './port.ts'

/** What is known of a conversation in this process. */
export type Conversation<Place, Id> = {
  place: Place
  /** What an earlier process sent; undefined: it has to be looked for. */
  found: Pick<Found<Id>, 'has'> | undefined
  /** What this process sent. */
  readonly sent: Set<string>
  /** The message that grows while the agent speaks. */
  shown: Shown<Id> | undefined
  /** What it should say, since when, and when to try. */
  wanted: string | undefined
  wantedAt: number
  timer: NodeJS.Timeout | undefined
  /** The service does not take previews of this run. */
  muted: boolean
  turn: Promise<unknown>
}

export type Shown<Id> = {
  readonly id: Id
  /** What was to be shown, and how it was rendered. */
  readonly source: string
  readonly body: string | undefined
  /** Something was said below it. */
  readonly overtaken: boolean
}

export type EngineParts = { readonly clock: Clock; readonly log: Logger }

/** How a call is made: within its unit's limits, and with what its failure means written down. */
export type Attempt<Place, Id> = <T>(
  conversation: Conversation<Place, Id>,
  call: Call,
  work: () => Promise<T>,
) => Promise<T>

const MOST_SENT = 500

export const newConversation = <Place, Id>(place: Place): Conversation<Place, Id> => ({
  place,
  found: undefined,
  sent: new Set(),
  shown: undefined,
  wanted: undefined,
  wantedAt: 0,
  timer: undefined,
  muted: false,
  turn: Promise.resolve(),
})

export const remember = ({ sent }: Pick<Conversation<unknown, unknown>, 'sent'>, id: string): void => {
  sent.add(id)
  const [oldest] = sent
  if (sent.size > MOST_SENT && oldest !== undefined) sent.delete(oldest)
}

/** One thing at a time. */
export const inTurn = async <T>(
  conversation: Pick<Conversation<unknown, unknown>, 'turn'>,
  work: () => Promise<T>,
): Promise<T> => {
  const mine = conversation.turn.then(work)
  conversation.turn = mine.catch(() => undefined)
  return mine
}

/** One in which nothing is going on; what is there is looked for again when it goes on. */
export const forgetOldest = <Place, Id>(conversations: Map<string, Conversation<Place, Id>>): void => {
  for (const [id, { timer, shown, wanted }] of conversations) {
    if (timer !== undefined || shown !== undefined || wanted !== undefined) continue
    conversations.delete(id)
    return
  }
}
