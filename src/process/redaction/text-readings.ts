import { createEscapeReader, createNoiseFilter } from './text-noise.ts'

/** One way to read a text, with the place of each of its characters in the text. */
export type Reading = { readonly text: string; readonly placeOf: (index: number) => number }

/**
 * All ways to read a text that may have escape sequences and invisible characters in it: as it is, as a terminal shows
 * it, and as it looks once somebody has removed the control characters and left the rest of the sequences. `starts` finds
 * the words that count for what they begin even when a sequence swallows or touches them.
 */
export const readingsOf = (text: string, starts: RegExp): readonly Reading[] => {
  if (!NOISE.test(text)) return [asItIs(text)]
  const kinds = kindsOf(text)
  if (kinds.every((kind) => kind === VISIBLE)) return [asItIs(text)]
  const plain = pick(text, (i) => kinds[i] !== INVISIBLE)
  if (!kinds.includes(ESCAPE)) return different([asItIs(text), plain, apart(plain, starts)])
  const shown = pick(text, (i) => kinds[i] === VISIBLE)
  for (const { index, 0: word } of plain.text.matchAll(starts)) {
    for (let i = index; i < index + word.length; i++) keepSequence(kinds, plain.placeOf(i))
  }
  const mixed = pick(text, (i) => kinds[i] === VISIBLE)
  return different([asItIs(text), plain, shown, mixed, apart(mixed, starts)])
}

const different = (readings: readonly Reading[]): readonly Reading[] =>
  readings.filter(({ text }, n) => readings.findIndex((other) => other.text === text) === n)

/** Cheap: most texts have none of these, and every text with noise has one. */
const NOISE = /[^\t\n\r -~\u00a1-\u00ac\u00ae-\u02ff\u3041-\u3163\u3165-\ud7ff]/

const VISIBLE = 0
const ESCAPE = 1
/** Invisible by itself, as the first character of a sequence is. */
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

/** From here to the end of the sequence it is text. */
const keepSequence = (kinds: Uint8Array, from: number): void => {
  for (let i = from; kinds[i] === ESCAPE; i++) kinds[i] = VISIBLE
}

const asItIs = (text: string): Reading => ({ text, placeOf: (index) => index })

const pick = (text: string, isPicked: (index: number) => boolean): Reading => {
  const places: number[] = []
  let picked = ''
  for (let i = 0; i < text.length; i++) {
    if (!isPicked(i)) continue
    picked += text.charAt(i)
    places.push(i)
  }
  return { text: picked, placeOf: (index) => places[index] ?? text.length }
}

/** With a space before every such word that noise alone sets apart from the word before it. */
const apart = (reading: Reading, starts: RegExp): Reading => {
  const places: number[] = []
  let text = ''
  let at = 0
  const copy = (to: number): void => {
    text += reading.text.slice(at, to)
    for (; at < to; at++) places.push(reading.placeOf(at))
  }
  for (const { index } of reading.text.matchAll(starts)) {
    if (index === 0 || reading.placeOf(index - 1) === reading.placeOf(index) - 1) continue
    copy(index)
    text += ' '
    places.push(reading.placeOf(index))
  }
  copy(reading.text.length)
  return { text, placeOf: (index) => places[index] ?? reading.placeOf(at) }
}
