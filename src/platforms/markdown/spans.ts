import type { Token } from 'markdown-it'
import type { Span, Style } from './document.ts'

/** Builds the tree of a paragraph's spans from the parser's flat list. */
export const spansOf = (tokens: readonly Token[]): readonly Span[] => {
  const open: { readonly token: Token | undefined; readonly spans: Span[] }[] = [{ token: undefined, spans: [] }]
  const add = (span: Span): void => {
    if (span.kind === 'text' && span.text === '') return
    const spans = open.at(-1)?.spans
    const before = spans?.at(-1)
    // The parser splits text at a backslash; merge it, so that names in it can be found.
    if (span.kind === 'text' && before?.kind === 'text') {
      spans?.splice(-1, 1, { kind: 'text', text: before.text + span.text, source: before.source + span.source })
    } else spans?.push(span)
  }
  for (const token of tokens) {
    if (token.nesting === 1) open.push({ token, spans: [] })
    else if (token.nesting === -1) {
      const closed = open.length > 1 ? open.pop() : undefined
      if (closed?.token !== undefined) add(styledOf(closed.token, closed.spans))
    } else add(leafOf(token))
  }
  return open[0]?.spans ?? []
}

const leafOf = (token: Token): Span => {
  const { type, content, markup } = token
  switch (type) {
    case 'code_inline': {
      // A space keeps backticks in the content apart from the delimiters.
      const pad = /^`|`$/.test(content) ? ' ' : ''
      return { kind: 'code', text: content, source: `${markup}${pad}${content}${pad}${markup}` }
    }
    case 'text_special':
      return { kind: 'text', text: content, source: markup }
    case 'softbreak':
    case 'hardbreak':
      return { kind: 'line-break' }
    case 'image':
      return { kind: 'image', target: String(token.attrGet('src') ?? ''), alt: content }
    default:
      return { kind: 'text', text: content, source: content }
  }
}

const styles: Readonly<Record<string, Style>> = { strong_open: 'strong', em_open: 'emphasis', s_open: 'strike' }

const styledOf = (token: Token, spans: readonly Span[]): Span => {
  const kind = styles[token.type]
  if (kind === undefined) {
    const form = token.markup === 'autolink' ? 'angle' : token.markup === 'linkify' ? 'bare' : 'label'
    return { kind: 'link', form, target: String(token.attrGet('href') ?? ''), spans }
  }
  const [only, ...more] = spans
  // The parser reads `***both***` as emphasis around strong. Chats show both orders alike, so renderers get only one.
  if (kind === 'emphasis' && only?.kind === 'strong' && more.length === 0) {
    return { ...only, spans: [{ kind, mark: token.markup, spans: only.spans }] }
  }
  return { kind, mark: token.markup, spans }
}
