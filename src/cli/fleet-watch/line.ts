import type { Style } from '../../commands/views/view.ts'
import { withoutInvisible } from '../../domain/text/visible.ts'
import { cutTo, displayWidth } from '../../domain/text/width.ts'

/** A line of the screen. Only `paintLine` turns it into what a terminal gets. */
export type Line = readonly Span[]
export type Span = { readonly text: string; readonly style?: LineStyle }
export type LineStyle = Style | 'inverse'

export type LinePaint = (style: LineStyle, text: string) => string

export const span = (text: string, style?: LineStyle): Span => (style === undefined ? { text } : { text, style })

/** Without anything that a terminal would act on: agents choose titles, branches and what they print. */
export const oneLine = (text: string): string => withoutInvisible(text).replaceAll(/[\n\t]/g, ' ')

export const plainText = (line: Line): string => line.map(({ text }) => text).join('')

export const widthOf = (line: Line): number => line.reduce((sum, { text }) => sum + displayWidth(text), 0)

export const cutLine = (line: Line, columns: number): Line => {
  const cut: Span[] = []
  let left = columns
  for (const one of line) {
    if (left <= 0) break
    const text = cutTo(one.text, left)
    cut.push({ ...one, text })
    left -= displayWidth(text)
    if (text !== one.text) break
  }
  return cut
}

/** `left`, and `right` at the end of the line if both fit. */
export const spread = (left: Line, right: Line, columns: number): Line => {
  const gap = columns - widthOf(left) - widthOf(right)
  return right.length === 0 || gap < 2 ? cutLine(left, columns) : [...left, span(' '.repeat(gap)), ...right]
}

/** What is sent to the terminal: whatever the line holds, the only escape sequences in it are those of `paint`. */
export const paintLine = (line: Line, columns: number, paint: LinePaint): string =>
  cutLine(
    line.map((one) => ({ ...one, text: oneLine(one.text) })),
    columns,
  )
    .map(({ text, style }) => (style === undefined || text === '' ? text : paint(style, text)))
    .join('')
