/*
 * Reading GitHub's Markdown. In: a comment as it was written. Out: its parts as a reader of the page sees them; the other
 * files find mentions and links in those.
 */
import { type Block, type Found, blockAt, blockEnd, crossesLine, hiddenTo, isLineStart, lineEnd } from './blocks.ts'
import { createMarkup, isUnseen, type Markup, markupAt, noteHtmlLine } from './markup.ts'
import { indentedCode } from './indented-code.ts'
import { createFormulas, formulaAt, type Formulas } from './math.ts'

export type Segment = { readonly kind: 'text' | 'code' | 'quote' | 'hidden'; readonly text: string }

/**
 * Splits Markdown as a reader of the page sees it: text, code, quoted or folded, and hidden (comments, link
 * definitions, alt texts, titles, attributes, unreferenced footnotes). One pass from left to right, so that a fence
 * inside an HTML comment opens nothing, and vice versa. Where it's unclear how the page reads something, it is hidden:
 * text that nobody sees must never instruct the bot.
 */
export const segmentsOf = (text: string): Segment[] => {
  const withoutFootnotes = read(text, new Set())
  if (!text.includes('[^')) return withoutFootnotes
  // Only a visible reference makes the page show a footnote.
  const references = withoutFootnotes
    .filter(({ kind }) => kind === 'text' || kind === 'quote')
    .flatMap((segment) => [...segment.text.matchAll(/(?<!\\)\[\^([^\s[\]]+)\]/g)])
  return read(text, new Set(references.map(([, label = '']) => label.toLowerCase())))
}

const read = (text: string, footnotes: ReadonlySet<string>): Segment[] => {
  const segments: Segment[] = []
  const state = createState(text, footnotes)
  let at = 0
  let plainFrom = 0
  let plainKind: Segment['kind'] = 'text'
  const endPlain = (): void => {
    if (at > plainFrom) segments.push({ kind: plainKind, text: text.slice(plainFrom, at) })
    plainFrom = at
  }
  while (at < text.length) {
    if (isLineStart(text, at)) startLine(text, at, state)
    const kind = plainKindAt(at, state)
    if (kind !== plainKind) {
      endPlain()
      plainKind = kind
    }
    const found = special(text, at, state)
    if (found !== undefined && found.kind !== 'text') {
      endPlain()
      segments.push({ kind: kind === 'hidden' ? kind : found.kind, text: text.slice(at, found.end) })
      plainFrom = found.end
    }
    const end = found?.end ?? at + 1
    const lastBreak = text.slice(at, end - 1).lastIndexOf('\n')
    // The end may be in the middle of a line, which may be a quote too.
    if (lastBreak !== -1) startLine(text, at + lastBreak + 1, state)
    at = end
  }
  endPlain()
  return segments
}

type State = {
  readonly markup: Markup
  readonly formulas: Formulas
  /** Labels of the visible footnotes. */
  readonly footnotes: ReadonlySet<string>
  /** Where lines of indented code begin. */
  readonly indented: ReadonlySet<number>
  block: Block
  quotedUntil: number
  /** The end of a hidden footnote. */
  footnoteUntil: number
  /** Where a link's or image's URL and title begin. */
  address: number | undefined
  title: number | undefined
}

const createState = (text: string, footnotes: ReadonlySet<string>): State => ({
  markup: createMarkup(text),
  formulas: createFormulas(),
  footnotes,
  indented: indentedCode(text),
  block: blockAt(text, 0),
  quotedUntil: 0,
  footnoteUntil: 0,
  address: undefined,
  title: undefined,
})

const startLine = (text: string, at: number, state: State): void => {
  if (at >= state.quotedUntil && isQuote(text, at)) state.quotedUntil = lineEnd(text, at)
  if (at >= state.footnoteUntil) state.footnoteUntil = endOfHiddenFootnote(text, at, state.footnotes)
  if (at >= state.block.end) state.block = blockAt(text, at)
  noteHtmlLine(text, at, state.block.end, state.markup)
}

