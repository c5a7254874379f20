import { type Groups, lineOf, spanPattern, withSpans } from '../markdown.ts'

/**
 * Our Markdown in the HTML that Telegram knows: bold, italic, struck out, code, links and quotations; no headings, lists
 * or tables. Every `<`, `>` and `&` that is not our own is escaped, every tag that is opened is closed, and nobody is
 * called by a name that an agent writes.
 */
export const toHtml = (markdown: string): string => {
  const blocks: string[] = []
  const lines = markdown.split('\n')
  for (let at = 0; at < lines.length;) {
    const { html, length } = fenceAt(lines, at) ??
      tableAt(lines, at) ??
      quoteAt(lines, at) ?? { html: block(lines[at] ?? ''), length: 1 }
    blocks.push(html)
    at += length
  }
  return blocks.join('\n')
}

/** The same as plain text, for what cannot be sent as HTML: a name is broken up, so that nobody is called. */
export const toPlain = (markdown: string): string => markdown.replaceAll(/(?<!\w)@(?=[A-Za-z]\w{3})/g, '@\u200b')

/** What Telegram counts: the text without its tags. */
export const lengthOf = (html: string): number =>
  html.replaceAll(/<[^<>]*>/g, '').replaceAll(/&(?:amp|lt|gt|quot);/g, '.').length

type Block = { readonly html: string; readonly length: number }

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

const pre = (lines: readonly string[], language = ''): string => {
  const code = escape(lines.join('\n'))
  return language === '' ? `<pre>${code}</pre>` : `<pre><code class="language-${language}">${code}</code></pre>`
}

const fenceAt = (lines: readonly string[], at: number): Block | undefined => {
  const [, fence, after = ''] = /^ {0,3}(`{3,}|~{3,}(?!~))([^`]*)$/.exec(lines[at] ?? '') ?? []
  if (fence === undefined) return undefined
  const [, info = ''] = /^\s*([\w+#.-]*)/.exec(after) ?? []
  const rest = lines.slice(at + 1)
  const end = rest.findIndex((line) => closes(line.trim(), fence))
  const code = end === -1 ? rest : rest.slice(0, end)
  const length = code.length + (end === -1 ? 1 : 2)
  // Telegram takes no empty block.
  return { html: code.join('').trim() === '' ? '' : pre(code, info), length }
}

const closes = (line: string, fence: string): boolean =>
  line.startsWith(fence) && line === fence.charAt(0).repeat(line.length)

/** There are no tables: as code their columns stay under each other. */
const tableAt = (lines: readonly string[], at: number): Block | undefined => {
  const isRow = (line: string | undefined): boolean => /^\s*\|.*\|\s*$/.test(line ?? '')
  let end = at
  while (isRow(lines[end])) end++
  return end === at ? undefined : { html: pre(lines.slice(at, end)), length: end - at }
}

const quoteAt = (lines: readonly string[], at: number): Block | undefined => {
  const quoted: string[] = []
  for (const line of lines.slice(at)) {
    const text = /^ {0,3}>\s?(.*)$/.exec(line)?.[1]
    if (text === undefined) break
    // A quotation cannot hold another one.
    quoted.push(block(text.replace(/^(?:\s*>)+\s?/, '')))
  }
  if (quoted.length === 0) return undefined
  const html = quoted.join('\n')
  return { html: html.trim() === '' ? '' : `<blockquote>${html}</blockquote>`, length: quoted.length }
}

const block = (given: string): string => {
  const line = lineOf(given)
  switch (line.kind) {
    case 'heading':
      return line.text === '' ? '' : `<b>${spans(line.text)}</b>`
    case 'rule':
      return '───'
    case 'item':
      return `${line.sign} ${spans(line.text)}`
    case 'text':
      return spans(line.text)
  }
}

const span = spanPattern({
  addresses: [String.raw`(?<url>https?:\/\/[^\s<>]+)`],
  // Telegram would make a mention of it and call whoever has that name. In code it does not.
  names: [String.raw`(?<!\w)(?<name>@[A-Za-z]\w{3,}(?:\/[\w.-]+)?)`],
})

const spans = (text: string): string => withSpans(text, span, escape, styled)

const styled = (whole: string, groups: Groups): string => {
  const { code, escaped, label, target, both, bold, boldToo, strike, italic, italicToo, name } = groups
  const verbatim = code ?? name
  if (verbatim !== undefined) return `<code>${escape(verbatim)}</code>`
  if (escaped !== undefined) return escape(escaped)
  if (target !== undefined) return link(target, label ?? '', whole)
  if (both !== undefined) return `<b><i>${spans(both)}</i></b>`
  const strong = bold ?? boldToo
  if (strong !== undefined) return `<b>${spans(strong)}</b>`
  if (strike !== undefined) return `<s>${spans(strike)}</s>`
  const slanted = italic ?? italicToo
  return slanted === undefined ? escape(whole) : `<i>${spans(slanted)}</i>`
}

/** Only to where a browser may go (`tg://user` would call somebody); a path in the repository stays readable text. */
const link = (target: string, label: string, whole: string): string => {
  if (!/^(?:https?:\/\/|mailto:)/i.test(target)) {
    return label === '' || whole.startsWith('!') ? escape(target) : `${spans(label)} (${escape(target)})`
  }
  const shown = label.replaceAll(/[*_~`]/g, '').trim()
  return `<a href="${escape(target)}">${escape(shown === '' ? target : shown)}</a>`
}
