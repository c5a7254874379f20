import { AppError } from '../domain/errors.ts'
import { type Sha, toSha } from '../domain/names.ts'
import { runCapped } from './capped.ts'
import type { CallOptions, Git, Repo } from './door.ts'

/** One changed path between two commits. `path` is latin1, to preserve every byte. */
export type Change = {
  readonly oldMode: string
  readonly newMode: string
  readonly oldId: string
  readonly newId: string
  readonly path: string
}

export type Capped = CallOptions & { readonly maxBytes: number }

/**
 * Includes submodules regardless of configuration, and shows a rename as a removal and an addition: two diffs are equal
 * only if every entry is.
 */
const exact = ['-r', '-z', '--raw', '--no-abbrev', '--no-renames', '--ignore-submodules=none']

/** The changes between two commits; undefined when they exceed the cap. */
export const changesBetween = async (
  git: Git,
  repo: Repo,
  from: Sha,
  to: Sha,
  { maxBytes, signal }: Capped,
): Promise<Change[] | undefined> => {
  const args = ['diff-tree', ...exact, '--end-of-options', from, to]
  const request = { operation: 'diff-tree', at: repo, args, ...(signal && { signal }) }
  const output = await runCapped(git, request, maxBytes)
  return output && parseChanges(output.toString('latin1'))
}

export type Pair = { readonly from: Sha; readonly to: Sha }

/** The same for many pairs in one process, in order; undefined when together they exceed the cap. */
export const changesOfPairs = async (
  git: Git,
  repo: Repo,
  pairs: readonly Pair[],
  { maxBytes, signal }: Capped,
): Promise<Change[][] | undefined> => {
  // `--always`: a pair without changes is listed too.
  const args = ['diff-tree', '--stdin', '--always', ...exact]
  const stdin = pairs.map(({ from, to }) => `${to} ${from}\n`).join('')
  const request = { operation: 'diff-tree', at: repo, args, stdin, ...(signal && { signal }) }
  const output = await runCapped(git, request, maxBytes)
  return output && parsePairs(output.toString('latin1'), pairs)
}

/** Git skips a line whose commit it can't find, so every pair must be there. */
const parsePairs = (text: string, pairs: readonly Pair[]): Change[][] => {
  const fields = text.split('\0')
  const found: Change[][] = []
  for (let i = 0; i < fields.length - 1; i += 1) {
    const field = fields[i] ?? ''
    if (field.startsWith(':')) {
      i += 1
      const changes = found.at(-1)
      if (changes === undefined) throw new AppError('git-failed', "couldn't parse git's diff output")
      changes.push(parseChange(field, fields[i] ?? ''))
      continue
    }
    if (field !== pairs[found.length]?.to) throw new AppError('git-failed', 'git left out a difference')
    found.push([])
  }
  if (found.length !== pairs.length) throw new AppError('git-failed', 'git left out a difference')
  return found
}

/** About 1,500,000 files. */
const mostBytes = 256 * 1024 * 1024

/** The same for those who must know every path: more than any real repository has is an error. */
export const everyChangeBetween = async (
  git: Git,
  repo: Repo,
  from: Sha,
  to: Sha,
  options: CallOptions = {},
): Promise<Change[]> => {
  const changes = await changesBetween(git, repo, from, to, { ...options, maxBytes: mostBytes })
  if (changes === undefined) throw new AppError('unsupported', 'too many files differ between the two commits')
  return changes
}

export type CommitChanges = { readonly sha: Sha; readonly parents: readonly Sha[]; readonly changes: readonly Change[] }

/**
 * The commits in `from..to` that touch the path (default: all), newest first (no commit before its children), each with
 * all its changes; a merge compared to its first parent. Undefined when they exceed the caps.
 */
export const commitsTouching = async (
  git: Git,
  repo: Repo,
  range: { readonly from: Sha; readonly to: Sha; readonly path: string | undefined; readonly maxCommits: number },
  { maxBytes, signal }: Capped,
): Promise<CommitChanges[] | undefined> => {
  const args = [
    ...logArgs,
    `--max-count=${range.maxCommits + 1}`,
    `--format=${mark}%H %P`,
    '--end-of-options',
    `${range.from}..${range.to}`,
    '--',
    ...(range.path === undefined ? [] : [`:(top,literal)${range.path}`]),
  ]
  const output = await runCapped(git, { operation: 'log', at: repo, args, ...(signal && { signal }) }, maxBytes)
  if (output === undefined) return undefined
  const commits = parseLog(output.toString('latin1'))
  return commits.length > range.maxCommits ? undefined : commits
}

const logArgs = [
  ...'log --topo-order --full-diff --diff-merges=first-parent'.split(' '),
  ...'--no-show-signature --no-decorate --no-notes --no-color'.split(' '),
  ...exact,
]

/** Unambiguous: raw lines start with a colon, and no path follows a NUL directly here. */
const mark = '%x01'

const parseLog = (text: string): CommitChanges[] => {
  const commits: { sha: Sha; parents: Sha[]; changes: Change[] }[] = []
  const fields = text.split('\0')
  for (let i = 0; i < fields.length; i += 1) {
    const field = fields[i]?.replace(/^\n/, '') ?? ''
    if (field === '') continue
    if (field.startsWith('\u0001')) {
      const [sha = '', ...parents] = field.slice(1).trim().split(' ')
      commits.push({ sha: toSha(sha), parents: parents.filter((parent) => parent !== '').map(toSha), changes: [] })
      continue
    }
    i += 1
    const commit = commits.at(-1)
    if (commit === undefined) throw new AppError('git-failed', "couldn't parse git log: a change without its commit")
    commit.changes.push(parseChange(field, fields[i] ?? ''))
  }
  return commits
}

const parseChanges = (text: string): Change[] => {
  const fields = text.split('\0')
  const changes: Change[] = []
  for (let i = 0; i + 1 < fields.length; i += 2) changes.push(parseChange(fields[i] ?? '', fields[i + 1] ?? ''))
  return changes
}

const parseChange = (line: string, path: string): Change => {
  const match = /^:(\d{6}) (\d{6}) ([0-9a-f]+) ([0-9a-f]+) [A-Z]$/.exec(line)
  if (!match || path === '') throw new AppError('git-failed', "couldn't parse git's diff output")
  const [, oldMode = '', newMode = '', oldId = '', newId = ''] = match
  return { oldMode, newMode, oldId, newId, path }
}
