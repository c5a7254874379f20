import { type Block, type Span, wordsOf } from '../markdown/document.ts'
import { layOut } from '../markdown/layout.ts'
import { parseMarkdown } from '../markdown/parse.ts'

/**
 * Our Markdown in the HTML that Telegram knows: bold, italic, struck out, code, links and quotations; no headings, lists
 * or tables. Every `<`, `>` and `&` that is not our own is escaped, every tag that is opened is closed, and nobody is
 * called by a name that an agent writes.
 */
export const toHtml = (markdown: string): string =>
  quotations(parseMarkdown(markdown))
    .map(([first, ...rest], index) => {
      const gap = index === 0 ? '\n'.repeat(first.gap) : '\n'.repeat(first.gap + 1)
      const html = layOut([{ ...first, gap: 0 }, ...rest], { print, quote: '' })
      const isQuoted = first.quotes.length > 0 && html.trim() !== ''
      return gap + (isQuoted ? `<blockquote>${html}</blockquote>` : html)
    })
    .join('')

/** The same as plain text, for what cannot be sent as HTML: a name is broken up, so that nobody is called. */
export const toPlain = (markdown: string): string => markdown.replaceAll(/(?<!\w)@(?=[A-Za-z]\w{3})/g, '@\u200b')

/** What Telegram counts: the text without its tags. */
export const lengthOf = (html: string): number =>
  html.replaceAll(/<[^<>]*>/g, '').replaceAll(/&(?:amp|lt|gt|quot);/g, '.').length

type Run = [Block, ...Block[]]

/** What stands in the same quotation, or in none. A quotation cannot hold another one. */
const quotations = (blocks: readonly Block[]): Run[] => {
  const runs: Run[] = []
  for (const block of blocks) {
    const last = runs.at(-1)
    if (last !== undefined && last[0].quotes[0] === block.quotes[0]) last.push(block)
    else runs.push([block])
  }
  return runs
}

const print = (block: Block): string => {
  switch (block.kind) {
    case 'heading': {
      // All of it is bold already.
      const text = spans(block.spans, { bold: true })
      return text === '' ? '' : `<b>${text}</b>`
    }
    case 'paragraph':
      return spans(block.spans)
    case 'rule':
      return '───'
    case 'code':
      return pre(block.text, /^[\w+#.-]*/.exec(block.language)?.[0])
    case 'table':
      // There are no tables: as code their columns stay under each other.
      return pre(block.text)
  }
}

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

const pre = (text: string, language = ''): string => {
  // Telegram takes no empty block.
  if (text.trim() === '') return ''
  const code = escape(text)
  return language === '' ? `<pre>${code}</pre>` : `<pre><code class="language-${language}">${code}</code></pre>`
}

type Around = { readonly bold: boolean }

const spans = (all: readonly Span[], around: Around = { bold: false }): string =>
  all.map((one) => span(one, around)).join('')

const span = (one: Span, around: Around): string => {
  switch (one.kind) {
    case 'text':
      return withoutNames(one.text)
    case 'code':
      return `<code>${escape(one.text)}</code>`
    case 'strong':
      return around.bold ? spans(one.spans, around) : `<b>${spans(one.spans, { bold: true })}</b>`
    case 'emphasis':
      return `<i>${spans(one.spans, around)}</i>`
    case 'strike':
      return `<s>${spans(one.spans, around)}</s>`
    case 'line-break':
      return '\n'
    case 'image':
      return isAddress(one.target) ? linkTo(one.target, one.alt) : withoutNames(one.target)
    case 'link':
      return link(one, around)
  }
}

/** Telegram would make a mention of it and call whoever has that name. In code it does not. */
const NAME = /(?<!\w)@[A-Za-z]\w{3,}(?:\/[\w.-]+)?/g

/** Too short for a name as it stands, but what follows in another style would complete it. */
const BEGUN = /(?<!\w)@(?=\w{0,4}$)/

const withoutNames = (text: string): string => {
  let html = ''
  let at = 0
  for (const { index, 0: name } of text.matchAll(NAME)) {
    html += `${escape(text.slice(at, index))}<code>${escape(name)}</code>`
    at = index + name.length
  }
  return html + escape(text.slice(at).replace(BEGUN, '@\u200b'))
}

/** Only to where a browser may go (`tg://user` would call somebody); a path in the repository stays readable text. */
const link = (one: Extract<Span, { kind: 'link' }>, around: Around): string => {
  const { form, target } = one
  const words = wordsOf(one.spans)
  if (form === 'bare') return escape(words)
  if (form === 'angle') return isAddress(target) ? linkTo(target, words) : withoutNames(`<${words}>`)
  if (isAddress(target)) return linkTo(target, words)
  return words === '' ? withoutNames(target) : `${spans(one.spans, around)} (${withoutNames(target)})`
}

const linkTo = (target: string, label: string): string => {
  const shown = label.replaceAll(/[*_~`]/g, '').trim()
  return `<a href="${escape(target)}">${escape(shown === '' ? target : shown)}</a>`
}

const isAddress = (target: string): boolean => /^(?:https?:\/\/|mailto:)/i.test(target)
