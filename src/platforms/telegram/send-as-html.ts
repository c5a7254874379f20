import type { Logger } from '../../process/log.ts'
import { isFormattingError } from './client.ts'
import { lengthOf, toHtml, toPlain } from './render.ts'

/** Telegram's limit, counted without tags. */
const MAX_MESSAGE = 4_096

export type How = { readonly parse_mode?: 'HTML' }

/** Sends it rendered; unrendered if that would be too long, or if Telegram can't parse our HTML. */
export const sendAsHtml = async <T>(
  markdown: string,
  log: Logger,
  send: (text: string, how: How) => Promise<T>,
): Promise<T> => {
  const plain = toPlain(markdown).slice(0, MAX_MESSAGE)
  const html = toHtml(markdown)
  const length = lengthOf(html)
  if (length > MAX_MESSAGE || html.trim() === '') return send(plain, {})
  try {
    return await send(html, { parse_mode: 'HTML' })
  } catch (error) {
    if (!isFormattingError(error)) throw error
    log.warn('Telegram rejected the formatting of a message; it is sent as plain text', { error })
    return send(plain, {})
  }
}
