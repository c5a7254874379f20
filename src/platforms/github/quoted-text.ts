import { visible } from './markdown/visible.ts'

/*
 * Other people's words, as an agent gets them: information about the task, never instructions.
 */

/** A comment, with its author. */
export type Remark = { readonly by: string; readonly at?: string | undefined; readonly text: string }

const MAX_COMMENT = 4_000

/** Undefined if the page shows nothing of it. */
export const quotedRemark = ({ by, at, text }: Remark): string | undefined => {
  const seen = cut(visible(text), MAX_COMMENT)
  return seen === '' ? undefined : `\nComment by ${oneLine(by)}${at === undefined ? '' : `, ${at}`}:\n${quoted(seen)}`
}

/** Every line, so that no text can end its own quote. */
export const quoted = (text: string): string =>
  text
    .split('\n')
    .map((line) => `> ${line}`)
    .join('\n')

export const oneLine = (text: string): string => cut(visible(text).replaceAll(/\s+/g, ' '), 300)

export const cut = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, most).toWellFormed()}\n[cut: ${text.length - most} more characters]`

/** Keeps the end. */
export const cutStart = (text: string, most: number): string =>
  text.length <= most ? text : `[cut: ${text.length - most} characters before]\n${text.slice(-most).toWellFormed()}`
