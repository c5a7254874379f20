/**
 * A comment that calls nobody: GitHub notifies whoever a reply names, and an agent writes what it was talked into. A
 * zero-width space after the `@` keeps the text as it reads. In code nobody is called and everything stays, but only
 * where it is code for certain: a fence at the margin, or backticks in a paragraph of one line.
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
      if (!isCertain) return line.replaceAll(AT, '$1\u200b')
      return quietOutsideCode(line, codeUntil)
    })
    .join('\n')
}

/*
 * What changes how all the rest is read. HTML: inside it backticks and fences are plain characters, and an element that
 * is left open takes what follows. An indented fence: whether the next fence closes it depends on the list around it.
 * Mathematics has rules of its own.
 */
const UNCERTAIN = /<[A-Za-z/!?]|\$\$|\0|^\s+(?:`{3}|~{3})/

const closes = (line: string, fence: string): boolean => {
  const [, mark] = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line) ?? []
  return mark?.startsWith(fence) === true
}

const isBlank = (line: string | undefined): boolean => line === undefined || /^[ \t]*$/.test(line)

/** GitHub reads a run of more than 80 backticks as plain characters. */
const CODE_SPAN = /(?<!`)(`{1,9})(?!`)(?:.*?[^`])\1(?!`)/g

/** What is stronger than the backticks after it: a tag, a table, a backslash, a link's address, mathematics. */
const STRONGER = /[<\\|\]$]|:\/\/|www\./i

/** Up to where the code spans of a line are code for certain. */
const endOfCode = (line: string): number => {
  let from = 0
  for (const { index, 0: span } of line.matchAll(CODE_SPAN)) {
    if (STRONGER.test(line.slice(from, index))) break
    from = index + span.length
  }
  return from
}

const quietOutsideCode = (line: string, codeUntil: number): string => {
  let quieted = ''
  let from = 0
  for (const { index, 0: span } of line.slice(0, codeUntil).matchAll(CODE_SPAN)) {
    quieted += quiet(line.slice(from, index)) + span
    from = index + span.length
  }
  return quieted + quiet(line.slice(from))
}

/** Also written as an entity, which the page shows as `@`; HTML does not ask for the semicolon. */
const AT = /(@|&#0*64(?:;|(?!;))|&#x0*40(?:;|(?!;))|&commat(?:;|(?!;)))(?=\S)/gi

/** Outside HTML a letter before it makes it an address, and no mention. */
const quiet = (text: string): string =>
  text.replaceAll(AT, (at, _mark, index: number) => (/[A-Za-z0-9]/.test(text.charAt(index - 1)) ? at : `${at}\u200b`))
