import type { RepoCommand } from './repo-commands.ts'

export type CommandMatch = {
  readonly command: RepoCommand
  /** Every word of the message is about this command, so no question is needed. */
  readonly clear: boolean
}

const mostLetters = 200
const leastScore = 0.6
/** Between the best command and the next one; less is enough for one whose words are exactly those of the message. */
const leastMargin = 0.2
const exactMargin = 0.1

/**
 * The repository's command that plain words ask for: "can you review this PR" is `/review`. Compares words with the
 * command's name, description and examples; undefined unless one command stands out.
 */
export const matchCommand = (text: string, commands: Iterable<RepoCommand>): CommandMatch | undefined => {
  if (!isShort(text)) return undefined
  const all = wordsOf(text)
  const message = contentOf(all)
  if (message.size === 0) return undefined
  const [best, second] = [...commands].map((command) => scored(command, message)).toSorted((a, b) => b.score - a.score)
  if (best === undefined || best.score < leastScore) return undefined
  if (best.score - (second?.score ?? 0) < (best.score === 1 ? exactMargin : leastMargin)) return undefined
  if (meansSomethingElse(all, best.vocabulary)) return undefined
  const { command, vocabulary, score } = best
  const covered = [...message].every((word) => vocabulary.has(word) || objects.has(word))
  const named = [...contentOf(wordsOf(command.name))].every((word) => message.has(word))
  return { command, clear: covered && (named || score === 1) }
}

/** Longer messages, code and paths say more than "run this". */
export const isShort = (text: string): boolean => text.length <= mostLetters && !/[\n`/]/.test(text.trim())

type Scored = {
  readonly command: RepoCommand
  readonly score: number
  readonly vocabulary: ReadonlySet<string>
}

/** The best of its phrases: 1 if the same words, 0 if none in common. */
const scored = (command: RepoCommand, message: ReadonlySet<string>): Scored => {
  const { name, description = '', examples } = command
  const phrases = [name, description, ...examples].map((phrase) => contentOf(wordsOf(phrase)))
  const scores = phrases.map((phrase) => {
    const common = weightOf([...phrase].filter((word) => message.has(word)))
    // Half of a name isn't the name: "release" isn't `/release-notes`.
    if (common < leastScore * weightOf(phrase)) return 0
    return phrase.size === 0 ? 0 : (2 * common) / (weightOf(phrase) + weightOf(message))
  })
  return { command, score: Math.max(...scores), vocabulary: new Set(phrases.flatMap((phrase) => [...phrase])) }
}

const weightOf = (words: Iterable<string>): number =>
  [...words].reduce((sum, word) => sum + (objects.has(word) ? 0.3 : 1), 0)

/** "Don't review this", "why did you review it", "I'll review it": about the command, but not a request for it. */
const meansSomethingElse = (words: readonly string[], vocabulary: ReadonlySet<string>): boolean => {
  const wishes = words.some((word) => ['want', 'need', 'like'].includes(word))
  return words.some((word) => !vocabulary.has(stem(word)) && (otherwise.has(word) || (word === 'i' && !wishes)))
}

const wordsOf = (text: string): string[] =>
  (
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{N}'’]+/gu) ?? []
  )
    .map((word) => word.replaceAll(/['’]/g, ''))
    .filter((word) => word !== '')

const contentOf = (words: readonly string[]): Set<string> =>
  new Set(words.filter((word) => !fillers.has(word)).map(stem))

/** "reviews" and "reviewing" are "review"; "reviewed" isn't, since it tells what happened. */
const stem = (word: string): string => {
  if (word.length > 5 && word.endsWith('ing')) return word.slice(0, -3).replace(/([bdgmnprt])\1$/, '$1')
  if (word.length > 4 && /(?:x|ch|sh|ss)es$/.test(word)) return word.slice(0, -2)
  return word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word
}

const setOf = (words: string): ReadonlySet<string> => new Set(words.split(' '))

const fillers = setOf(
  'a an and any are at be can could do for from give have hello here hey hi i in is it its just kindly let lets like me my ' +
    'need now of ok okay on our please quickly some thank thanks that the these this those to us want will with would you your',
)

/** What a conversation is about anyway: they say little, but tell `/review-pr` from `/review`. Without endings. */
const objects = setOf(
  'again branch change code commit diff issue it patch pr pull repo repository request run thread work',
)

const otherwise = setOf(
  'after already although arent because before but cannot cant did didnt doesnt dont except had has how if ' +
    'ill im instead isnt ive later maybe never no none nor not or shouldnt stop tomorrow unless until was wasnt we were ' +
    'what when where which who why without wont',
)
