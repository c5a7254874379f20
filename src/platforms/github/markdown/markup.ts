import { type Block, type Found, hiddenTo } from './blocks.ts'

/** The HTML state so far. */
export type Markup = {
  /** Up to here the text is HTML, because a line began with a tag. HTML is read far more leniently than Markdown. */
  htmlUntil: number
  /** The open folding elements, by name. */
  readonly folded: Map<string, number>
  /** The last `>` in the text: nothing that begins after it is ever closed. */
  readonly lastClose: number
  /** The last `-->`. */
  readonly lastCommentClose: number
}

export const createMarkup = (text: string): Markup => ({
  htmlUntil: 0,
  folded: new Map(),
  lastClose: text.lastIndexOf('>'),
  lastCommentClose: text.lastIndexOf('-->'),
})

/** Also inside lists, quotes and footnotes. */
const htmlLine =
  /(?:[ \t>*+\-.)\d]{0,200}|[ \t>]{0,200}\[\^[^\s[\]]{1,999}\]:[ \t]*)<(?:(pre|script|style|textarea)\b|[A-Za-z/!?])/iy

export const noteHtmlLine = (text: string, at: number, blockEnd: number, markup: Markup): void => {
  htmlLine.lastIndex = at
  const found = htmlLine.exec(text)
  // These don't end at an empty line.
  if (found !== null) markup.htmlUntil = found[1] === undefined ? Math.max(markup.htmlUntil, blockEnd) : text.length
}

type Place = { readonly block: Block; readonly quotedUntil: number; readonly endOfQuote: () => number }

/** Reads what begins with `<`. Undefined: the page shows it as written. */
export const markupAt = (text: string, at: number, markup: Markup, place: Place): Found | undefined => {
  if (!/[A-Za-z/!?]/.test(text.charAt(at + 1))) return undefined
  return (
    commentAt(text, at, markup, place) ??
    instructionAt(text, at, markup) ??
    tagAt(text, at, markup, place.block) ??
    (at < markup.htmlUntil ? brokenTagAt(text, at, place.block) : undefined)
  )
}

/** An unclosed comment hides the rest of the page, or of the quote around it. */
const commentAt = (text: string, at: number, markup: Markup, place: Place): Found | undefined => {
  if (!text.startsWith('<!--', at)) return undefined
  // `<!-->` is a whole comment.
  const from = at + 2
  if (from > markup.lastCommentClose) {
    return { kind: 'hidden', end: at < place.quotedUntil ? place.endOfQuote() : text.length }
  }
  const close = text.indexOf('-->', from)
  // Browsers also end it at `--!>`, and read the rest as HTML.
  const isClear = !text.slice(at, close).includes('--!>')
  return { kind: 'hidden', end: isClear ? close + 3 : text.length }
}

/** `<?php … ?>`, `<!DOCTYPE …>`, `<![CDATA[ … ]]>`. Browsers end each at the first `>`, Markdown at its own end. */
const instructionAt = (text: string, at: number, markup: Markup): Found | undefined => {
  const mark = /^<(?:\?|!\[CDATA\[|![A-Za-z])/.exec(text.slice(at, at + 9))?.[0]
  if (mark === undefined) return undefined
  if (at > markup.lastClose) return at < markup.htmlUntil ? { kind: 'hidden', end: text.length } : undefined
  const end = text.indexOf('>', at) + 1
  const own = mark === '<?' ? '?>' : mark === '<![CDATA[' ? ']]>' : '>'
  return { kind: 'hidden', end: text.slice(at, end).endsWith(own) ? end : text.length }
}

/** A tag as CommonMark defines it: there Markdown and browsers agree on its end. */
const tag =
  /<(?:\/([A-Za-z][A-Za-z0-9-]*)[ \t\n]*|([A-Za-z][A-Za-z0-9-]*)((?:[ \t\n]+[A-Za-z_:][\w.:-]*(?:[ \t\n]*=[ \t\n]*(?:"[^"]*"|'[^']*'|[^ \t\n"'=<>`]+))?)*)[ \t\n]*\/?)>/y

/** Their content may be read, but isn't addressed to the bot. */
const folding = new Set(['pre', 'code', 'blockquote', 'details', 'template', 'svg', 'math', 'rp'])
/** Never shown; `<rp>` is for browsers without `<ruby>`. */
const neverShown = ['template', 'rp']

export const isUnseen = ({ folded }: Markup): boolean => neverShown.some((name) => folded.has(name))

/** Attributes aren't shown. A tag without any stays, since it may be a type: `List<String>`. */
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
 * In HTML a browser accepts any tag, even `<div a$="…">` and `</div …>`. With quotes or another tag inside, Markdown
 * and browsers may disagree on where it ends, so all the rest is hidden.
 */
const plainTag = /<[^<>"'`]*>/y

const brokenTagAt = (text: string, at: number, block: Block): Found | undefined => {
  if (/^<[A-Za-z][A-Za-z0-9-]*[ \t\n]*\/?>/.test(text.slice(at, at + 100))) return undefined
  if (/^<\/[A-Za-z][A-Za-z0-9-]*[ \t\n]*>/.test(text.slice(at, at + 100))) return undefined
  plainTag.lastIndex = at
  const isPlain = plainTag.test(text) && plainTag.lastIndex <= block.end
  return { kind: 'hidden', end: isPlain ? plainTag.lastIndex : text.length }
}
