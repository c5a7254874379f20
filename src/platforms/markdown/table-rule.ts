import type { StateBlock } from 'markdown-it'

/**
 * A row with bars, a line of dashes, more rows with bars. Kept as written, since no chat supports tables. Unlike
 * GitHub's, it ends at the first line without a bar: agents continue below a table without an empty line.
 */
export const tableRule = (state: StateBlock, from: number, to: number, silent: boolean): boolean => {
  const lineAt = (line: number): string => {
    const isInside = line < to && (state.sCount[line] ?? -1) >= state.blkIndent
    return isInside ? state.src.slice((state.bMarks[line] ?? 0) + (state.tShift[line] ?? 0), state.eMarks[line]) : ''
  }
  if (!lineAt(from).includes('|') || !isRuler(lineAt(from + 1))) return false
  if (silent) return true
  let end = from + 2
  while (lineAt(end).includes('|')) end += 1
  const token = state.push('table', '', 0)
  token.map = [from, end]
  token.content = Array.from({ length: end - from }, (_, index) => lineAt(from + index)).join('\n')
  state.line = end
  return true
}

/** `| --- | :-: |`, cell by cell: one regular expression would take seconds on a long line of blanks. */
const isRuler = (text: string): boolean => {
  if (!text.includes('|')) return false
  const cells = text.trim().replace(/^\|/, '').replace(/\|$/, '').split('|')
  return cells.every((cell) => /^:?-+:?$/.test(cell.trim()))
}
