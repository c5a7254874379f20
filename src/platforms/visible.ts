/**
 * Without what a person does not see and an agent would read. Instructions have been hidden in zero-width and
 * bidirectional characters, in the tags block (U+E0000, which mirrors ASCII) and in variation selectors, which carry bytes.
 */
export const withoutInvisible = (text: string): string =>
  text
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(INVISIBLE, (character, at: number, whole: string) => (joins(whole, at) ? character : ''))
    .toWellFormed()

/** Control and format characters and whatever else Unicode says is not shown; tab, line feed and the emoji's own stay. */
const INVISIBLE = /(?!\ufe0f)[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]--[\t\n]]/gv

/** One joiner between two pictures makes them one emoji, which a person does see. */
const joins = (text: string, at: number): boolean =>
  text[at] === '\u200d' &&
  PICTURE_ENDS.test(text.slice(Math.max(0, at - 4), at)) &&
  PICTURE_BEGINS.test(text.slice(at + 1, at + 3))

const PICTURE_ENDS = /\p{Extended_Pictographic}[\p{Emoji_Modifier}\ufe0f]?$/u
const PICTURE_BEGINS = /^[\p{Extended_Pictographic}]/u
