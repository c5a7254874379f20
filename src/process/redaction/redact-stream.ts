import { beginsToken, type CredentialSpan, credentialSpans, unfinishedCredential } from './credential-shapes.ts'
import { hide } from './hide.ts'
import type { Matcher, Scanner, Span } from './secret-matcher.ts'
import { createWordReader } from './text-noise.ts'

/** Streams redacted text. Anything that may start a secret is held back until it is clear that it doesn't. */
export type RedactedStream = {
  readonly push: (text: string) => void
  /** Nothing arrived for a while: writes the last word too, unless it looks like the start of a secret. */
  readonly settle: () => void
  /** Like `settle`, before other output, unless just tried. */
  readonly show: () => void
  /** No more text. */
  readonly end: () => void
}

type Parts = { readonly matcher: () => Matcher | undefined; readonly write: (text: string) => void }

/** Fewer matching characters are chance. Writing them reveals nothing; the rest is still hidden. */
const MIN_MATCH_LENGTH = 4

/** A longer word is data, and isn't held back to its end. */
const MAX_WORD_LENGTH = 4_096

/** The most that is held back: longer than any private key. */
const MAX_HELD_BACK = 16_384

/** Beyond this size, text is rescanned only after growing by half: scan time grows with size. */
const ALWAYS_SCANNED_SIZE = 512

export const createRedactedStream = ({ matcher: current, write }: Parts): RedactedStream => {
  let matcher: Matcher | undefined
  let scanner: Scanner | undefined
  let found: Span[] = []
  let pending = ''
  /** Start of `pending` in the scanner's positions. */
  let base = 0
  const words = createWordReader()
  /** Start of `pending` in `words` positions. */
  let released = 0
  /** Size of the remaining text at the last scan. */
  let lastScanSize = 0
  /** The part of the current word already written, needed to recognize the rest. */
  let writtenWord = ''

  /** If secrets were added, rescans what isn't written yet. */
  const refresh = (): void => {
    const wanted = current()
    if (wanted === matcher) return
    matcher = wanted
    scanner = wanted?.scan()
    scanner?.feed(pending)
    found = []
    base = 0
  }
  /** Where a known secret may start. */
  const secretStart = (): number => {
    const open = scanner?.open()
    return open === undefined || open.depth < MIN_MATCH_LENGTH ? pending.length : Math.max(0, open.from - base)
  }
  /** The spans of `pending` to hide. */
  const spans = (): CredentialSpan[] => {
    found.push(...(scanner?.takeSpans() ?? []))
    const known = found.map(({ from, to }) => ({ start: from - base, from: from - base, to: to - base }))
    const shaped = credentialSpans(writtenWord + pending).map(({ start, from, to }) => ({
      start: start - writtenWord.length,
      from: from - writtenWord.length,
      to: to - writtenWord.length,
    }))
    return [...known, ...shaped]
  }
  const release = (wanted: number, whole: boolean): void => {
    if (wanted <= 0) return
    const hidden = spans()
    const end = whole ? wanted : endBeforeSpans(wanted, hidden)
    if (end <= 0) return
    const within = hidden.map(({ from, to }) => ({ from: Math.max(0, from), to: Math.min(end, to) }))
    const piece = pending.slice(0, end)
    writtenWord = lastWord(writtenWord + piece)
    pending = pending.slice(end)
    base += end
    released += end
    found = found.filter(({ to }) => to > base)
    write(hide(piece, within))
  }
  /** Where a credential may start. Part of its first word may already be written. */
  const credentialStart = (): number => Math.max(0, unfinishedCredential(writtenWord + pending) - writtenWord.length)
  const size = (): number => writtenWord.length + pending.length
  const shouldScan = (): boolean => size() < ALWAYS_SCANNED_SIZE || size() >= lastScanSize * 1.5
  const settle = (): void => {
    refresh()
    if (!beginsToken(lastWord(writtenWord + pending))) release(Math.min(secretStart(), credentialStart()), false)
    lastScanSize = size()
  }
  const maxHeldBack = (): number => Math.max(MAX_HELD_BACK, 2 * (matcher?.longest ?? 0))
  return {
    push: (text) => {
      refresh()
      scanner?.feed(text)
      words.feed(text)
      pending += text
      // The last word waits anyway. If only it grew, nothing is ready.
      if (!/\s/.test(text) && pending.length < 2 * MAX_WORD_LENGTH) return
      if (!shouldScan()) return
      const word = Math.max(words.start() - released, pending.length - MAX_WORD_LENGTH)
      release(Math.min(word, secretStart(), credentialStart()), false)
      release(pending.length - maxHeldBack(), true)
      lastScanSize = size()
    },
    settle,
    show: () => {
      if (shouldScan()) settle()
    },
    end: () => {
      refresh()
      release(pending.length, true)
      writtenWord = ''
    },
  }
}

/** Never splits a secret or its prefix: neither half might be recognized. */
const endBeforeSpans = (end: number, spans: readonly CredentialSpan[]): number => {
  const across = spans.filter(({ start, to }) => start < end && end < to)
  return across.length === 0 ? end : endBeforeSpans(Math.min(...across.map(({ start }) => start)), spans)
}

const lastWord = (text: string): string => {
  const words = createWordReader()
  words.feed(text)
  return text.slice(Math.max(words.start(), text.length - MAX_WORD_LENGTH))
}
