import { type Block, type Found, blockAt, blockEnd, crossesLine, hiddenTo, isLineStart, lineEnd } from './blocks.ts'
import { createMarkup, isUnseen, type Markup, markupAt, noteHtmlLine } from './markup.ts'
import { indentedCode } from './indented-code.ts'
import { createFormulas, formulaAt, type Formulas } from './formulas.ts'

export type Segment = { readonly kind: 'text' | 'code' | 'quote' | 'hidden'; readonly text: string }

/**
 * Markdown as a reader of the page sees it: what is said, what is code, what is quoted or folded away, what is not shown
 * at all (comments, link definitions, alternative texts, titles, attributes, footnotes without a reference). One pass
 * from left to right, so that a fence inside an HTML comment opens nothing, and the other way round. Where it is unclear
 * how the page reads something, it is hidden: what nobody sees must never be an order.
 */
export const segmentsOf = (text: string): Segment[] => {
  const withoutFootnotes = read(text, new Set())
  if (!text.includes('[^')) return withoutFootnotes
  // Only a reference that is shown itself makes the page show a footnote.
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
    // Into the middle of a line, which may be a quotation as well.
    if (lastBreak !== -1) startLine(text, at + lastBreak + 1, state)
    at = end
  }
  endPlain()
  return segments
}

type State = {
  readonly markup: Markup
  readonly formulas: Formulas
  /** The labels of the footnotes that are shown. */
  readonly footnotes: ReadonlySet<string>
  /** Where the lines of indented code begin. */
  readonly indented: ReadonlySet<number>
  block: Block
  quotedUntil: number
  /** The end of a footnote that is not shown. */
  footnoteUntil: number
  /** Where the address of a link or picture begins, and where its title does. */
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

/** A quotation ends with its line; what is special inside it is still found. */
const plainKindAt = (at: number, { footnoteUntil, quotedUntil, markup }: State): Segment['kind'] => {
  if (at < footnoteUntil || isUnseen(markup)) return 'hidden'
  return at < quotedUntil || markup.folded.size > 0 ? 'quote' : 'text'
}

const special = (text: string, at: number, state: State): Found | undefined => {
  // Something long may have ended in the middle of another paragraph.
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
 * `[//]: # (anything)`: a definition that links refer to, and that the page never shows. Also inside lists and
 * quotations, whose marks are one class of characters here: two ways to read one blank would be exponentially many. The
 * marks of the next line are taken all or none: where an address could begin with any of them, each would be tried.
 * `[^1]: …` is a footnote. A label has 999 characters at most.
 */
const definition =
  /[ \t>*+\-.)\d]{0,200}\[(?!\^)(?:[^[\]\\]|\\.){1,999}\]:[ \t]*(?:\n[ \t>]*(?![ \t>]))?(?:<(?:[^<>\n\\]|\\[^\n])*>|[^\s<]\S*(?!\S))(?:[ \t]*(?:\n[ \t>]*)?(?:"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*'|\([^()\\]*(?:\\.[^()\\]*)*\)))?[ \t]*(?:\n|$)/sy

const definitionAt = (text: string, at: number, block: Block): Found | undefined => {
  definition.lastIndex = at
  const [whole] = definition.exec(text) ?? []
  // A blank line ends it, whatever the marks inside it say.
  if (whole === undefined || /\n[ \t]*\n./s.test(whole)) return undefined
  return hiddenTo(text, at, at + whole.length, block)
}

const footnote = /[ \t>*+\-.)\d]{0,200}\[\^([^\s[\]]+)\]:/y

/** With the lines that continue it: indented ones, and those before the next empty line. */
const endOfHiddenFootnote = (text: string, at: number, shown: ReadonlySet<string>): number => {
  footnote.lastIndex = at
  const [, label] = footnote.exec(text) ?? []
  if (label === undefined || shown.has(label.toLowerCase())) return 0
  let end = blockEnd(text, at)
  while (end < text.length && /[ \t]/.test(text.charAt(end))) end = blockEnd(text, end)
  return end
}

/** The alternative text of a picture; its address stays. */
const imageAt = (text: string, at: number, state: State): Found | undefined => {
  const { lastBracket, lastLink } = state.block
  if (lastBracket < at) return undefined
  // Where the brackets do not pair up: the last place where a picture can end.
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

/** Of `(address "title")` the address is there to be followed and is no sentence; the title is not shown. */
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
  const pointed = /<(?:[^<>\n\\]|\\[^\n])*>/y
  pointed.lastIndex = from
  if (pointed.test(text)) return pointed.lastIndex
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

/** A run of backticks is closed by a run of the same length in the same paragraph; else it is only backticks. */
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
