/**
 * Removes what an agent would read but a person can't see. Instructions have been hidden in zero-width and
 * bidirectional characters, in the tags block (U+E0000, which mirrors ASCII) and in variation selectors, which carry
 * bytes.
 */
export const withoutInvisible = (text: string): string =>
  text
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(INVISIBLE, (character, at: number, whole: string) => (joins(whole, at) ? character : ''))
    .toWellFormed()

/** Control, format and other characters that Unicode hides, except tab, line feed and what emoji need. */
const INVISIBLE = /(?!\ufe0f)[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]--[\t\n]]/gv

/** A joiner between two pictographs makes one emoji, which is visible. */
const joins = (text: string, at: number): boolean =>
  text[at] === '\u200d' &&
  PICTURE_ENDS.test(text.slice(Math.max(0, at - 4), at)) &&
  PICTURE_BEGINS.test(text.slice(at + 1, at + 3))

const PICTURE_ENDS = /\p{Extended_Pictographic}[\p{Emoji_Modifier}\ufe0f]?$/u
const PICTURE_BEGINS = /^[\p{Extended_Pictographic}]/u
