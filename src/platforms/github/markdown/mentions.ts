/**
 * Prevents mentions: GitHub notifies everyone a reply names, and an agent can be tricked into naming people. Code
 * mentions nobody and stays unchanged, but only where it is certainly code: a fence at the margin, or backticks in a
 * one-line paragraph.
 */
export const withoutMentions = (text: string): string => {
  const lines = text.replaceAll(/\r\n?/g, '\n').split('\n')
  let fence: string | undefined
  let isCertain = true
  return lines
    .map((line, index) => {
      if (isCertain && fence !== undefined) {
        if (closes(line, fence)) fence = undefined
        return line
      }
      fence = /^(?:`{3,}(?=[^`]*$)|~{3,})/.exec(line)?.[0]
      const isAlone = isBlank(lines[index - 1]) && isBlank(lines[index + 1])
      const codeUntil = isAlone && fence === undefined ? endOfCode(line) : 0
      isCertain &&= fence !== undefined || !UNCERTAIN.test(line.slice(codeUntil))
      if (!isCertain) return line.replaceAll(AT, `$1${BREAK}`)
      return breakOutsideCode(line, codeUntil)
    })
    .join('\n')
}

/** A zero-width space: it doesn't change how the text reads. */
const BREAK = '\u200b'

export const BROKEN_MENTION = `@${BREAK}`

/*
 * Changes how all the rest is read. HTML: inside it backticks and fences are plain characters, and an unclosed element
 * includes what follows. An indented fence: whether the next fence closes it depends on the list around it.
 * Mathematics has its own rules.
 */
const UNCERTAIN = /<[A-Za-z/!?]|\$\$|\0|^\s+(?:`{3}|~{3})/

const closes = (line: string, fence: string): boolean => {
  const [, mark] = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line) ?? []
  return mark?.startsWith(fence) === true
}

const isBlank = (line: string | undefined): boolean => line === undefined || /^[ \t]*$/.test(line)

/** GitHub reads a run of more than 80 backticks as plain text. */
const CODE_SPAN = /(?<!`)(`{1,9})(?!`)(?:.*?[^`])\1(?!`)/g

/** What takes precedence over later backticks: a tag, a table, a backslash, a URL, mathematics. */
const BEFORE_CODE = /[<\\|\]$]|:\/\/|www\./i

/** Up to here, a line's code spans are certainly code. */
const endOfCode = (line: string): number => {
  let from = 0
  for (const { index, 0: span } of line.matchAll(CODE_SPAN)) {
    if (BEFORE_CODE.test(line.slice(from, index))) break
    from = index + span.length
  }
  return from
}

const breakOutsideCode = (line: string, codeUntil: number): string => {
  let broken = ''
  let from = 0
  for (const { index, 0: span } of line.slice(0, codeUntil).matchAll(CODE_SPAN)) {
    broken += breakMentions(line.slice(from, index)) + span
    from = index + span.length
  }
  return broken + breakMentions(line.slice(from))
}

/** Also as an entity, which the page shows as `@`; HTML doesn't require the semicolon. */
const AT = /(@|&#0*64(?:;|(?!;))|&#x0*40(?:;|(?!;))|&commat(?:;|(?!;)))(?=\S)/gi

/** Outside HTML, a letter before it makes it an email address, not a mention. */
const breakMentions = (text: string): string =>
  text.replaceAll(AT, (at, _mark, index: number) => (/[A-Za-z0-9]/.test(text.charAt(index - 1)) ? at : `${at}${BREAK}`))
