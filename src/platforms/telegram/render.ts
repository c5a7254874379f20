import { type Block, type Span, plainTextOf } from '../markdown/document.ts'
import { layOut } from '../markdown/layout.ts'
import { parseMarkdown } from '../markdown/parse.ts'

/**
 * Renders Markdown as Telegram's HTML: bold, italic, strikethrough, code, links and quotes; no headings, lists or
 * tables. Every `<`, `>` and `&` that isn't ours is escaped, every opened tag is closed, and names that an agent writes
 * mention nobody.
 */
export const toHtml = (markdown: string): string =>
  groupByQuote(parseMarkdown(markdown))
    .map(([first, ...rest], index) => {
      const gap = index === 0 ? '\n'.repeat(first.gap) : '\n'.repeat(first.gap + 1)
      const html = layOut([{ ...first, gap: 0 }, ...rest], { print, quote: '' })
      const isQuoted = first.quotes.length > 0 && html.trim() !== ''
      return gap + (isQuoted ? `<blockquote>${html}</blockquote>` : html)
    })
    .join('')

/** As plain text, when HTML can't be sent: names are broken up, so that nobody is mentioned. */
export const toPlain = (markdown: string): string => markdown.replaceAll(/(?<!\w)@(?=[A-Za-z]\w{3})/g, '@\u200b')

/** The length as Telegram counts it: without tags. */
export const lengthOf = (html: string): number =>
  html.replaceAll(/<[^<>]*>/g, '').replaceAll(/&(?:amp|lt|gt|quot);/g, '.').length

type Run = [Block, ...Block[]]

/** Groups blocks in the same quote, or in none. Quotes can't be nested. */
const groupByQuote = (blocks: readonly Block[]): Run[] => {
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
      // The whole heading is already bold.
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
      // Telegram has no tables: as code, columns stay aligned.
      return pre(block.text)
  }
}

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

const pre = (text: string, language = ''): string => {
  // Telegram rejects an empty block.
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
      return withoutMentions(one.text)
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
      return isAddress(one.target) ? linkTo(one.target, one.alt) : withoutMentions(one.target)
    case 'link':
      return link(one, around)
  }
}

/** Telegram would turn it into a mention and notify that user. Not in code. */
const NAME = /(?<!\w)@[A-Za-z]\w{3,}(?:\/[\w.-]+)?/g

/** Too short for a name, but following text in another style would complete it. */
const PARTIAL_NAME = /(?<!\w)@(?=\w{0,4}$)/

const withoutMentions = (text: string): string => {
  let html = ''
  let at = 0
  for (const { index, 0: name } of text.matchAll(NAME)) {
    html += `${escape(text.slice(at, index))}<code>${escape(name)}</code>`
    at = index + name.length
  }
  return html + escape(text.slice(at).replace(PARTIAL_NAME, '@\u200b'))
}

/** Only links that a browser can open (`tg://user` would mention somebody); a repository path stays readable text. */
const link = (one: Extract<Span, { kind: 'link' }>, around: Around): string => {
  const { form, target } = one
  const words = plainTextOf(one.spans)
  if (form === 'bare') return escape(words)
  if (form === 'angle') return isAddress(target) ? linkTo(target, words) : withoutMentions(`<${words}>`)
  if (isAddress(target)) return linkTo(target, words)
  return words === '' ? withoutMentions(target) : `${spans(one.spans, around)} (${withoutMentions(target)})`
}

const linkTo = (target: string, label: string): string => {
  const shown = label.replaceAll(/[*_~`]/g, '').trim()
  return `<a href="${escape(target)}">${escape(shown === '' ? target : shown)}</a>`
}

const isAddress = (target: string): boolean => /^(?:https?:\/\/|mailto:)/i.test(target)