/** A quote ends with its line; special syntax inside it is still found. */
const plainKindAt = (at: number, { footnoteUntil, quotedUntil, markup }: State): Segment['kind'] => {
  if (at < footnoteUntil || isUnseen(markup)) return 'hidden'
  return at < quotedUntil || markup.folded.size > 0 ? 'quote' : 'text'
}

const special = (text: string, at: number, state: State): Found | undefined => {
  // A long construct may have ended inside another paragraph.
  if (at >= state.block.end) state.block = blockAt(text, at)
  if (isLineStart(text, at)) {
    const block = definitionAt(text, at, state.block) ?? fenceAt(text, at) ?? indentedAt(text, at, state)
    if (block !== undefined) return block
  }
  const found = at === state.title ? titleAt(text, at, state) : undefined
  if (found !== undefined) return found
  switch (text[at]) {
    case '`':
      return codeSpanAt(text, at, state.block)
    case '!':
      return text[at + 1] === '[' ? imageAt(text, at, state) : undefined
    case ']':
      state.address = at + 1
      return undefined
    case '(':
      return at === state.address ? addressAt(text, at, state) : undefined
    case '<':
      return markupOf(text, at, state)
    case '$':
      return formulaAt(text, at, state.block, state.formulas)
    default:
      return undefined
  }
}

const markupOf = (text: string, at: number, { markup, block, quotedUntil }: State): Found | undefined =>
  markupAt(text, at, markup, { block, quotedUntil, endOfQuote: () => endOfQuote(text, at) })

const endOfQuote = (text: string, at: number): number => {
  let end = lineEnd(text, at)
  while (end < text.length && isQuote(text, end)) end = lineEnd(text, end)
  return end
}

/*
 * `[//]: # (anything)`: a link definition, which the page never shows. Also inside lists and quotes, whose marks are
 * one character class here: two ways to match one blank would be exponential. The next line's marks are matched all or
 * none: where a URL could begin with any of them, each would be tried. `[^1]: …` is a footnote. A label has at most 999
 * characters.
 */
