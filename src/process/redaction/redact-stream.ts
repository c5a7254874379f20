import { beginsToken, type CredentialSpan, credentialSpans, unfinishedCredential } from './credential-shapes.ts'
import { hide } from './hide.ts'
import type { Matcher, Scanner, Span } from './secret-matcher.ts'
import { createWordReader } from './text-noise.ts'

/** Text in pieces on its way out. What may be the beginning of a secret waits until it is known not to be one. */
export type RedactedStream = {
  readonly push: (text: string) => void
  /** Nothing more came for a while: shows the last word too, unless it looks like the beginning of a secret. */
  readonly settle: () => void
  /** The same before something else is shown, unless it has just been tried. */
  readonly show: () => void
  /** Nothing more will come. */
  readonly end: () => void
}

type Parts = { readonly matcher: () => Matcher | undefined; readonly write: (text: string) => void }

/** So many characters of a secret in ordinary text are chance. Shown, they tell nothing; the rest is hidden as ever. */
const CHANCE = 4

/** A word that is longer is data, and is not waited for to its end. */
const LONGEST_WORD = 4_096

/** What is kept back at most: longer than any private key. */
const LONGEST_WAIT = 16_384

/** From this size on, a text is looked at again only when it has grown by half: a look takes time by its size. */
const SMALL = 512

export const createRedactedStream = ({ matcher: current, write }: Parts): RedactedStream => {
  let matcher: Matcher | undefined
  let scanner: Scanner | undefined
  let found: Span[] = []
  let pending = ''
  /** Where `pending` begins, counted as the scanner counts. */
  let base = 0
  const words = createWordReader()
  /** Where `pending` begins, counted as `words` counts. */
  let released = 0
  /** What was left of the text when we last looked. */
  let looked = 0
  /** The part of the current word that is out already: without it, the rest would not be recognised. */
  let before = ''

  /** Secrets may have been added meanwhile: what is not out yet is looked through again. */
  const refresh = (): void => {
    const wanted = current()
    if (wanted === matcher) return
    matcher = wanted
    scanner = wanted?.scan()
    scanner?.feed(pending)
    found = []
    base = 0
  }
  /** Where a known secret may have begun. */
  const opened = (): number => {
    const open = scanner?.open()
    return open === undefined || open.depth < CHANCE ? pending.length : Math.max(0, open.from - base)
  }
  /** What is hidden of `pending`. */
  const spans = (): CredentialSpan[] => {
    found.push(...(scanner?.takeSpans() ?? []))
    const known = found.map(({ from, to }) => ({ start: from - base, from: from - base, to: to - base }))
    const shaped = credentialSpans(before + pending).map(({ start, from, to }) => ({
      start: start - before.length,
      from: from - before.length,
      to: to - before.length,
    }))
    return [...known, ...shaped]
  }
  const release = (wanted: number, whole: boolean): void => {
    if (wanted <= 0) return
    const hidden = spans()
    const end = whole ? wanted : outside(wanted, hidden)
    if (end <= 0) return
    const within = hidden.map(({ from, to }) => ({ from: Math.max(0, from), to: Math.min(end, to) }))
    const piece = pending.slice(0, end)
    before = lastWord(before + piece)
    pending = pending.slice(end)
    base += end
    released += end
    found = found.filter(({ to }) => to > base)
    write(hide(piece, within))
  }
  /** Where a credential may have begun. Some of its first word may be out already. */
  const unfinished = (): number => Math.max(0, unfinishedCredential(before + pending) - before.length)
  const size = (): number => before.length + pending.length
  const isWorthALook = (): boolean => size() < SMALL || size() >= looked * 1.5
  const settle = (): void => {
    refresh()
    if (!beginsToken(lastWord(before + pending))) release(Math.min(opened(), unfinished()), false)
    looked = size()
  }
  const most = (): number => Math.max(LONGEST_WAIT, 2 * (matcher?.longest ?? 0))
  return {
    push: (text) => {
      refresh()
      scanner?.feed(text)
      words.feed(text)
      pending += text
      // The last word waits anyway. Where it only grew, nothing can leave.
      if (!/\s/.test(text) && pending.length < 2 * LONGEST_WORD) return
      if (!isWorthALook()) return
      const word = Math.max(words.start() - released, pending.length - LONGEST_WORD)
      release(Math.min(word, opened(), unfinished()), false)
      release(pending.length - most(), true)
      looked = size()
    },
    settle,
    show: () => {
      if (isWorthALook()) settle()
    },
    end: () => {
      refresh()
      release(pending.length, true)
      before = ''
    },
  }
}

/** A secret leaves in one piece with what it was recognised by: of its two halves, neither might be known for one. */
const outside = (end: number, spans: readonly CredentialSpan[]): number => {
  const across = spans.filter(({ start, to }) => start < end && end < to)
  return across.length === 0 ? end : outside(Math.min(...across.map(({ start }) => start)), spans)
}

const lastWord = (text: string): string => {
  const words = createWordReader()
  words.feed(text)
  return text.slice(Math.max(words.start(), text.length - LONGEST_WORD))
}
