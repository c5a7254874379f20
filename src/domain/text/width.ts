/** Columns of a terminal: code points, East Asian wide ones and emoji counted twice, marks not at all. */
export const displayWidth = (text: string): number => {
  if (PLAIN.test(text)) return text.length
  let sum = 0
  for (const char of text) sum += WIDE.test(char) ? 2 : MARK.test(char) ? 0 : 1
  return sum
}

/** At most so many columns; what is cut off is replaced by `…`. */
export const cutTo = (text: string, most: number): string => {
  if (displayWidth(text) <= most) return text
  return most < 1 ? '' : `${firstColumns(text, most - 1)}…`
}

/** Lines of at most so many columns, cut anywhere. */
export const cutLines = (text: string, columns: number): string[] => {
  const lines: string[] = []
  for (let rest = text; rest !== '';) {
    // At least one character, even if it is too wide.
    const line = firstColumns(rest, columns) || String.fromCodePoint(rest.codePointAt(0) ?? 0)
    lines.push(line)
    rest = rest.slice(line.length)
  }
  return lines.length === 0 ? [''] : lines
}

const firstColumns = (text: string, most: number): string => {
  if (PLAIN.test(text)) return text.slice(0, Math.max(0, most))
  let kept = ''
  let sum = 0
  for (const char of text) {
    sum += displayWidth(char)
    if (sum > most) break
    kept += char
  }
  return kept
}

const PLAIN = /^[\x20-\x7e]*$/
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f900}-\u{1faff}\u{20000}-\u{3fffd}\p{Emoji_Presentation}]/u
const MARK = /[\p{Mn}\p{Me}\p{Cf}]/u
