/**
 * A comment that calls nobody: GitHub notifies whoever a reply names, and an agent writes what it was talked into. A
 * zero-width space after the `@` keeps the text as it reads. In code nobody is called and everything stays, but only
 * where it is code for certain: one line of backticks, or a fence at the margin.
 */
export const withoutMentions = (text: string): string => {
  // Inside a block of HTML backticks and fences are plain characters.
  if (/^ {0,3}<[A-Za-z/!?]/m.test(text)) return quiet(text)
  let fence: string | undefined
  return text
    .split('\n')
    .map((line) => {
      const mark = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/.exec(line)?.[1]
      if (fence === undefined) {
        fence = mark
        return mark === undefined ? quietLine(line) : quiet(line)
      }
      if (mark?.startsWith(fence) === true && line.trim() === mark) fence = undefined
      return line
    })
    .join('\n')
}

/** Code spans as long as nothing on the line is stronger than them: a tag, the cells of a table, a backslash. */
const quietLine = (line: string): string => {
  const end = line.search(/[<\\|]/)
  const safe = end === -1 ? line : line.slice(0, end)
  let quieted = ''
  let from = 0
  for (const { index, 0: span } of safe.matchAll(/(?<!`)(`+)(?!`)(.*?[^`])\1(?!`)/g)) {
    quieted += quiet(line.slice(from, index)) + span
    from = index + span.length
  }
  return quieted + quiet(line.slice(from))
}

/** Also written as an entity, which the page shows as `@`. A letter before it makes it an address, and no mention. */
const quiet = (text: string): string =>
  text.replaceAll(/(?<![A-Za-z0-9])(@|&#0*64;|&#x0*40;|&commat;)(?=[A-Za-z0-9&])/gi, '$1\u200b')
