import { trimEndOf } from '../../../domain/text/trim-end.ts'
import { withoutInvisible } from '../../../domain/text/visible.ts'
import { BROKEN_MENTION } from './mentions.ts'
import { type Segment, segmentsOf } from './segments.ts'

/**
 * The text addressed to the bot, without its name; undefined if the bot isn't mentioned. A name in code, in a quote or
 * in hidden text isn't a mention, and neither is one that we broke ourselves: with a person's own token, the pull
 * request that we open is theirs, and its description may have any commit's words in it.
 */
export const textForBot = (body: string, bot: string): string | undefined => {
  const name = mentionOf(bot)
  if (!isMentioned(name, shownIn(body.replaceAll(BROKEN_MENTION, '@x')))) return undefined
  return shownIn(body)
    .map(({ kind, text }) => (kind === 'text' ? text.replaceAll(name, '') : text))
    .join('')
    .split('\n')
    .map((line) => trimEndOf(line, ' \t'))
    .join('\n')
    .trim()
}

const shownIn = (body: string): readonly Segment[] =>
  segmentsOf(withoutInvisible(body)).filter(({ kind }) => kind !== 'hidden')

const isMentioned = (name: RegExp, shown: readonly Segment[]): boolean =>
  shown.some(({ kind, text }, index) => kind === 'text' && findsIn(name, text, shown[index - 1]?.text))

/** As a word: `@bot` matches in "@bot, please" and "@Bot[bot]", not in "me@bot.example", "@bot-2" or "@bot/team". */
const mentionOf = (bot: string): RegExp =>
  new RegExp(`(?<![\\w@/.+-])@${escapeRegExp(bot)}(?:\\[bot\\])?(?![\\w/-])(?:[,:](?=\\s|$))?[ \\t]?`, 'gi')

/** The word before may be in another segment: `code`@bot isn't a mention on the page either. */
const findsIn = (name: RegExp, text: string, before: string | undefined): boolean => {
  const first = text.search(name)
  return first > 0 || (first === 0 && !/[\w`]$/.test(before ?? ''))
}

const escapeRegExp = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`)
