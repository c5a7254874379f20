import type { AgentRequest } from './agent.ts'

export type ReplyText = {
  readonly add: (text: string) => void
  /** Emits a short line about an action, after the text so far. */
  readonly tool: (line: string) => void
  /** Starts a new paragraph. */
  readonly paragraph: () => void
  /** Emits what was held back of a truncated reply, and returns all emitted text. */
  readonly end: () => string
}

/**
 * The reply is streamed and can't be taken back. Beyond the limit, the start is kept, the middle is omitted with a
 * notice, and the end comes last, since that is where programs sum up.
 */
export const createReply = (
  limitBytes: number,
  { emit, secrets }: Pick<AgentRequest, 'emit' | 'secrets'>,
): ReplyText => {
  const tailBytes = Math.floor(limitBytes / 4)
  let headRoom = limitBytes - tailBytes
  let emitted = ''
  let tail = ''
  let omittedBytes = 0
  let startsParagraph = false
  /** The last two characters added: enough to tell a line break from a paragraph break. */
  let lastTwo = ''
  const emitText = (text: string): void => {
    if (text === '') return
    emitted += text
    emit({ type: 'text', text })
  }
  const append = (text: string): void => {
    const head = tail === '' && omittedBytes === 0 ? firstBytes(text, headRoom) : ''
    headRoom -= Buffer.byteLength(head)
    emitText(head)
    tail += text.slice(head.length)
    const kept = lastBytes(tail, tailBytes)
    omittedBytes += Buffer.byteLength(tail) - Buffer.byteLength(kept)
    tail = kept
  }
  const redacted = secrets.stream(append)
  let settling: NodeJS.Timeout | undefined
  return {
    add: (piece) => {
      // PostgreSQL text can't contain NUL, and no platform shows it.
      const plain = piece.replaceAll('\0', '')
      if (plain === '') return
      redacted.push(startsParagraph ? gapAfter(lastTwo) + plain : plain)
      lastTwo = (lastTwo + plain).slice(-2)
      startsParagraph = false
      clearTimeout(settling)
      settling = setTimeout(redacted.settle, SETTLE_MS).unref()
    },
    tool: (line) => {
      redacted.show()
      emit({ type: 'tool', line: shortened(secrets.redact(line)) })
    },
    paragraph: () => {
      startsParagraph = true
    },
    end: () => {
      clearTimeout(settling)
      redacted.end()
      if (omittedBytes > 0) emitText(`\n\n[… ${omittedBytes} bytes of output omitted …]\n\n`)
      emitText(tail)
      tail = ''
      return emitted
    },
  }
}

/** After this pause a word is complete; a streaming agent sends its next one sooner. */
const SETTLE_MS = 100

const MAX_LINE_LENGTH = 120

const shortened = (line: string): string =>
  line.length > MAX_LINE_LENGTH ? `${line.slice(0, MAX_LINE_LENGTH - 1).toWellFormed()}…` : line

const gapAfter = (text: string): string =>
  text === '' || text.endsWith('\n\n') ? '' : text.endsWith('\n') ? '\n' : '\n\n'

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

/** UTF-8 continuation bytes start with the bits 10. */
const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80
