import { type Block, type Span, plainTextOf } from '../markdown/document.ts'
import { layOut } from '../markdown/layout.ts'
import { parseMarkdown } from '../markdown/parse.ts'

/**
 * Renders Markdown as Slack's mrkdwn. Agents can't ping a channel or forge a link: every `<` that isn't ours is
 * escaped. Otherwise code is unchanged.
 */
export const toMrkdwn = (markdown: string): string => layOut(parseMarkdown(markdown), { print })

export const escapeMrkdwn = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll(GROUP_MENTION, '@\u200B')

/** A workspace's settings may turn these plain words into pings. */
const GROUP_MENTION = /@(?=(?:here|channel|everyone|group)\b)/gi

const print = (block: Block): string => {
  switch (block.kind) {
    case 'heading': {
      // The whole heading is already bold.
      const text = spans(block.spans, { bold: true })
      return text === '' ? '' : `*${text}*`
    }
    case 'paragraph':
      return spans(block.spans)
    case 'rule':
      return '───────────'
    case 'code':
    case 'table':
      // Slack has no tables: as code, columns stay aligned. A language would become the first line.
      return `\`\`\`\n${inFence(block.text)}\n\`\`\``
  }
}

/** Breaks up three backticks: within a longer fence they are text, but Slack would end the block there. */
const inFence = (text: string): string => escapeMrkdwn(text).replaceAll('```', '`\u200B``')

type Around = { readonly bold: boolean }

const spans = (all: readonly Span[], around: Around = { bold: false }): string =>
  all.map((one) => span(one, around)).join('')

const span = (one: Span, around: Around): string => {
  switch (one.kind) {
    case 'text':
      return escapeMrkdwn(one.text)
    case 'code':
      return `\`${escapeMrkdwn(one.text).replaceAll('`', 'ˋ')}\``
    case 'strong':
      return around.bold ? spans(one.spans, around) : `*${spans(one.spans, { bold: true })}*`
    case 'emphasis':
      return `_${spans(one.spans, around)}_`
    case 'strike':
      return `~${spans(one.spans, around)}~`
    case 'line-break':
      return '\n'
    case 'image':
      return isAddress(one.target) ? linkTo(one.target, one.alt) : escapeMrkdwn(one.target)
    case 'link':
      return link(one, around)
  }
}

/** Only links that a browser can open; a path in the repository stays readable text. */
const link = (one: Extract<Span, { kind: 'link' }>, around: Around): string => {
  const { form, target } = one
  const words = plainTextOf(one.spans)
  if (form === 'bare') return escapeMrkdwn(words)
  // A `|` would start a label: `<https://evil.example|https://good.example>`.
  if (form === 'angle')
    return isAddress(target) && !target.includes('|') ? linkTo(target, '') : escapeMrkdwn(`<${words}>`)
  if (isAddress(target)) return linkTo(target, words)
  return words === '' ? escapeMrkdwn(target) : `${spans(one.spans, around)} (${escapeMrkdwn(target)})`
}

const linkTo = (target: string, label: string): string => {
  const address = escapeMrkdwn(target).replaceAll('|', '%7C')
  const shown = escapeMrkdwn(label.replaceAll(/[*_~`|]/g, '').replaceAll('\n', ' '))
  return shown === '' ? `<${address}>` : `<${address}|${shown}>`
}

const isAddress = (target: string): boolean => /^(?:https?:\/\/|mailto:)/i.test(target)
