import type { IsolatedEnvironment } from './environment.ts'
import type { Work } from './work.ts'

/*
 * Whether a text plainly speaks of work that has an environment. Only ever the reason for an offer. The same text and
 * environments always get the same answer.
 */

/** `titles`: what people call it, such as a task's text or the first line of a conversation there. */
export type Candidate = {
  readonly environment: IsolatedEnvironment
  readonly works: readonly Work[]
  readonly titles: readonly string[]
}

export type RelatedBy =
  | { readonly kind: 'number'; readonly work: Work }
  | { readonly kind: 'branch' | 'title' }
  /** Commits on its branch. */
  | { readonly kind: 'commits'; readonly number: string }
  | { readonly kind: 'files'; readonly files: readonly string[] }

export type Related = { readonly environment: IsolatedEnvironment; readonly by: RelatedBy }

/**
 * By the strongest evidence that there is: a number, then a branch, then a title. `several`: it fits more than one, so
 * nothing is plain.
 */
export const relatedIn = (
  text: string,
  candidates: readonly Candidate[],
  github: string | undefined,
): Related | 'several' | undefined => {
  const read = text.slice(0, MAX_TEXT)
  const numbers = numbersIn(read, github)
  const names = branchNamesIn(read)
  const spoken = `-${wordsOf(read)}-`
  return (
    matches(candidates, ({ works }) => {
      const work = works.find((one) => numbers.some((number) => isMeant(number, one)))
      return work && { kind: 'number', work }
    }) ??
    matches(candidates, ({ environment }) => (names.has(environment.branch) ? { kind: 'branch' } : undefined)) ??
    matches(candidates, ({ titles }) =>
      titles.some((title) => isSpoken(wordsOf(title), spoken)) ? { kind: 'title' } : undefined,
    )
  )
}

/** Nobody reads an offer for page ten of a log. */
const MAX_TEXT = 4_000

const matches = (
  candidates: readonly Candidate[],
  fits: (candidate: Candidate) => RelatedBy | undefined,
): Related | 'several' | undefined => {
  const found = candidates.flatMap((candidate) => {
    const by = fits(candidate)
    return by === undefined ? [] : [{ environment: candidate.environment, by }]
  })
  return found.length > 1 ? 'several' : found[0]
}

/** `addressed`: by the address of its page, so nothing else can be meant. */
type Mentioned = {
  readonly number: string
  readonly type: 'issue' | 'pr' | 'either'
  readonly addressed: boolean
}

/** `#42`, `issue 42`, `PR #42`, `acme/app#42`, an address; none of another repository. */
export const numbersIn = (text: string, github: string | undefined): Mentioned[] =>
  [...text.matchAll(NUMBER)].flatMap(({ groups = {} }): Mentioned[] => {
    const { word, number, repository, path, short, addressed } = groups
    const named = repository ?? short
    if (named !== undefined && named.toLowerCase() !== github?.toLowerCase()) return []
    if (addressed !== undefined) return [{ number: addressed, type: path === 'pull' ? 'pr' : 'issue', addressed: true }]
    const type = word === undefined ? 'either' : word.toLowerCase() === 'issue' ? 'issue' : 'pr'
    return number === undefined ? [] : [{ number, type, addressed: false }]
  })

const NUMBER =
  /https?:\/\/[\w.:-]{1,253}\/(?<repository>[\w.-]{1,100}\/[\w.-]{1,100})\/(?<path>issues|pull)\/(?<addressed>[1-9]\d{0,9})(?![\w-])|(?<![\w/#&.-])(?:(?<short>[\w.-]{1,100}\/[\w.-]{1,100})#|(?<word>issue|PR|pull request)[ -]#?|#)(?<number>[1-9]\d{0,9})(?![\w-])/gi

const isMeant = ({ number, type }: Mentioned, work: Work): boolean => {
  const kind = work.type === 'review' ? 'pr' : work.type
  return work.id === number && (kind === 'issue' || kind === 'pr') && (type === 'either' || type === kind)
}

/** In backticks, or with a character that words don't have. */
const branchNamesIn = (text: string): ReadonlySet<string> =>
  new Set(
    [...text.matchAll(BRANCH)].flatMap(([, quote, name = '']) => {
      const bare = name.endsWith('.') ? name.slice(0, -1) : name
      return bare.length > 2 && (quote === '`' || /[\d_/-]/.test(bare)) ? [bare] : []
    }),
  )

const BRANCH = /(?<![\w./-])(`?)([\w./-]{1,200})(?![\w./-])/g

/** Its words in a row. Two are anybody's: `fix it`, `hello there`. */
const isSpoken = (title: string, text: string): boolean =>
  title.split('-').length >= 3 && title.length >= 12 && text.includes(`-${title}-`)

const wordsOf = (text: string): string =>
  text
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^\p{L}\p{N}]+/gu, '-')
    .replaceAll(/^-|-$/g, '')

/** Names of files that say what the work is about; every branch changes the common ones. */
export const fileNamesIn = (text: string): string[] => {
  const names = [...text.slice(0, MAX_TEXT).replaceAll(ADDRESS, ' ').matchAll(FILE)].map(([name]) => name)
  return [...new Set(names)].filter((name) => !common.has(name.toLowerCase())).slice(0, MAX_FILES)
}

const MAX_FILES = 5
const ADDRESS = /https?:\/\/\S{1,2000}/g
const FILE = /(?<![\w./@-])(?:[\w-][\w.-]{0,99}\/){0,10}[\w-]{2,100}(?:\.[a-z]\w{0,7}){1,3}(?![\w/-])/gi

const common: ReadonlySet<string> = new Set([
  'changelog.md',
  'cargo.lock',
  'go.mod',
  'go.sum',
  'package-lock.json',
  'package.json',
  'pyproject.toml',
  'readme.md',
  'tsconfig.json',
  'yarn.lock',
])
