import { type Block, type Found, hiddenTo } from './blocks.ts'

/** What has to be remembered of the HTML so far. */
export type Markup = {
  /** Up to here a line that began with a tag makes everything HTML, which is read far more leniently than Markdown. */
  htmlUntil: number
  /** The folding elements that are open, by name. */
  readonly folded: Map<string, number>
  /** Where the last `>` of the text is: nothing that begins after it is ever closed. */
  readonly lastClose: number
  /** Where the last `-->` is. */
  readonly lastCommentClose: number
}

export const createMarkup = (text: string): Markup => ({
  htmlUntil: 0,
  folded: new Map(),
  lastClose: text.lastIndexOf('>'),
  lastCommentClose: text.lastIndexOf('-->'),
})

/** Also inside lists, quotations and footnotes. */
const htmlLine =
  /(?:[ \t>*+\-.)\d]{0,200}|[ \t>]{0,200}\[\^[^\s[\]]{1,999}\]:[ \t]*)<(?:(pre|script|style|textarea)\b|[A-Za-z/!?])/iy

export const noteHtmlLine = (text: string, at: number, blockEnd: number, markup: Markup): void => {
  htmlLine.lastIndex = at
  const found = htmlLine.exec(text)
  // These do not end with an empty line.
  if (found !== null) markup.htmlUntil = found[1] === undefined ? Math.max(markup.htmlUntil, blockEnd) : text.length
}

type Place = { readonly block: Block; readonly quotedUntil: number; readonly endOfQuote: () => number }

/** What begins with `<`. Undefined: the page shows it as it is written. */
export const markupAt = (text: string, at: number, markup: Markup, place: Place): Found | undefined => {
  if (!/[A-Za-z/!?]/.test(text.charAt(at + 1))) return undefined
  return (
    commentAt(text, at, markup, place) ??
    instructionAt(text, at, markup) ??
    tagAt(text, at, markup, place.block) ??
    (at < markup.htmlUntil ? brokenTagAt(text, at, place.block) : undefined)
  )
}

/** Never closed: the rest of the page is not shown, or of the quotation that it stands in. */
const commentAt = (text: string, at: number, markup: Markup, place: Place): Found | undefined => {
  if (!text.startsWith('<!--', at)) return undefined
  // `<!-->` is a whole comment.
  const from = at + 2
  if (from > markup.lastCommentClose) {
    return { kind: 'hidden', end: at < place.quotedUntil ? place.endOfQuote() : text.length }
  }
  const close = text.indexOf('-->', from)
  // A browser ends it at `--!>` too, and reads what follows as HTML.
  const isClear = !text.slice(at, close).includes('--!>')
  return { kind: 'hidden', end: isClear ? close + 3 : text.length }
}

/** `<?php … ?>`, `<!DOCTYPE …>`, `<![CDATA[ … ]]>`. A browser ends each at the first `>`, Markdown at its own mark. */
const instructionAt = (text: string, at: number, markup: Markup): Found | undefined => {
  const mark = /^<(?:\?|!\[CDATA\[|![A-Za-z])/.exec(text.slice(at, at + 9))?.[0]
  if (mark === undefined) return undefined
  if (at > markup.lastClose) return at < markup.htmlUntil ? { kind: 'hidden', end: text.length } : undefined
  const end = text.indexOf('>', at) + 1
  const own = mark === '<?' ? '?>' : mark === '<![CDATA[' ? ']]>' : '>'
  return { kind: 'hidden', end: text.slice(at, end).endsWith(own) ? end : text.length }
}

/** As CommonMark defines a tag: there Markdown and browsers agree on its end. */
const tag =
  /<(?:\/([A-Za-z][A-Za-z0-9-]*)[ \t\n]*|([A-Za-z][A-Za-z0-9-]*)((?:[ \t\n]+[A-Za-z_:][\w.:-]*(?:[ \t\n]*=[ \t\n]*(?:"[^"]*"|'[^']*'|[^ \t\n"'=<>`]+))?)*)[ \t\n]*\/?)>/y

/** What they hold is there to be read at most, but it is not what somebody says to the bot. */
const folding = new Set(['pre', 'code', 'blockquote', 'details', 'template', 'svg', 'math', 'rp'])
/** Of these nothing is ever shown; `<rp>` is for browsers that have no `<ruby>`. */
const unseen = ['template', 'rp']

export const isUnseen = ({ folded }: Markup): boolean => unseen.some((name) => folded.has(name))

/** A tag with attributes shows none of them. One without is left, it may be a type: `List<String>`. */
const tagAt = (text: string, at: number, markup: Markup, block: Block): Found | undefined => {
  tag.lastIndex = at
  const found = tag.exec(text)
  if (found === null || tag.lastIndex > block.end) return undefined
  const end = at + found[0].length
  const [, closed = '', opened = '', attributes = ''] = found
  const name = (closed + opened).toLowerCase()
  const isFolding = folding.has(name)
  if (isFolding) {
    markup.folded.set(name, (markup.folded.get(name) ?? 0) + (closed === '' ? 1 : -1))
    if ((markup.folded.get(name) ?? 0) <= 0) markup.folded.delete(name)
  }
  if (attributes !== '') return hiddenTo(text, at, end, block)
  return isFolding ? { kind: 'quote', end } : undefined
}

/**
 * In HTML a browser makes something of every tag, `<div a$="…">` and `</div …>` too. With quotes, or with another tag
 * inside, Markdown and browsers may disagree on where it ends, and all the rest is hidden.
 */
const plainTag = /<[^<>"'`]*>/y

const brokenTagAt = (text: string, at: number, block: Block): Found | undefined => {
  if (/^<[A-Za-z][A-Za-z0-9-]*[ \t\n]*\/?>/.test(text.slice(at, at + 100))) return undefined
  if (/^<\/[A-Za-z][A-Za-z0-9-]*[ \t\n]*>/.test(text.slice(at, at + 100))) return undefined
  plainTag.lastIndex = at
  const isPlain = plainTag.test(text) && plainTag.lastIndex <= block.end
  return { kind: 'hidden', end: isPlain ? plainTag.lastIndex : text.length }
}
