import type { TelegramEntity, TelegramMessage } from './payload.ts'
import { placeOf, textOf } from './parse.ts'

/*
 * One message that arrives as several: the client splits a text over 4,096 characters, and Telegram sends an album as
 * one message per picture.
 */

/** Telegram's limit for a message. */
const LIMIT = 4_096

/** Telegram Desktop cuts at the best place in the second half of the limit (`CutPart`), so a part may be this short. */
const SHORTEST_PART = LIMIT / 2

/** Identifies one person in one chat or topic. */
export const writerOf = (message: TelegramMessage): string => {
  const { chat, thread } = placeOf(message)
  return `${chat}:${thread ?? ''}:${message.from?.id ?? ''}`
}

/** Whether another part of the same message may follow. */
export const mayContinue = (message: TelegramMessage): boolean =>
  message.media_group_id !== undefined || (message.text?.length ?? 0) > SHORTEST_PART

/** Seconds between two parts, by Telegram's clock. */
const LONGEST_GAP = 3
const MOST_PARTS = 50

/** Whether a message continues those before it, from the same person in the same place. */
export const continues = (parts: readonly TelegramMessage[], next: TelegramMessage): boolean => {
  const last = parts.at(-1)
  if (last === undefined || parts.length >= MOST_PARTS || Math.abs(next.date - last.date) > LONGEST_GAP) return false
  if (last.media_group_id !== undefined) return next.media_group_id === last.media_group_id
  return next.text !== undefined && mayContinue(last) && next.message_id === last.message_id + 1
}

/** The message as it was before it was split. Mentions count in every part. */
export const joined = ([first, ...rest]: readonly TelegramMessage[]): TelegramMessage | undefined => {
  if (first === undefined || rest.length === 0) return first
  let text = ''
  let lastLength = 0
  const entities: TelegramEntity[] = []
  for (const part of [first, ...rest]) {
    const own = textOf(part)
    if (own === '') continue
    // A full part was cut in the middle of a word; otherwise the client cut at white space, which Telegram removes.
    if (text !== '') text += lastLength >= LIMIT ? '' : '\n'
    const marked = (part.text === undefined ? part.caption_entities : part.entities) ?? []
    entities.push(...marked.map((entity) => ({ ...entity, offset: entity.offset + text.length })))
    text += own
    lastLength = own.length
  }
  const { caption: _caption, caption_entities: _entities, ...message } = first
  return { ...message, text, entities }
}
