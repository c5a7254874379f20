/** A piece of Markdown: its kind and its end. */
export type Found = { readonly kind: 'text' | 'code' | 'quote' | 'hidden'; readonly end: number }

/** Lines up to an empty one: links, tags and code spans don't cross it. */
export type Block = {
  readonly end: number
  /** Starts of lines that may end the paragraph: a heading, an item, a fence, HTML. */
  readonly breaks: readonly number[]
  /** A table's cells are split before their content is read. */
  readonly isTable: boolean
  /** Whether it contains anything the page might not show. */
  readonly canHide: boolean
  /** Lengths of backtick runs known to be unclosed, so that each is searched for only once. */
  readonly unclosed: Set<number>
  readonly lastBracket: number
  /** The last `](` or `][`. */
  readonly lastLink: number
}

const interrupting = /^[ \t>]*(?:[#~|:=_*+\-<]|`{3}|\d{1,9}[.)]|\[\^)/

const breaksIn = (block: string, from: number): number[] => {
  const breaks: number[] = []
  let at = from
  let wasQuote = true
  for (const [index, line] of block.split('\n').entries()) {
    const isQuote = /^[ \t]*>/.test(line)
    if (index > 0 && ((isQuote && !wasQuote) || interrupting.test(line))) breaks.push(at)
    wasQuote = isQuote
    at += line.length + 1
  }
  return breaks
}

export const blockAt = (text: string, at: number): Block => {
  const end = blockEnd(text, at)
  const block = text.slice(at, end)
  const absolute = (index: number): number => (index === -1 ? -1 : at + index)
  return {
    end,
    breaks: breaksIn(block, at),
    isTable: /\n[ \t>]*[|:-][ \t|:-]*(?:\n|$)/.test(block),
    canHide: /<[A-Za-z/!?]|!\[|\]\(|\]:/.test(block),
    unclosed: new Set(),
    lastBracket: absolute(block.lastIndexOf(']')),
    lastLink: absolute(Math.max(block.lastIndexOf(']('), block.lastIndexOf(']['))),
  }
}

export const blockEnd = (text: string, at: number): number => {
  const blank = /\n[ \t>]*\n/g
  blank.lastIndex = at
  return blank.test(text) ? blank.lastIndex : text.length
}

/** Whether the range contains the start of a line that may end the paragraph. */
export const crossesLine = (from: number, to: number, { breaks }: Block): boolean => {
  // Binary search: there may be as many as lines.
  let low = 0
  let high = breaks.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((breaks[middle] ?? 0) > from) high = middle
    else low = middle + 1
  }
  return (breaks[low] ?? Infinity) < to
}

/** If the paragraph may have ended in between, the page may read all the rest differently. */
export const hiddenTo = (text: string, from: number, to: number, block: Block): Found => ({
  kind: 'hidden',
  end: crossesLine(from, to, block) ? text.length : to,
})

export const isLineStart = (text: string, at: number): boolean => at === 0 || text[at - 1] === '\n'

/** Past the line break. */
export const lineEnd = (text: string, at: number): number => {
  const end = text.indexOf('\n', at)
  return end === -1 ? text.length : end + 1
}
