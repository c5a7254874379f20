import { trimEndOf } from '../../domain/trim-end.ts'

/** What Discord's own limit is; what we send is split a little below, so that rendering has room. */
export const LONGEST_MESSAGE = 2_000

/**
 * Our Markdown in Discord's dialect, which knows no tables, no images, no rules and three levels of headings. Code is
 * left as it is. A text that would become too long over it is sent unchanged.
 */
export const renderMarkdown = (text: string): string => {
  const rendered = segments(text)
    .map(({ code, lines }) => (code ? lines : outsideCode(lines)).join('\n'))
    .join('\n')
  return rendered.length <= LONGEST_MESSAGE ? rendered : text.slice(0, LONGEST_MESSAGE)
}

type Segment = { readonly code: boolean; readonly lines: string[] }

/** Fenced blocks with their fences, and what is between them. */
const segments = (text: string): Segment[] => {
  const found: Segment[] = []
  let fence: string | undefined
  for (const line of text.split('\n')) {
    const mark = /^\s*(`{3,}|~{3,})/.exec(line)?.[1]
    const opens = fence === undefined && mark !== undefined
    const inside = fence !== undefined || opens
    const last = found.at(-1)
    if (last === undefined || opens || last.code !== inside) found.push({ code: inside, lines: [line] })
    else last.lines.push(line)
    if (opens) fence = mark
    else if (fence !== undefined && mark !== undefined && closes(line, fence)) {
      fence = undefined
      found.push({ code: false, lines: [] })
    }
  }
  return found.filter(({ lines }) => lines.length > 0)
}

const closes = (line: string, fence: string): boolean => {
  const bare = line.trim()
  return bare.startsWith(fence) && bare === fence.charAt(0).repeat(bare.length)
}

const outsideCode = (lines: readonly string[]): string[] => {
  const rendered: string[] = []
  for (let at = 0; at < lines.length; at++) {
    const length = tableAt(lines, at)
    if (length > 0) {
      rendered.push('```', ...lines.slice(at, at + length), '```')
      at += length - 1
    } else rendered.push(line(lines[at] ?? ''))
  }
  return rendered
}

/** How many lines the table has that begins here: a row with bars, a line of dashes, more rows. */
const tableAt = (lines: readonly string[], at: number): number => {
  if (!/\|/.test(lines[at] ?? '') || !isRuler(lines[at + 1] ?? '')) {
    return 0
  }
  if (!/\|/.test(lines[at + 1] ?? '')) return 0
  let end = at + 2
  while (end < lines.length && /\|/.test(lines[end] ?? '')) end++
  return end - at
}

/** `| --- | :-: |`, cell by cell: as one expression it would take seconds on a long line of blanks. */
const isRuler = (text: string): boolean => {
  const cells = text.trim().replace(/^\|/, '').replace(/\|$/, '').split('|')
  return cells.every((cell) => /^:?-+:?$/.test(cell.trim()))
}

const line = (text: string): string =>
  text
    .replace(/^#{4,6}\s+(?=\S)(.*)$/, (_whole, heading: string) => `**${trimEndOf(heading, '# \t')}**`)
    .replace(/^(?:-{3,}|\*{3,}|_{3,})\s*$/, '──────────')
    .replaceAll(/!\[([^[\]\n]*)\]\(([^()\s]+)(?:\s[^()\n]*)?\)/g, (_whole, alt: string, url: string) =>
      alt === '' ? url : `[${alt}](${url})`,
    )
