import { trimEndOf } from '../../../domain/text/trim-end.ts'
import { withoutInvisible } from '../../../domain/text/visible.ts'
import { segmentsOf } from './segments.ts'

/**
 * The text addressed to the bot, without its name; undefined if the bot isn't mentioned. A name in code, in a quote or
 * in hidden text isn't a mention.
 */
export const textForBot = (body: string, bot: string): string | undefined => {
  const name = mentionOf(bot)
  const shown = segmentsOf(withoutInvisible(body)).filter(({ kind }) => kind !== 'hidden')
  if (!shown.some(({ kind, text }, index) => kind === 'text' && findsIn(name, text, shown[index - 1]?.text))) {
    return undefined
  }
  return shown
    .map(({ kind, text }) => (kind === 'text' ? text.replaceAll(name, '') : text))
    .join('')
    .split('\n')
    .map((line) => trimEndOf(line, ' \t'))
    .join('\n')
    .trim()
}

/** As a word: `@bot` matches in "@bot, please" and "@Bot[bot]", not in "me@bot.example", "@bot-2" or "@bot/team". */
const mentionOf = (bot: string): RegExp =>
  new RegExp(`(?<![\\w@/.+-])@${escapeRegExp(bot)}(?:\\[bot\\])?(?![\\w/-])(?:[,:](?=\\s|$))?[ \\t]?`, 'gi')

/** The word before may be in another segment: `code`@bot isn't a mention on the page either. */
const findsIn = (name: RegExp, text: string, before: string | undefined): boolean => {
  const first = text.search(name)
  return first > 0 || (first === 0 && !/[\w`]$/.test(before ?? ''))
}

const escapeRegExp = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`)
