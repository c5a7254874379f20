export type Segment = { readonly kind: 'text' | 'code' | 'quote' | 'hidden'; readonly text: string }

/**
 * Markdown as a reader of the page sees it: what is said, what is code, what is a quotation of others, what is not shown
 * at all (comments, link definitions, alternative texts, titles, attributes). One pass from left to right, so that a
 * fence inside an HTML comment opens nothing, and the other way round.
 */
export const segmentsOf = (text: string): Segment[] => {
  const segments: Segment[] = []
  const state: State = { never: new Set(), address: undefined, title: undefined }
  let at = 0
  let plainFrom = 0
  let quotedUntil = 0
  const endPlain = (): void => {
    // A quotation ends with its line; what is special inside it is still found.
    const quoted = Math.min(Math.max(quotedUntil, plainFrom), at)
    if (quoted > plainFrom) segments.push({ kind: 'quote', text: text.slice(plainFrom, quoted) })
    if (at > quoted) segments.push({ kind: 'text', text: text.slice(quoted, at) })
  }
  while (at < text.length) {
    if (isLineStart(text, at) && at >= quotedUntil && isQuote(text, at)) {
      endPlain()
      plainFrom = at
      quotedUntil = lineEnd(text, at)
    }
    const found = special(text, at, quotedUntil, state)
    if (found === undefined) {
      at += 1
      continue
    }
    if (found.kind !== 'text') {
      endPlain()
      segments.push({ kind: found.kind, text: text.slice(at, found.end) })
      plainFrom = found.end
    }
    at = found.end
  }
  endPlain()
  return segments
}

type Found = { readonly kind: Segment['kind']; readonly end: number }

type State = {
  /** Which closing mark does not come any more: each is looked for in vain once, not once per opening. */
  readonly never: Set<string>
  /** Where the address of a link or picture begins, and where its title does. */
  address: number | undefined
  title: number | undefined
}

const special = (text: string, at: number, quotedUntil: number, state: State): Found | undefined => {
  if (isLineStart(text, at)) {
    const block = definitionAt(text, at) ?? fenceAt(text, at) ?? indentedAt(text, at)
    if (block !== undefined) return block
  }
  if (at === state.title) return titleAt(text, at)
  switch (text[at]) {
    case '`':
      return codeSpanAt(text, at)
    case '!':
      return imageAt(text, at, state)
    case ']':
      state.address = at + 1
      return undefined
    case '(':
      return at === state.address ? addressAt(text, at, state) : undefined
    case '<':
      return commentAt(text, at, quotedUntil) ?? elementAt(text, at, state.never) ?? tagAt(text, at)
    default:
      return undefined
  }
}

const isLineStart = (text: string, at: number): boolean => at === 0 || text[at - 1] === '\n'

/** Never closed: the rest of the page is not shown, or of the quotation that it stands in. */
const commentAt = (text: string, at: number, quotedUntil: number): Found | undefined => {
  if (!text.startsWith('<!--', at)) return undefined
  // `<!-->` is a whole comment.
  const close = text.indexOf('-->', at + 2)
  if (close !== -1) return { kind: 'hidden', end: close + 3 }
  return { kind: 'hidden', end: at < quotedUntil ? endOfQuote(text, at) : text.length }
}

const endOfQuote = (text: string, at: number): number => {
  let end = lineEnd(text, at)
  while (end < text.length && isQuote(text, end)) end = lineEnd(text, end)
  return end
}

/*
 * `[//]: # (anything)`: a definition that links refer to, and that the page never shows. Also inside lists and
 * quotations, whose marks are one class of characters here: two ways to read one blank would be exponentially many.
 * `[^1]: …` is a footnote, which is shown. The lengths bound what one that is never closed costs.
 */
const definition =
  /[ \t>*+\-.)\d]{0,200}\[(?!\^)(?:[^[\]\\]|\\.){1,999}\]:[ \t]*(?:\n[ \t>]*)?(?:<[^<>\n]{0,2000}>|[^\s<]\S{0,2000})(?:[ \t]*(?:\n[ \t>]*)?(?:"(?:[^"\\]|\\.){0,2000}"|'(?:[^'\\]|\\.){0,2000}'|\((?:[^()\\]|\\.){0,2000}\)))?[ \t]*(?:\n|$)/sy

const definitionAt = (text: string, at: number): Found | undefined => {
  definition.lastIndex = at
  const [whole] = definition.exec(text) ?? []
  // A blank line ends it, whatever the marks inside it say.
  if (whole === undefined || /\n[ \t]*\n./s.test(whole)) return undefined
  return { kind: 'hidden', end: at + whole.length }
}

/** The alternative text of a picture; its address stays. */
const image = /!\[(?:[^[\]\\]|\\.){0,2000}\](?=[([])/sy

const imageAt = (text: string, at: number, state: State): Found | undefined => {
  image.lastIndex = at
  const [whole] = image.exec(text) ?? []
  if (whole === undefined) return undefined
  state.address = at + whole.length
  return { kind: 'hidden', end: state.address }
}

/** Of `(address "title")` the address is there to be followed and is no sentence; the title is not shown. */
const address = /\([ \t]*(?:\n[ \t]*)?(?:<[^<>\n]{0,2000}>|[^\s()<>]{0,2000})[ \t]*(?:\n[ \t]*)?(?=["'()])/y
const title =
  /(?:"(?:[^"\\]|\\.){0,2000}"|'(?:[^'\\]|\\.){0,2000}'|\((?:[^()\\]|\\.){0,2000}\))[ \t]*(?:\n[ \t]*)?(?=\))/sy

const addressAt = (text: string, at: number, state: State): Found | undefined => {
  address.lastIndex = at
  const [whole] = address.exec(text) ?? []
  if (whole === undefined) return undefined
  state.title = at + whole.length
  return { kind: 'code', end: state.title }
}

const titleAt = (text: string, at: number): Found | undefined => {
  title.lastIndex = at
  const [whole] = title.exec(text) ?? []
  return whole === undefined ? undefined : { kind: 'hidden', end: at + whole.length }
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

/** What is folded away is there to be read, but it is not what somebody says to the bot. */
const element = /<(pre|code|blockquote|details)(?=[\s>])/iy

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
  return { kind: name === 'pre' || name === 'code' ? 'code' : 'quote', end: closed.index + closed[0].length }
}

/** A tag with attributes: `<img alt="…">` shows none of them. One without is left, it may be a type: `List<String>`. */
const tag =
  /<[A-Za-z][\w-]{0,40}(?:\s+[\w:@.-]{1,100}(?:\s*=\s*(?:"[^"]{0,2000}"|'[^']{0,2000}'|[^\s"'=<>`]{1,2000}))?){1,40}\s*\/?>/y

const tagAt = (text: string, at: number): Found | undefined => {
  tag.lastIndex = at
  const [whole] = tag.exec(text) ?? []
  return whole === undefined ? undefined : { kind: 'hidden', end: at + whole.length }
}

/** After the line break. */
const lineEnd = (text: string, at: number): number => {
  const end = text.indexOf('\n', at)
  return end === -1 ? text.length : end + 1
}
