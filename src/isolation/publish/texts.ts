import { capitalized } from '../../domain/text/words.ts'
import { withoutInvisible } from '../../domain/text/visible.ts'
import type { Work } from '../../domain/work.ts'

export type PullRequestFacts = {
  readonly work: Work
  readonly branch: string
  /** The issues that it closes. */
  readonly fixes: readonly number[]
  /** Of its commits, oldest first. */
  readonly messages: readonly string[]
  readonly checked: readonly string[]
}

/**
 * Title and description of a pull request. Only from the commits, which the push publishes anyway: the conversation may
 * be private.
 */
export const pullRequestText = (facts: PullRequestFacts): { readonly title: string; readonly body: string } => {
  const commits = facts.messages.map((message) => parse(message.slice(0, maxMessage)))
  const checked = [...facts.checked, ...commits.flatMap((commit) => commit.checked)]
  const parts = [
    facts.fixes.map((number) => `Fixes #${number}`).join('\n'),
    summaryOf(commits),
    `## How it was checked\n\n${checked.length === 0 ? "The commits don't say." : listOf(checked)}`,
  ]
  const body = parts.filter((part) => part !== '').join('\n\n')
  return { title: titleLine(titleOf(facts, commits)), body: body.slice(0, maxBody).toWellFormed() }
}

/** On one line, without hidden characters, and within GitHub's limit. */
export const titleLine = (title: string): string =>
  plainLines(title)
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, maxTitle)
    // Never half a character.
    .replace(/[\uD800-\uDBFF]$/, '')

/** What a reader can see, in lines: commits may come from anybody. */
const plainLines = (text: string): string => withoutInvisible(text.replaceAll(/\r\n?|[\v\f\u0085\u2028\u2029]/g, '\n'))

type Commit = { readonly subject: string; readonly body: string; readonly checked: readonly string[] }

const parse = (message: string): Commit => {
  const [subject = '', ...rest] = plainLines(message).trim().split('\n')
  const checked = rest.flatMap((line) => checkLine.exec(line)?.[1]?.trim() ?? [])
  const body = rest.filter((line) => !checkLine.test(line) && !trailer.test(line)).join('\n')
  return { subject: subject.trim(), body: body.trim(), checked }
}

/** `Tested: npm test` */
const checkLine = /^(?:checked|tested|verified|test plan):\s(.+)$/i
const trailer = /^(?:co-authored-by|signed-off-by|change-id):\s/i

/** A task is named after what was asked for; the name of any other branch says less than its first commit. */
const titleOf = ({ work, branch }: PullRequestFacts, commits: readonly Commit[]): string => {
  const [first, second] = commits
  const hasSubject = first !== undefined && first.subject !== ''
  if (hasSubject && (second === undefined || work.type !== 'task')) return first.subject
  return capitalized((work.type === 'task' ? work.id : branch).replaceAll(/[-_/]+/g, ' ').trim())
}

const summaryOf = (commits: readonly Commit[]): string => {
  const [only, ...more] = commits
  if (only === undefined) return ''
  return more.length === 0 ? only.body : listOf(commits.map(({ subject }) => subject))
}

const listOf = (lines: readonly string[]): string => lines.map((line) => `- ${line}`).join('\n')

/** GitHub's limits are 256 and 65,536. */
const maxTitle = 200
const maxBody = 20_000
const maxMessage = 10_000
