import { AppError } from '../domain/errors.ts'
import type { Sha } from '../domain/names.ts'
import { runCapped } from './capped.ts'
import type { CallOptions, Git, Repo } from './door.ts'

/** Nobody has that many; and if so, nothing is concluded from some of them. */
const maxMatches = 1_000

/**
 * The messages, in the history of `from` after the oldest of `since`, that contain one of the texts in any case. Two
 * processes for any number of texts. All of `since` are in that history.
 */
export const messagesSince = async (
  git: Git,
  repo: Repo,
  { from, since, texts }: { readonly from: Sha; readonly since: readonly Sha[]; readonly texts: readonly string[] },
  { signal }: CallOptions = {},
): Promise<string[]> => {
  if (since.length === 0 || texts.length === 0) return []
  const shared = await git.run({
    operation: 'merge-base',
    at: repo,
    args: ['merge-base', '--octopus', '--end-of-options', ...new Set(since)],
    ok: [0, 1],
    ...(signal && { signal }),
  })
  const oldest = shared.stdout.trim().split('\n')[0] ?? ''
  const { stdout } = await git.run({
    operation: 'log',
    at: repo,
    args: [
      ...`log -z --max-count=${maxMatches} --format=%B --no-show-signature --no-color`.split(' '),
      '--fixed-strings',
      '--regexp-ignore-case',
      ...texts.map((text) => `--grep=${text}`),
      '--end-of-options',
      oldest === '' ? from : `${oldest}..${from}`,
      '--',
    ],
    ...(signal && { signal }),
  })
  const found = stdout.split('\0').filter((message) => message !== '')
  if (found.length >= maxMatches) throw new AppError('git-failed', 'too many commit messages match')
  return found
}

/** The first lines of these commits' messages. One process. */
export const subjectsOf = async (
  git: Git,
  repo: Repo,
  commits: readonly Sha[],
  { signal }: CallOptions = {},
): Promise<ReadonlyMap<string, string>> => {
  if (commits.length === 0) return new Map()
  const { stdout } = await git.run({
    operation: 'log',
    at: repo,
    args: [
      ...'log -z --no-walk=unsorted --format=%H%x20%s --no-show-signature --no-color --end-of-options'.split(' '),
      ...new Set(commits),
      '--',
    ],
    ...(signal && { signal }),
  })
  return new Map(
    stdout
      .split('\0')
      .flatMap((line) => (line === '' ? [] : [[line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]])),
  )
}

/** Messages of the commits in the history of `to` but not of `from`, oldest first, without merges. */
export const messagesBetween = async (
  git: Git,
  repo: Repo,
  { from, to, limit }: { readonly from: Sha; readonly to: Sha; readonly limit: number },
  { signal }: CallOptions = {},
): Promise<string[]> => {
  const args = [
    ...`log -z --reverse --no-merges --max-count=${limit} --format=%B --no-show-signature --no-color`.split(' '),
    '--end-of-options',
    to,
    `^${from}`,
    '--',
  ]
  const request = { operation: 'log', at: repo, args, ...(signal && { signal }) }
  const found = await runCapped(git, request, maxMessageBytes)
  return found === undefined
    ? []
    : found
        .toString('utf8')
        .split('\0')
        .filter((message) => message.trim() !== '')
}

/** Longer messages were not written to be read. */
const maxMessageBytes = 1_000_000
