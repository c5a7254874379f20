import type { Block, Span } from '../markdown/document.ts'
import { layOut } from '../markdown/layout.ts'
import { parseMarkdown } from '../markdown/parse.ts'

/** Discord's limit; replies are split a little below it, to leave room for rendering. */
export const MAX_MESSAGE = 2_000

/**
 * Renders Markdown in Discord's dialect, which lacks tables, images, rules and headings below level three. Everything
 * else stays as written. If rendering would make the text too long, it is sent unchanged.
 */
export const renderMarkdown = (text: string): string => {
  const rendered = layOut(parseMarkdown(text), { print, item: ({ mark, ticked }) => `${mark}${box(ticked)}` })
  return rendered.length <= MAX_MESSAGE ? rendered : text.slice(0, MAX_MESSAGE)
}

const box = (ticked: boolean | undefined): string => (ticked === undefined ? '' : ticked ? ' [x]' : ' [ ]')

const print = (block: Block): string => {
  switch (block.kind) {
    case 'heading': {
      const text = spans(block.spans)
      if (block.level <= 3) return `${'#'.repeat(block.level)} ${text}`
      return text === '' ? '' : `**${text}**`
    }
    case 'paragraph':
      return spans(block.spans)
    case 'rule':
      return '──────────'
    case 'table':
      return fenced(block.text, { opening: '```', closing: '```' })
    case 'code':
      return fenced(block.text, block.fence ?? { opening: '```', closing: '```' })
  }
}

const fenced = (text: string, { opening, closing }: { opening: string; closing: string | undefined }): string =>
  [opening, ...(text === '' ? [] : [text]), ...(closing === undefined ? [] : [closing])].join('\n')

const spans = (all: readonly Span[]): string => all.map(span).join('')

const span = (one: Span): string => {
  switch (one.kind) {
    case 'text':
    case 'code':
      return one.source
    case 'line-break':
      return '\n'
    case 'image':
      return one.alt === '' ? one.target : `[${one.alt}](${one.target})`
    case 'link':
      return link(one)
    default:
      return `${one.mark}${spans(one.spans)}${one.mark}`
  }
}

const link = ({ form, target, spans: label }: Extract<Span, { kind: 'link' }>): string => {
  if (form === 'bare') return spans(label)
  if (form === 'angle') return `<${spans(label)}>`
  return `[${spans(label)}](${/\s/.test(target) ? `<${target}>` : target})`
}
