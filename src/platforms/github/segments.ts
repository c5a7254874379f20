export type Segment = { readonly kind: 'text' | 'code' | 'quote' | 'hidden'; readonly text: string }

/**
 * Markdown as a reader of the page sees it: what is said, what is code, what is a quotation of others, what is not shown
 * at all. One pass from left to right, so that a fence inside an HTML comment opens nothing, and the other way round.
 */
export const segmentsOf = (text: string): Segment[] => {
  const segments: Segment[] = []
  const never = new Set<string>()
  let at = 0
  let plainFrom = 0
  while (at < text.length) {
    const found = special(text, at, never)
    if (found === undefined) {
      at += 1
      continue
    }
    if (found.kind !== 'text') {
      if (at > plainFrom) segments.push({ kind: 'text', text: text.slice(plainFrom, at) })
      segments.push({ kind: found.kind, text: text.slice(at, found.end) })
      plainFrom = found.end
    }
    at = found.end
  }
  if (plainFrom < text.length) segments.push({ kind: 'text', text: text.slice(plainFrom) })
  return segments
}

type Found = { readonly kind: Segment['kind']; readonly end: number }

/** `never` remembers which closing mark does not come any more: each is looked for in vain once, not once per opening. */
const special = (text: string, at: number, never: Set<string>): Found | undefined => {
  if (at === 0 || text[at - 1] === '\n') {
    const block = fenceAt(text, at) ?? quoteAt(text, at) ?? indentedAt(text, at)
    if (block !== undefined) return block
  }
  if (text[at] === '`') return codeSpanAt(text, at)
  if (text[at] !== '<') return undefined
  if (text.startsWith('<!--', at)) {
    // Never closed: the rest of the page is not shown.
    const end = text.indexOf('-->', at + 4)
    return { kind: 'hidden', end: end === -1 ? text.length : end + 3 }
  }
  return elementAt(text, at, never)
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

const quoteAt = (text: string, at: number): Found | undefined => {
  quote.lastIndex = at
  return quote.test(text) ? { kind: 'quote', end: lineEnd(text, at) } : undefined
}

/** Four blanks after an empty line. Below a list it is the list's own text, so only what follows no item counts. */
const indentedAt = (text: string, at: number): Found | undefined => {
  if (!/^(?: {4}|\t)/.test(text.slice(at, at + 4))) return undefined
  const before = text.slice(Math.max(0, at - 2_000), at)
  const isAfterEmptyLine = before.trim() === '' || /\n[ \t]*\n$/.test(before) || /\n(?: {4}|\t)[^\n]*\n$/.test(before)
  const isInList = /(?:^|\n) {0,3}(?:[-*+]|\d{1,9}[.)])[ \t]/.test(before.slice(lastPlainLine(before)))
  return isAfterEmptyLine && !isInList ? { kind: 'code', end: lineEnd(text, at) } : undefined
}

/** Where the last line begins that stands at the margin: it is what an indented line belongs to. */
const lastPlainLine = (before: string): number => {
  const lines = [...before.matchAll(/(?:^|\n)(?=[^\s])/g)]
  return lines.at(-1)?.index ?? 0
}

/** A run of backticks is closed by a run of the same length in the same paragraph; else it is only backticks. */
const codeSpanAt = (text: string, at: number): Found => {
  let open = at
  while (text[open] === '`') open += 1
  const length = open - at
  if (text[at - 1] === '\\') return { kind: 'text', end: at + 1 }
  const paragraph = text.indexOf('\n\n', open)
  const end = paragraph === -1 ? text.length : paragraph
  for (let next = text.indexOf('`', open); next !== -1 && next < end;) {
    let after = next
    while (text[after] === '`') after += 1
    if (after - next === length) return { kind: 'code', end: after }
    next = text.indexOf('`', after)
  }
  return { kind: 'text', end: open }
}

const element = /<(pre|code|blockquote)(?=[\s>])/iy

const elementAt = (text: string, at: number, never: Set<string>): Found | undefined => {
  element.lastIndex = at
  const name = element.exec(text)?.[1]?.toLowerCase()
  if (name === undefined || never.has(name)) return undefined
  const closing = new RegExp(`</${name}\\s*>`, 'gi')
  closing.lastIndex = at
  const closed = closing.exec(text)
  if (closed === null) {
    never.add(name)
    return undefined
  }
  return { kind: name === 'blockquote' ? 'quote' : 'code', end: closed.index + closed[0].length }
}

/** After the line break. */
const lineEnd = (text: string, at: number): number => {
  const end = text.indexOf('\n', at)
  return end === -1 ? text.length : end + 1
}
