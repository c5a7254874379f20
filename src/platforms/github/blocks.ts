/** What a piece of Markdown is, and where it ends. */
export type Found = { readonly kind: 'text' | 'code' | 'quote' | 'hidden'; readonly end: number }

/** Lines up to an empty one: no link, tag or code span goes beyond it. */
export type Block = {
  readonly end: number
  /** The beginnings of lines that may end the paragraph: a heading, an item, a fence, HTML. */
  readonly breaks: readonly number[]
  /** The cells of a table are apart before anything in them is read. */
  readonly isTable: boolean
  /** Whether there is anything that the page might not show. */
  readonly canHide: boolean
  /** Lengths of runs of backticks that nothing closes any more: each is looked for in vain once. */
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

/** Over the beginning of a line that may end the paragraph. */
export const crossesLine = (from: number, to: number, { breaks }: Block): boolean => {
  // By halves: there may be as many as there are lines.
  let low = 0
  let high = breaks.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((breaks[middle] ?? 0) > from) high = middle
    else low = middle + 1
  }
  return (breaks[low] ?? Infinity) < to
}

/** Where the paragraph may have ended in between, the page may read all the rest in another way. */
export const hiddenTo = (text: string, from: number, to: number, block: Block): Found => ({
  kind: 'hidden',
  end: crossesLine(from, to, block) ? text.length : to,
})

export const isLineStart = (text: string, at: number): boolean => at === 0 || text[at - 1] === '\n'

/** After the line break. */
export const lineEnd = (text: string, at: number): number => {
  const end = text.indexOf('\n', at)
  return end === -1 ? text.length : end + 1
}
