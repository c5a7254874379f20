import { trimEndOf } from '../domain/trim-end.ts'

/** What a line is, for the dialects that have to be told: those without headings, rules and lists of their own. */
export type Line =
  | { readonly kind: 'heading' | 'text'; readonly text: string }
  | { readonly kind: 'rule' }
  | { readonly kind: 'item'; readonly sign: string; readonly text: string }

export const lineOf = (line: string): Line => {
  const heading = /^ {0,3}#{1,6}\s(.*)$/.exec(line)?.[1]
  // Closing signs are no part of it. All of it is bold already.
  if (heading !== undefined) {
    const text = trimEndOf(heading.trim(), '#').trimEnd()
    return { kind: 'heading', text: text.replaceAll(/\*\*|__/g, '') }
  }
  if (/^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/.test(line)) return { kind: 'rule' }
  const item = /^(\s*)[-*+]\s+(?:\[([ xX])\]\s+)?/.exec(line)
  if (item === null) return { kind: 'text', text: line }
  const [mark, indent = '', box] = item
  const text = line.slice(mark.length)
  return { kind: 'item', sign: `${indent}${box === undefined ? '•' : box === ' ' ? '☐' : '☑'}`, text }
}

export type Groups = Readonly<Record<string, string | undefined>>

/**
 * What may stand within a line, the first that fits wins: `addresses` after code and links, `names` last. Words with
 * underscores in them are no emphasis.
 */
export const spanPattern = (own: {
  readonly addresses: readonly string[]
  readonly names?: readonly string[]
}): RegExp =>
  new RegExp(
    [
      // The whole run of backticks or none: parts of it would be tried in cubic time.
      String.raw`(?<!\`)(?<ticks>\`+)(?!\`)(?<code>.+?)(?<!\`)\k<ticks>(?!\`)`,
      String.raw`\\(?<escaped>[\\\`*_{}\[\]()#+\-.!~|<>])`,
      String.raw`!?\[(?<label>[^\[\]]*)\]\((?<target>[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)(?:\s+"[^"]*")?\)`,
      ...own.addresses,
      String.raw`\*\*\*(?<both>\S(?:.*?\S)?)\*\*\*`,
      String.raw`\*\*(?<bold>\S(?:.*?\S)?)\*\*`,
      String.raw`(?<![\w_])__(?<boldToo>\S(?:.*?\S)?)__(?![\w_])`,
      String.raw`~~(?<strike>\S(?:.*?\S)?)~~`,
      String.raw`(?<![\w*])\*(?<italic>[^\s*](?:[^*]*[^\s*])?)\*(?![\w*])`,
      String.raw`(?<![\w_])_(?<italicToo>[^\s_](?:[^_]*[^\s_])?)_(?![\w_])`,
      ...(own.names ?? []),
    ].join('|'),
    'g',
  )

/** A line with its spans in a dialect, and everything between them escaped. */
export const withSpans = (
  text: string,
  pattern: RegExp,
  escape: (text: string) => string,
  styled: (whole: string, groups: Groups) => string,
): string => {
  let out = ''
  let at = 0
  for (const found of text.matchAll(pattern)) {
    out += escape(text.slice(at, found.index)) + styled(found[0], found.groups ?? {})
    at = found.index + found[0].length
  }
  return out + escape(text.slice(at))
}