const definition =
  /[ \t>*+\-.)\d]{0,200}\[(?!\^)(?:[^[\]\\]|\\.){1,999}\]:[ \t]*(?:\n[ \t>]*(?![ \t>]))?(?:<(?:[^<>\n\\]|\\[^\n])*>|[^\s<]\S*(?!\S))(?:[ \t]*(?:\n[ \t>]*)?(?:"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*'|\([^()\\]*(?:\\.[^()\\]*)*\)))?[ \t]*(?:\n|$)/sy

const definitionAt = (text: string, at: number, block: Block): Found | undefined => {
  definition.lastIndex = at
  const [whole] = definition.exec(text) ?? []
  // A blank line ends it, regardless of the quotes inside it.
  if (whole === undefined || /\n[ \t]*\n./s.test(whole)) return undefined
  return hiddenTo(text, at, at + whole.length, block)
}

const footnote = /[ \t>*+\-.)\d]{0,200}\[\^([^\s[\]]+)\]:/y

/** Including its continuation: indented lines, and those before the next empty line. */
const endOfHiddenFootnote = (text: string, at: number, shown: ReadonlySet<string>): number => {
  footnote.lastIndex = at
  const [, label] = footnote.exec(text) ?? []
  if (label === undefined || shown.has(label.toLowerCase())) return 0
  let end = blockEnd(text, at)
  while (end < text.length && /[ \t]/.test(text.charAt(end))) end = blockEnd(text, end)
  return end
}

/** An image's alt text; its URL stays. */
const imageAt = (text: string, at: number, state: State): Found | undefined => {
  const { lastBracket, lastLink } = state.block
  if (lastBracket < at) return undefined
  // If the brackets don't pair up: the last place where an image can end.
  const close = closingBracket(text, at + 2, state.block) ?? lastBracket
  const end = (/[([]/.test(text.charAt(close + 1)) ? close : Math.max(close, lastLink)) + 1
  state.address = end
  return hiddenTo(text, at, end, state.block)
}

const closingBracket = (text: string, from: number, block: Block): number | undefined => {
  let depth = 1
  for (let at = from; at <= block.lastBracket;) {
    const character = text[at]
    if (character === '[') depth += 1
    if (character === ']') depth -= 1
    if (depth === 0) return at
    if (character === '`') at = codeSpanAt(text, at, block).end
    else at += character === '\\' ? 2 : 1
  }
  return undefined
}

/** In `(url "title")` the URL can be followed but isn't text; the title isn't shown. */
const addressAt = (text: string, at: number, state: State): Found => {
  const blanks = /[ \t]*(?:\n[ \t>]*)?/y
  blanks.lastIndex = at + 1
  blanks.test(text)
  blanks.lastIndex = endOfAddress(text, blanks.lastIndex)
  blanks.test(text)
  state.title = blanks.lastIndex
  return { kind: 'code', end: state.title }
}

const endOfAddress = (text: string, from: number): number => {
  const angleBracketed = /<(?:[^<>\n\\]|\\[^\n])*>/y
  angleBracketed.lastIndex = from
  if (angleBracketed.test(text)) return angleBracketed.lastIndex
  let depth = 0
  let at = from
  for (; at < text.length && !/\s/.test(text.charAt(at)); at += text[at] === '\\' ? 2 : 1) {
    if (text[at] === '(') depth += 1
    if (text[at] === ')') depth -= 1
    if (depth < 0) break
  }
  return Math.min(at, text.length)
}

const title =
  /(?:"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*'|\([^()\\]*(?:\\.[^()\\]*)*\))[ \t]*(?:\n[ \t>]*)?(?=\))/sy

const titleAt = (text: string, at: number, { block }: State): Found | undefined => {
  title.lastIndex = at
  return title.test(text) && title.lastIndex < block.end ? hiddenTo(text, at, title.lastIndex, block) : undefined
}

const fence = /[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}(?=[^`\n]*(?:\n|$))|~{3,})/y

const fenceAt = (text: string, at: number): Found | undefined => {
  fence.lastIndex = at
  const [, mark] = fence.exec(text) ?? []
  if (mark === undefined) return undefined
  const closing = new RegExp(`^[ \\t]*${mark.charAt(0)}{${mark.length},}[ \\t]*$`, 'gm')
  closing.lastIndex = lineEnd(text, at)
  const closed = closing.exec(text)
  return { kind: 'code', end: closed === null ? text.length : closed.index + closed[0].length }
}

const quote = /[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?>/y

const isQuote = (text: string, at: number): boolean => {
  quote.lastIndex = at
  return quote.test(text)
}

const indentedAt = (text: string, at: number, { indented }: State): Found | undefined =>
  indented.has(at) ? { kind: 'code', end: lineEnd(text, at) } : undefined

/** A backtick run is closed by one of the same length in the same paragraph; otherwise it's plain text. */
const codeSpanAt = (text: string, at: number, block: Block): Found => {
  let open = at
  while (text[open] === '`') open += 1
  const length = open - at
  if (text[at - 1] === '\\') return { kind: 'text', end: at + 1 }
  if (block.unclosed.has(length)) return { kind: 'text', end: open }
  for (let next = text.indexOf('`', open); next !== -1 && next < block.end;) {
    let after = next
    while (text[after] === '`') after += 1
    if (after - next === length) {
      const isClear =
        !block.canHide || !(crossesLine(at, after, block) || (block.isTable && text.slice(at, after).includes('|')))
      return isClear ? { kind: 'code', end: after } : { kind: 'hidden', end: text.length }
    }
    next = text.indexOf('`', after)
  }
  block.unclosed.add(length)
  return { kind: 'text', end: open }
}
