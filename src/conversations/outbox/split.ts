import { trimEndOf } from '../../domain/text/trim-end.ts'

/**
 * Splits a long reply into messages of at most `limit` characters, preferably between paragraphs, then lines, then
 * words. A code block that is split is closed and reopened, so that each message renders by itself.
 */
export const splitReply = (text: string, limit: number | undefined): string[] => {
  if (limit === undefined || text.length <= limit) return [text]
  const parts: string[] = []
  let rest = text
  let fence: string | undefined
  while (rest !== '') {
    const opening = fence === undefined ? '' : `${fence}\n`
    if (opening.length + rest.length <= limit) {
      parts.push(opening + rest)
      break
    }
    const room = limit - opening.length - closing.length
    const at = cutAt(rest, room)
    const piece = rest.slice(0, at)
    fence = openFence(opening + piece)
    parts.push(fence === undefined ? trimmed(opening + piece) : `${opening}${trimmed(piece)}${closing}`)
    rest = rest.slice(at).replace(fence === undefined ? /^\s{0,1000}\n/ : /^\n/, '')
  }
  return parts.filter((part) => part.trim() !== '')
}

/** The end of a text, at most `limit` characters. A code block that is still open is closed. */
export const lastPart = (text: string, limit: number): string => {
  const last = splitReply(text, limit - closing.length).at(-1) ?? ''
  return openFence(last) === undefined ? last : last + closing
}

const closing = '\n```'

/** The opening line of a code block still open at the end; undefined if none. */
const openFence = (text: string): string | undefined => {
  let open: string | undefined
  for (const line of text.split('\n')) {
    if (!line.startsWith('```')) continue
    open = open === undefined ? line.slice(0, longestFence).trimEnd() : undefined
  }
  return open
}

/** For "```typescript" and the like; a line of prose after the fence isn't repeated. */
const longestFence = 30

/** Not in the first third: a tiny message before a long one reads worse than a cut. */
const cutAt = (text: string, room: number): number => {
  const window = text.slice(0, room)
  for (const boundary of ['\n\n', '\n', ' ']) {
    const at = window.lastIndexOf(boundary)
    if (at > room / 3) return at + (boundary === ' ' ? 1 : 0)
  }
  // Never inside a surrogate pair.
  const last = text.charCodeAt(room - 1)
  return last >= 0xd800 && last <= 0xdbff ? room - 1 : room
}

const trimmed = (text: string): string => trimEndOf(text, ' \t\n')
