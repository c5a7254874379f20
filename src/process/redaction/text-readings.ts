import { createEscapeReader, createNoiseFilter } from './text-noise.ts'

/** One interpretation of a text, with each character's position in the original. */
export type Reading = { readonly text: string; readonly positionOf: (index: number) => number }

/**
 * All interpretations of a text with escape sequences and invisible characters: as is, as a terminal shows it, and with
 * the control characters removed but the rest of the sequences left. `starts` matches prefixes that count even when a
 * sequence swallows or touches them.
 */
export const readingsOf = (text: string, starts: RegExp): readonly Reading[] => {
  if (!NOISE.test(text)) return [unchanged(text)]
  const kinds = kindsOf(text)
  if (kinds.every((kind) => kind === VISIBLE)) return [unchanged(text)]
  const plain = pick(text, (i) => kinds[i] !== INVISIBLE)
  if (!kinds.includes(ESCAPE)) return unique([unchanged(text), plain, separateStarts(plain, starts)])
  const shown = pick(text, (i) => kinds[i] === VISIBLE)
  for (const { index, 0: word } of plain.text.matchAll(starts)) {
    for (let i = index; i < index + word.length; i++) showSequence(kinds, plain.positionOf(i))
  }
  const mixed = pick(text, (i) => kinds[i] === VISIBLE)
  return unique([unchanged(text), plain, shown, mixed, separateStarts(mixed, starts)])
}

const unique = (readings: readonly Reading[]): readonly Reading[] =>
  readings.filter(({ text }, n) => readings.findIndex((other) => other.text === text) === n)

/** Fast check: most texts have none of these; every text with noise has one. */
const NOISE = /[^\t\n\r -~\u00a1-\u00ac\u00ae-\u02ff\u3041-\u3163\u3165-\ud7ff]/

const VISIBLE = 0
const ESCAPE = 1
/** Invisible by itself, like the first character of a sequence. */
const INVISIBLE = 2

const kindsOf = (text: string): Uint8Array => {
  const inEscape = createEscapeReader()
  const skips = createNoiseFilter()
  return Uint8Array.from({ length: text.length }, (_, i) => {
    const code = text.charCodeAt(i)
    const escape = inEscape(code) !== undefined
    if (skips(code) === 'noise') return INVISIBLE
    return escape ? ESCAPE : VISIBLE
  })
}

/** Treats the rest of the sequence as text. */
const showSequence = (kinds: Uint8Array, from: number): void => {
  for (let i = from; kinds[i] === ESCAPE; i++) kinds[i] = VISIBLE
}

const unchanged = (text: string): Reading => ({ text, positionOf: (index) => index })

const pick = (text: string, isPicked: (index: number) => boolean): Reading => {
  const positions: number[] = []
  let picked = ''
  for (let i = 0; i < text.length; i++) {
    if (!isPicked(i)) continue
    picked += text.charAt(i)
    positions.push(i)
  }
  return { text: picked, positionOf: (index) => positions[index] ?? text.length }
}

/** Inserts a space before each prefix that only noise separates from the previous word. */
const separateStarts = (reading: Reading, starts: RegExp): Reading => {
  const places: number[] = []
  let text = ''
  let at = 0
  const copy = (to: number): void => {
    text += reading.text.slice(at, to)
    for (; at < to; at++) places.push(reading.positionOf(at))
  }
  for (const { index } of reading.text.matchAll(starts)) {
    if (index === 0 || reading.positionOf(index - 1) === reading.positionOf(index) - 1) continue
    copy(index)
    text += ' '
    places.push(reading.positionOf(index))
  }
  copy(reading.text.length)
  return { text, positionOf: (index) => places[index] ?? reading.positionOf(at) }
}
