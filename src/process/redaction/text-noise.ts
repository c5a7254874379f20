/* What can be inside a secret without a reader noticing. */

/**
 * Recognizes terminal escape sequences (ECMA-48): colours, character sets (`ESC ( B`), links and titles (`ESC ] …
 * BEL`), each also in its single-character form (U+0080 to U+009F).
 */
export const createEscapeReader = (): ((code: number) => 'begin' | 'inside' | undefined) => {
  let state: 'none' | 'begun' | 'intermediate' | 'control' | 'string' = 'none'
  let length = 0
  return (code) => {
    if (code === 0x1b || (code >= 0x80 && code <= 0x9f)) {
      // `ESC \` ends a string, like BEL; treating it as a new sequence makes no difference.
      state = code === 0x1b ? 'begun' : code === 0x9b ? 'control' : STRINGS_C1.has(code) ? 'string' : 'none'
      length = 0
      return 'begin'
    }
    if (state === 'none') return undefined
    // Too long to be a sequence: the rest of the text would be skipped.
    if (++length > MAX_ESCAPE_LENGTH || code === CANCEL || code === SUBSTITUTE) state = 'none'
    else if (state === 'string') state = code === BELL ? 'none' : 'string'
    // Other control characters act in the middle of a sequence.
    else if (code < 0x20 || code === 0x7f) return 'inside'
    else if (code > 0x7e) {
      state = 'none'
      return undefined
    } else state = afterCharacter(state, code)
    return 'inside'
  }
}

export const MAX_ESCAPE_LENGTH = 4_096
const BELL = 0x07
const CANCEL = 0x18
const SUBSTITUTE = 0x1a
/** Device control, start of string, operating system command, privacy message, application command. */
const STRINGS = new Set([0x50, 0x58, 0x5d, 0x5e, 0x5f])
const STRINGS_C1 = new Set([...STRINGS].map((code) => code + 0x40))

const afterCharacter = (
  state: 'begun' | 'intermediate' | 'control',
  code: number,
): 'none' | 'intermediate' | 'control' | 'string' => {
  if (state === 'control') return code >= 0x40 ? 'none' : 'control'
  if (code < 0x30) return 'intermediate'
  if (state === 'intermediate') return 'none'
  if (code === 0x5b) return 'control'
  return STRINGS.has(code) ? 'string' : 'none'
}

/**
 * Skips zero-width characters, control characters, and a line break with its indentation (base64 wraps at 76
 * characters). Returns the kind skipped.
 */
export const createNoiseFilter = (): ((code: number) => 'noise' | 'break' | undefined) => {
  let afterBreak = false
  let pair = false
  return (code) => {
    if (code > 0x20 && code < 0x7f) {
      afterBreak = false
      pair = false
      return undefined
    }
    if (code === 0x0a || code === 0x0d) {
      afterBreak = true
      return 'break'
    }
    if (afterBreak && (code === 0x20 || code === 0x09)) return 'break'
    afterBreak = false
    const second = pair && code >= 0xdc00 && code <= 0xdfff
    pair = isInvisibleHighSurrogate(code)
    return second || pair || isInvisible(code) ? 'noise' : undefined
  }
}

/** High surrogates of shorthand and musical controls and tags. Others that share them are rare in secrets. */
const isInvisibleHighSurrogate = (code: number): boolean =>
  code === 0xd82f || code === 0xd834 || (code >= 0xdb40 && code <= 0xdb43)

/** Control characters, Unicode's default-ignorable ones, and annotation marks. */
const isInvisible = (code: number): boolean =>
  (code < 0x20 && code !== 0x09) ||
  (code >= 0x7f && code <= 0x9f) ||
  (code >= 0xad && INVISIBLE.some(([from, to]) => code >= from && code <= to))

const INVISIBLE: readonly (readonly [from: number, to: number])[] = [
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x200b, 0x200f],
  [0x202a, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffb],
]

/** A secret as searched for: without its escape sequences, and with them as text. Usually the same. */
export const withoutNoise = (text: string): string[] => {
  const inEscape = createEscapeReader()
  const [skips, skipsToo] = [createNoiseFilter(), createNoiseFilter()]
  let [shown, plain] = ['', '']
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (inEscape(code) === undefined && skips(code) === undefined) shown += text.charAt(i)
    if (skipsToo(code) === undefined) plain += text.charAt(i)
  }
  // If only a few letters remain, they would be hidden everywhere.
  return shown.length * 2 > plain.length ? [shown, plain] : [plain]
}

/** Tracks where the last word of a streamed text starts. A space inside an escape sequence doesn't end a word. */
export const createWordReader = (): { readonly feed: (text: string) => void; readonly start: () => number } => {
  const inEscape = createEscapeReader()
  let position = 0
  let start = 0
  return {
    feed: (text) => {
      for (let i = 0; i < text.length; i++, position++) {
        const code = text.charCodeAt(i)
        if (inEscape(code) === undefined && isSpace(code)) start = position + 1
      }
    },
    start: () => start,
  }
}

const isSpace = (code: number): boolean => code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d
