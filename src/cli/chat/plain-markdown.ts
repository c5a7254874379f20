/**
 * Our own replies are Markdown. On a terminal, drops the fences around tables and the asterisks of bold text. Names
 * keep their backticks, as in all our messages.
 */
export const plainMarkdown = (text: string): string => {
  let fence: string | undefined
  return text
    .split('\n')
    .flatMap((line) => {
      if (fence === undefined && /^`{3,}$/.test(line)) {
        fence = line
        return []
      }
      if (fence === undefined) return [line.replaceAll(/\*\*([^*\n]+)\*\*/g, '$1')]
      if (line !== fence) return [line]
      fence = undefined
      return []
    })
    .join('\n')
}
