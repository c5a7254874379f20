import type { AgentRequest } from './agent.ts'

export type ReplyText = {
  readonly add: (text: string) => void
  /** Emits one short line about what the agent did, after what it had said until then. */
  readonly tool: (line: string) => void
  /** What comes next is another paragraph than what was said last. */
  readonly part: () => void
  /** Everything that was emitted, put together. Emits what is owed of a reply that was cut. */
  readonly end: () => string
}

/**
 * The reply grows piece by piece, and what was said cannot be taken back: beyond the limit the beginning stands, the
 * middle is left out and told, and the end is said last, since that is where a program sums up.
 */
export const createReply = (
  limitBytes: number,
  { emit, secrets }: Pick<AgentRequest, 'emit' | 'secrets'>,
): ReplyText => {
  const tailBytes = Math.floor(limitBytes / 4)
  let room = limitBytes - tailBytes
  let said = ''
  let rest = ''
  let left = 0
  let parted = false
  /** The last two characters of what was added: enough to tell a line's end from a paragraph's. */
  let last = ''
  const say = (text: string): void => {
    if (text === '') return
    said += text
    emit({ type: 'text', text })
  }
  const grow = (text: string): void => {
    const head = rest === '' && left === 0 ? firstBytes(text, room) : ''
    room -= Buffer.byteLength(head)
    say(head)
    rest += text.slice(head.length)
    const kept = lastBytes(rest, tailBytes)
    left += Buffer.byteLength(rest) - Buffer.byteLength(kept)
    rest = kept
  }
  const redacted = secrets.stream(grow)
  let settling: NodeJS.Timeout | undefined
  return {
    add: (piece) => {
      // PostgreSQL has no text with a NUL in it, and no platform shows one.
      const plain = piece.replaceAll('\0', '')
      if (plain === '') return
      redacted.push(parted ? gapAfter(last) + plain : plain)
      last = (last + plain).slice(-2)
      parted = false
      clearTimeout(settling)
      settling = setTimeout(redacted.settle, SETTLE_MS).unref()
    },
    tool: (line) => {
      redacted.show()
      emit({ type: 'tool', line: shortened(secrets.redact(line)) })
    },
    part: () => {
      parted = true
    },
    end: () => {
      clearTimeout(settling)
      redacted.end()
      if (left > 0) say(`\n\n[… cut here: ${left} bytes of the output were left out …]\n\n`)
      say(rest)
      rest = ''
      return said
    },
  }
}

/** A word that is followed by silence is complete; while an agent speaks, its next one comes sooner than this. */
const SETTLE_MS = 100

const LONGEST_LINE = 120

const shortened = (line: string): string =>
  line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE - 1).toWellFormed()}…` : line

const gapAfter = (said: string): string =>
  said === '' || said.endsWith('\n\n') ? '' : said.endsWith('\n') ? '\n' : '\n\n'

/** As many whole characters as fit. */
const firstBytes = (text: string, limit: number): string => {
  if (Buffer.byteLength(text) <= limit) return text
  const bytes = Buffer.from(text)
  let end = Math.max(0, limit)
  while (end > 0 && isContinuation(bytes[end])) end -= 1
  return bytes.toString('utf8', 0, end)
}

const lastBytes = (text: string, limit: number): string => {
  if (Buffer.byteLength(text) <= limit) return text
  const bytes = Buffer.from(text)
  let start = bytes.length - limit
  while (start < bytes.length && isContinuation(bytes[start])) start += 1
  return bytes.toString('utf8', start)
}

/** UTF-8: every byte of a character but its first begins with the bits 10. */
const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80
