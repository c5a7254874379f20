import type { Progress } from '../../conversations/outbox/delivery.ts'
import type { Clock } from '../../domain/clock.ts'
import type { Logger } from '../../process/log.ts'
import type { Call, Found } from './port.ts'

/** This process's state of a conversation. */
export type Conversation<Place, Id> = {
  place: Place
  /** What earlier processes sent; undefined: not looked up yet. */
  found: Pick<Found<Id>, 'has'> | undefined
  /** What this process sent. */
  readonly sent: Set<string>
  /** The preview, which grows while the agent works. */
  shown: ShownPreview<Id> | undefined
  /** How far the run is; undefined: nothing runs. */
  progress: Progress | undefined
  /** Waits for its turn to be shown. */
  waiting: WaitingPreview | undefined
  /** The run ended without an answer: what to do with its preview. */
  ended: Progress | undefined
  /** The service refuses this run's previews. */
  muted: boolean
  turn: Promise<unknown>
}

export type WaitingPreview = { readonly hasNews: boolean; readonly cancel: () => void }

export type ShownPreview<Id> = {
  readonly id: Id
  /** What it shows, and how it was rendered; undefined: an earlier process posted it. */
  readonly progress: Progress | undefined
  readonly body: string | undefined
  /** Something was posted below it. */
  readonly overtaken: boolean
}

export type EngineParts = { readonly clock: Clock; readonly log: Logger }

/** Makes a call within its rate limit, and records what its failure means. */
export type Attempt<Place, Id> = <T>(
  conversation: Conversation<Place, Id>,
  call: Call,
  work: () => Promise<T>,
) => Promise<T>

const MAX_SENT = 500

export const newConversation = <Place, Id>(place: Place): Conversation<Place, Id> => ({
  place,
  found: undefined,
  sent: new Set(),
  shown: undefined,
  progress: undefined,
  waiting: undefined,
  ended: undefined,
  muted: false,
  turn: Promise.resolve(),
})

export const remember = ({ sent }: Pick<Conversation<unknown, unknown>, 'sent'>, id: string): void => {
  sent.add(id)
  const [oldest] = sent
  if (sent.size > MAX_SENT && oldest !== undefined) sent.delete(oldest)
}

/** Runs one task at a time. */
export const runInTurn = async <T>(
  conversation: Pick<Conversation<unknown, unknown>, 'turn'>,
  work: () => Promise<T>,
): Promise<T> => {
  const mine = conversation.turn.then(work)
  conversation.turn = mine.catch(() => undefined)
  return mine
}

/** Drops an inactive one; its messages are looked up again when it continues. */
export const forgetOldest = <Place, Id>(conversations: Map<string, Conversation<Place, Id>>): void => {
  for (const [id, { waiting, shown, progress }] of conversations) {
    if (waiting !== undefined || shown !== undefined || progress !== undefined) continue
    conversations.delete(id)
    return
  }
}
