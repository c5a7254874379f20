import { type Block, type Span, wordsOf } from '../markdown/document.ts'
import { layOut } from '../markdown/layout.ts'
import { parseMarkdown } from '../markdown/parse.ts'

/**
 * Our Markdown in Slack's dialect. Nothing an agent writes can ping a channel or forge a link: every `<` that is not our
 * own is escaped. Code stays as it is but for that.
 */
export const toMrkdwn = (markdown: string): string => layOut(parseMarkdown(markdown), { print })

export const escapeMrkdwn = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll(CALL, '@\u200B')

/** Whatever a workspace's settings make of the plain words. */
const CALL = /@(?=(?:here|channel|everyone|group)\b)/gi

const print = (block: Block): string => {
  switch (block.kind) {
    case 'heading': {
      // All of it is bold already.
      const text = spans(block.spans, { bold: true })
      return text === '' ? '' : `*${text}*`
    }
    case 'paragraph':
      return spans(block.spans)
    case 'rule':
      return '───────────'
    case 'code':
    case 'table':
      // There are no tables: as code their columns stay under each other. A language would be the first line of it.
      return `\`\`\`\n${inFence(block.text)}\n\`\`\``
  }
}

/** A zero-width space inside three backticks: within a longer fence they are text, to Slack they would be its end. */
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

/** Only to where a browser may go; a path in the repository stays readable text. */
const link = (one: Extract<Span, { kind: 'link' }>, around: Around): string => {
  const { form, target } = one
  const words = wordsOf(one.spans)
  if (form === 'bare') return escapeMrkdwn(words)
  // A `|` would begin a label: `<https://evil.example|https://good.example>`.
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
