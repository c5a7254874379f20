import { type Groups, lineOf, spanPattern, withSpans } from '../markdown.ts'

/**
 * Our Markdown in Slack's dialect. Nothing an agent writes can ping a channel or forge a link: every `<` that is not our
 * own is escaped. Code stays as it is but for that.
 */
export const toMrkdwn = (markdown: string): string => {
  const lines: string[] = []
  let fence: string | undefined
  let table = false
  const endTable = (): void => {
    if (table) lines.push('```')
    table = false
  }
  for (const line of markdown.split('\n')) {
    const opened = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (fence !== undefined) {
      const closes = opened?.startsWith(fence) === true && line.trim() === opened
      if (closes) fence = undefined
      lines.push(closes ? '```' : inFence(line))
    } else if (opened !== undefined) {
      endTable()
      fence = opened
      // Slack shows the language as the first line of the code.
      lines.push('```')
    } else if (isTableRow(line)) {
      // There are no tables: as code its columns stay under each other.
      if (!table) lines.push('```')
      table = true
      lines.push(inFence(line))
    } else {
      endTable()
      lines.push(block(line))
    }
  }
  endTable()
  if (fence !== undefined) lines.push('```')
  return lines.join('\n')
}

export const escapeMrkdwn = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll(CALL, '@\u200B')

/** Whatever a workspace's settings make of the plain words. */
const CALL = /@(?=(?:here|channel|everyone|group)\b)/gi

/** A zero-width space inside three backticks: within a longer fence they are text, to Slack they would be its end. */
const inFence = (line: string): string => escapeMrkdwn(line).replaceAll('```', '`\u200B``')

const isTableRow = (line: string): boolean => /^\s*\|.*\|\s*$/.test(line)

const block = (given: string): string => {
  const quote = /^ {0,3}>\s?(.*)$/.exec(given)?.[1]
  if (quote !== undefined) return `> ${block(quote)}`
  const line = lineOf(given)
  switch (line.kind) {
    case 'heading':
      return line.text === '' ? '' : `*${spans(line.text)}*`
    case 'rule':
      return '───────────'
    case 'item':
      return `${line.sign} ${spans(line.text)}`
    case 'text':
      return spans(line.text)
  }
}

const span = spanPattern({
  addresses: [String.raw`<(?<auto>(?:https?:\/\/|mailto:)[^\s<>|]+)>`, String.raw`(?<url>https?:\/\/[^\s<>|]+)`],
})

const spans = (text: string): string => withSpans(text, span, escapeMrkdwn, styled)

const styled = (whole: string, groups: Groups): string => {
  const { code, escaped, label, target, auto, url, both, bold, boldToo, strike, italic, italicToo } = groups
  if (code !== undefined) return `\`${escapeMrkdwn(code).replaceAll('`', 'ˋ')}\``
  if (escaped !== undefined) return escapeMrkdwn(escaped)
  if (target !== undefined) return link(target, label ?? '', whole)
  if (auto !== undefined) return `<${escapeMrkdwn(auto)}>`
  if (url !== undefined) return escapeMrkdwn(url)
  if (both !== undefined) return `*_${spans(both)}_*`
  const strong = bold ?? boldToo
  if (strong !== undefined) return `*${spans(strong)}*`
  if (strike !== undefined) return `~${spans(strike)}~`
  const slanted = italic ?? italicToo
  return slanted === undefined ? escapeMrkdwn(whole) : `_${spans(slanted)}_`
}

/** Only to where a browser may go; a path in the repository stays readable text. */
const link = (target: string, label: string, whole: string): string => {
  if (!/^(?:https?:\/\/|mailto:)/i.test(target)) {
    return label === '' || whole.startsWith('!') ? escapeMrkdwn(target) : `${spans(label)} (${escapeMrkdwn(target)})`
  }
  const safe = escapeMrkdwn(target).replaceAll('|', '%7C')
  const shown = escapeMrkdwn(label.replaceAll(/[*_~`|]/g, ''))
  return shown === '' ? `<${safe}>` : `<${safe}|${shown}>`
}
