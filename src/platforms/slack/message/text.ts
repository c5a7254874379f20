import { withoutInvisible } from '../../../domain/text/visible.ts'

/**
 * The text as its author saw it: Slack escapes `&`, `<` and `>`, and puts mentions and links in angle brackets.
 * `names` are those we know: our own.
 */
export const toPlainText = (text: string, names: ReadonlyMap<string, string> = new Map()): string =>
  withoutInvisible(
    text
      .replaceAll(/<([^<>]*)>/g, (_whole, inside: string) => reference(inside, names))
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&amp;', '&'),
  )

const reference = (inside: string, names: ReadonlyMap<string, string>): string => {
  const bar = inside.indexOf('|')
  const [target, label] = bar === -1 ? [inside, ''] : [inside.slice(0, bar), inside.slice(bar + 1)]
  switch (target[0]) {
    case '@':
      return `@${names.get(target.slice(1)) ?? (label === '' ? target.slice(1) : label)}`
    case '#':
      return `#${label === '' ? target.slice(1) : label}`
    case '!':
      return label === '' ? `@${target.slice(1).split('^', 1).join('')}` : label
    default: {
      const address = target.replace(/^mailto:/, '')
      // Slack turns URLs into links by itself, with the typed text as the label.
      return label === '' || address.includes(label) ? address : `${label} (${address})`
    }
  }
}

/** Whether the text addresses `userId`: not in code, and not in a quoted line. */
export const mentions = (text: string, userId: string): boolean => {
  const addressed = text
    .replaceAll(/```[\s\S]*?(?:```|$)/g, '')
    .replaceAll(/`[^`\n]*`/g, '')
    .split('\n')
    .filter((line) => !/^\s*(?:>|&gt;)/.test(line))
    .join('\n')
  return new RegExp(String.raw`<@${userId}(?:\|[^<>]*)?>`).test(addressed)
}

/** Removes the mention that only addresses us: `@coppice /status` becomes `/status`. */
export const withoutLeadingMention = (text: string, userId: string): string =>
  text.replace(new RegExp(String.raw`^(?:\s*<@${userId}(?:\|[^<>]*)?>[,:]?)+`), '').trim()
