import { withoutInvisible } from '../visible.ts'

/**
 * What a person wrote, as they saw it: Slack sends `&`, `<` and `>` escaped, and mentions and links in angle brackets.
 * `names` are those we know: ourselves.
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
      // Slack makes links of addresses by itself, with what was typed as the label.
      return label === '' || address.includes(label) ? address : `${label} (${address})`
    }
  }
}

/** Whether somebody really addresses `userId`: not in code, and not in a line that quotes somebody else. */
export const mentions = (text: string, userId: string): boolean => {
  const said = text
    .replaceAll(/```[\s\S]*?(?:```|$)/g, '')
    .replaceAll(/`[^`\n]*`/g, '')
    .split('\n')
    .filter((line) => !/^\s*(?:>|&gt;)/.test(line))
    .join('\n')
  return new RegExp(String.raw`<@${userId}(?:\|[^<>]*)?>`).test(said)
}

/** The mention that only calls us is no part of what is asked: `@coppice /status` is `/status`. */
export const withoutCall = (text: string, userId: string): string =>
  text.replace(new RegExp(String.raw`^(?:\s*<@${userId}(?:\|[^<>]*)?>[,:]?)+`), '').trim()
