import { usage } from './usage.ts'

/**
 * Splits a line into words like a shell: quotes keep blanks, a backslash escapes one character. Reads everything
 * `shellWord` writes.
 */
export const splitWords = (line: string): string[] => {
  const words: string[] = []
  let word: string | undefined
  for (let i = 0; i < line.length; i++) {
    const char = line[i] ?? ''
    const quote = quotes[char]
    const escapes = char === '$' ? octalQuoted(line, i) : undefined
    if (escapes !== undefined) {
      word = (word ?? '') + escapes.text
      i = escapes.end
    } else if (quote !== undefined) {
      const { text, end } = quoted(line, i + 1, quote)
      word = (word ?? '') + text
      i = end
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else if (char === '\\' && i + 1 < line.length) {
      word = (word ?? '') + (line[++i] ?? '')
    } else word = (word ?? '') + char
  }
  return word === undefined ? words : [...words, word]
}

/** `$'…'`. Knows only escapes like `\011`; takes all others literally. */
const octalQuoted = (line: string, from: number): { text: string; end: number } | undefined => {
  if (line[from + 1] !== "'") return undefined
  const end = line.indexOf("'", from + 2)
  const inner = line.slice(from + 2, end)
  if (end === -1 || !/^(?:[^\\]|\\[0-3][0-7]{2})*$/.test(inner)) return undefined
  const bytes = inner
    .split(/(\\\d{3})/)
    .map((part) => (part.startsWith('\\') ? Buffer.of(Number.parseInt(part.slice(1), 8)) : Buffer.from(part)))
  return { text: Buffer.concat(bytes).toString('utf8'), end }
}

/** Phones type curly quotes. */
const quotes: Readonly<Record<string, string>> = { '"': '"', "'": "'", '“': '”', '‘': '’' }

const quoted = (line: string, from: number, quote: string): { text: string; end: number } => {
  let text = ''
  for (let i = from; i < line.length; i++) {
    const char = line[i] ?? ''
    if (char === quote) return { text, end: i }
    const next = line[i + 1]
    if (char === '\\' && quote === '"' && (next === '"' || next === '\\')) {
      text += next
      i++
    } else text += char
  }
  throw usage(`missing closing ${quote}`, `close the quotation, or write \\${line[from - 1]} for a literal one`)
}
