/**
 * Where lines of indented code begin: four blanks after an empty line or after such a line. Below a list they are the
 * list's own text, until a line begins at the margin. One pass over all lines, since looking back from each would
 * reread the text again and again.
 */
export const indentedCode = (text: string): ReadonlySet<number> => {
  const found = new Set<number>()
  let at = 0
  let canBegin = true
  let hasText = false
  let isInList = false
  for (const line of text.split('\n')) {
    const isIndented = /^(?: {4}|\t)/.test(line)
    if (isIndented && canBegin && !isInList) found.add(at)
    if (/^\S/.test(line)) isInList = false
    if (/^ {0,3}(?:[-*+]|\d{1,9}[.)])[ \t]/.test(line)) isInList = true
    hasText ||= line.trim() !== ''
    canBegin = isIndented || !hasText || /^[ \t]*$/.test(line)
    at += line.length + 1
  }
  return found
}
