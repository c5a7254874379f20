/*
 * Markdown as the renderers see it: blocks from top to bottom, each with the quotes and lists around it. A list is one
 * block per paragraph, not a tree: no chat supports trees, and the output keeps the lines of its source.
 */

export type Block = Placed & (Heading | Paragraph | Code | Table | Rule)

type Placed = {
  /** Empty lines before it. */
  readonly gap: number
  /** The quotes around it, outermost first; blocks with the same number are in the same quote. */
  readonly quotes: readonly number[]
  /** How many lists it is in. */
  readonly depth: number
  /** Set if it starts a list item: its marker (`-`, `1.`) and checkbox. */
  readonly item: { readonly mark: string; readonly ticked: boolean | undefined } | undefined
}

type Heading = { readonly kind: 'heading'; readonly level: number; readonly spans: readonly Span[] }
type Paragraph = { readonly kind: 'paragraph'; readonly spans: readonly Span[] }
type Code = {
  readonly kind: 'code'
  readonly text: string
  readonly language: string
  /** As written; undefined for indented code. */
  readonly fence: { readonly opening: string; readonly closing: string | undefined } | undefined
}
/** Kept as written: no chat supports tables. */
type Table = { readonly kind: 'table'; readonly text: string }
type Rule = { readonly kind: 'rule' }

export type Span =
  /** `source` is as written, with backslashes. */
  | { readonly kind: 'text' | 'code'; readonly text: string; readonly source: string }
  | { readonly kind: Style; readonly mark: string; readonly spans: readonly Span[] }
  | {
      readonly kind: 'link'
      /** `[label](target)`, `<target>`, or a bare URL. */
      readonly form: 'label' | 'angle' | 'bare'
      readonly target: string
      readonly spans: readonly Span[]
    }
  | { readonly kind: 'image'; readonly target: string; readonly alt: string }
  | { readonly kind: 'line-break' }

export type Style = 'strong' | 'emphasis' | 'strike'

/** Without formatting. */
export const plainTextOf = (spans: readonly Span[]): string =>
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
          return plainTextOf(span.spans)
      }
    })
    .join('')
