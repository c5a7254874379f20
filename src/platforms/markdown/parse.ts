/*
 * Markdown. In: an agent's text. Out: blocks and spans, which each platform prints in its own dialect.
 */
import createParser, { type MarkdownIt, type Token } from 'markdown-it'
import type { Block } from './document.ts'
import { spansOf } from './spans.ts'
import { tableRule } from './table-rule.ts'

/** Longer texts than any chat accepts aren't parsed: agents and strangers choose the text. */
export const MAX_PARSED = 8_192

/** The only Markdown parser; all dialects are rendered from its result. */
export const parseMarkdown = (text: string): readonly Block[] => {
  if (text.length > MAX_PARSED) return unparsed(text)
  const tokens = markdown.parse(text, {})
  // The parser drops what is nested deeper.
  if (tokens.some(({ nesting, level }) => nesting === 1 && level + 1 >= MAX_NESTED)) return unparsed(text)
  return blocksOf(tokens, text.split(/\r\n|\r|\n/))
}

const MAX_NESTED = 20

const unparsed = (text: string): readonly Block[] => {
  const span = { kind: 'text', text, source: text } as const
  return [{ kind: 'paragraph', gap: 0, quotes: [], depth: 0, item: undefined, spans: [span] }]
}

const markdown = ((): MarkdownIt => {
  const made = createParser({ html: false, linkify: true, maxNesting: MAX_NESTED })
  // A word with a dot is a file far more often than a URL.
  made.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false })
  // The renderer decides where links may lead. Everything else stays text; nothing disappears.
  made.validateLink = () => true
  made.normalizeLink = (url) => url
  made.normalizeLinkText = (url) => url
  made.disable(['entity', 'reference', 'lheading', 'text_join'])
  made.block.ruler.at('table', tableRule, { alt: ['paragraph'] })
  // A quote ends with its `>` lines: the line below belongs to the agent.
  made.block.ruler.push('end_of_quote', (_state, _from, _to, silent) => silent, { alt: ['blockquote'] })
  return made
})()

type Item = { readonly mark: string; begun: boolean }

const blocksOf = (tokens: readonly Token[], lines: readonly string[]): Block[] => {
  const blocks: Block[] = []
  const quotes: number[] = []
  const items: Item[] = []
  let lists = 0
  let end = 0
  const add = (content: Content, [from, to]: readonly [number, number]): void => {
    const item = items.at(-1)
    const begins = item !== undefined && !item.begun
    for (const one of items) one.begun = true
    const { ticked, ...rest } = withoutBox(content, begins)
    blocks.push({
      ...rest,
      gap: Math.max(0, from - end),
      quotes: [...quotes],
      depth: lists,
      item: begins ? { mark: item.mark, ticked } : undefined,
    })
    end = to
  }
  for (const [index, token] of tokens.entries()) {
    const lineRange = token.map ?? [end, end]
    switch (token.type) {
      case 'blockquote_open':
        quotes.push(index)
        break
      case 'blockquote_close':
        quotes.pop()
        break
      case 'bullet_list_open':
      case 'ordered_list_open':
        lists += 1
        break
      case 'bullet_list_close':
      case 'ordered_list_close':
        lists -= 1
        break
      case 'list_item_open':
        items.push({ mark: `${token.info}${token.markup}`, begun: false })
        break
      case 'list_item_close':
        if (items.at(-1)?.begun === false) add({ kind: 'paragraph', spans: [] }, [end, end + 1])
        items.pop()
        break
      case 'inline': {
        const spans = spansOf(token.children ?? [])
        const heading = tokens[index - 1]
        const isHeading = heading?.type === 'heading_open'
        add(
          isHeading ? { kind: 'heading', level: Number(heading.tag.slice(1)), spans } : { kind: 'paragraph', spans },
          lineRange,
        )
        break
      }
      case 'fence':
      case 'code_block':
        add(codeOf(token, lines), lineRange)
        break
      case 'table':
        add({ kind: 'table', text: token.content }, lineRange)
        break
      case 'hr':
        add({ kind: 'rule' }, lineRange)
        break
    }
  }
  return blocks
}

type Content = Block extends infer One
  ? One extends Block
    ? Omit<One, 'gap' | 'quotes' | 'depth' | 'item'>
    : never
  : never

/** `[x] done` at the start of an item is a checkbox. */
const withoutBox = (content: Content, begins: boolean): Content & { readonly ticked: boolean | undefined } => {
  if (!begins || content.kind !== 'paragraph') return { ...content, ticked: undefined }
  const [first, ...rest] = content.spans
  const box = first?.kind === 'text' ? /^\[([ xX])\]\s+/.exec(first.text) : null
  if (first?.kind !== 'text' || box === null) return { ...content, ticked: undefined }
  const cut = (text: string): string => text.slice(box[0].length)
  return {
    ...content,
    spans: [{ ...first, text: cut(first.text), source: cut(first.source) }, ...rest],
    ticked: box[1] !== ' ',
  }
}

const codeOf = ({ type, content, info, markup, map }: Token, lines: readonly string[]): Content => {
  const text = content.replace(/\n$/, '')
  if (type === 'code_block' || map === null) return { kind: 'code', text, language: '', fence: undefined }
  // An unclosed fence ends with the text, or with the quote or list around it.
  const last = lines[map[1] - 1]?.trimEnd() ?? ''
  const isClosed = map[1] - map[0] > 1 && last.endsWith(markup) && content.split('\n').length + 1 === map[1] - map[0]
  const closing = isClosed ? markup : undefined
  return { kind: 'code', text, language: info.trim(), fence: { opening: `${markup}${info}`, closing } }
}
