import { withoutInvisible } from '../../../domain/text/visible.ts'
import { segmentsOf } from './segments.ts'

/** The issues that a pull request closes, by GitHub's own keywords: `Fixes #42`, `closes: acme/app#42`, a URL. */
export const closingIssuesIn = (
  text: string,
  repository: string,
  /** `stated`: only `fixes` or `fixed`, since `can you fix #8` and `doesn't fix #8` state nothing. */
  how: 'any' | 'stated' = 'any',
): number[] => {
  const shownText = segmentsOf(withoutInvisible(text))
    .filter(({ kind }) => kind === 'text')
    .map((segment) => segment.text)
    .join('\n')
  const own = repository.toLowerCase()
  const numbers = [...shownText.matchAll(KEYWORD)].flatMap(({ groups = {} }) => {
    if (how === 'stated' && !/[sd]$/i.test(groups['keyword'] ?? '')) return []
    const named = groups['short'] ?? groups['long']
    const isOwn = named === undefined || named === '' || named.toLowerCase() === own
    const number = Number(groups['number'] ?? groups['numberOfUrl'])
    return isOwn && Number.isSafeInteger(number) && number > 0 ? [number] : []
  })
  return [...new Set(numbers)].slice(0, MAX_LINKS)
}

const MAX_LINKS = 20

const KEYWORD =
  /(?<![\w-])(?<keyword>close[sd]?|fix(?:e[sd])?|resolve[sd]?)\s{0,3}:?\s{1,3}(?:(?<short>[\w.-]{1,100}\/[\w.-]{1,100})?#(?<number>\d{1,10})|https?:\/\/[\w.:-]{1,253}\/(?<long>[\w.-]{1,100}\/[\w.-]{1,100})\/(?:issues|pull)\/(?<numberOfUrl>\d{1,10}))(?!\w)/gi
