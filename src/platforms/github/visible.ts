import { segmentsOf } from './segments.ts'

/**
 * What a person sees of a text. Instructions for an agent have been hidden in zero-width and bidirectional characters,
 * in the tags block (U+E0000, which mirrors ASCII) and in HTML comments.
 */
export const visible = (text: string): string =>
  segmentsOf(withoutInvisible(text))
    .filter(({ kind }) => kind !== 'hidden')
    .map((segment) => segment.text)
    .join('')
    .trim()

export const withoutInvisible = (text: string): string =>
  text.replaceAll(/\r\n?/g, '\n').replaceAll(INVISIBLE, '').toWellFormed()

/** Control and format characters and whatever else Unicode says is not shown; tab, line feed and the emoji's own stay. */
const INVISIBLE = /(?!\ufe0f)[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]--[\t\n]]/gv
