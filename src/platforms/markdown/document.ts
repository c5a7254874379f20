/*
 * A text in Markdown as the printers see it: blocks from top to bottom, each with the quotations and lists it stands in.
 * A list is a block per paragraph and not a tree: no chat has trees, and what is printed keeps the lines of its source.
 */

export type Block = Placed & (Heading | Paragraph | Code | Table | Rule)

type Placed = {
  /** Empty lines before it. */
  readonly gap: number
  /** The quotations around it, outermost first; two blocks with the same number are in the same one. */
  readonly quotes: readonly number[]
  /** How many lists it is in. */
  readonly depth: number
  /** What it begins, if it begins an item: `-`, `1.`, and whether it is ticked. */
  readonly item: { readonly mark: string; readonly ticked: boolean | undefined } | undefined
}

type Heading = { readonly kind: 'heading'; readonly level: number; readonly spans: readonly Span[] }
type Paragraph = { readonly kind: 'paragraph'; readonly spans: readonly Span[] }
type Code = {
  readonly kind: 'code'
  readonly text: string
  readonly language: string
  /** As it was written; undefined for code by indentation. */
  readonly fence: { readonly opening: string; readonly closing: string | undefined } | undefined
}
/** As it was written: no chat has tables. */
type Table = { readonly kind: 'table'; readonly text: string }
type Rule = { readonly kind: 'rule' }

export type Span =
  /** `source` is what it was written as, with its backslashes. */
  | { readonly kind: 'text' | 'code'; readonly text: string; readonly source: string }
  | { readonly kind: Style; readonly mark: string; readonly spans: readonly Span[] }
  | {
      readonly kind: 'link'
      /** `[label](target)`, `<target>`, or the address alone. */
      readonly form: 'label' | 'angle' | 'bare'
      readonly target: string
      readonly spans: readonly Span[]
    }
  | { readonly kind: 'image'; readonly target: string; readonly alt: string }
  | { readonly kind: 'line-break' }

export type Style = 'strong' | 'emphasis' | 'strike'

/** The words alone. */
export const wordsOf = (spans: readonly Span[]): string =>
  spans
    .map((span) => {
      switch (span.kind) {
        case 'text':
        case 'code':
          return span.text
        case 'image':
          return span.alt
        case 'line-break':
          return '\n'
        default:
          return wordsOf(span.spans)
      }
    })
    .join('')
