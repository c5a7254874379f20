import { AppError } from '../domain/errors.ts'
import { type Sha, toSha } from '../domain/names.ts'
import { type AheadBehind, parseGraph, positions } from './ahead-behind.ts'
import type { CallOptions, Git, Repo } from './door.ts'
import { recordFormat } from './record-format.ts'

/** Whether `ancestor` is in the history of `descendant`; a commit is its own ancestor. */
export const isAncestor = async (
  git: Git,
  repo: Repo,
  ancestor: Sha,
  descendant: Sha,
  { signal }: CallOptions = {},
): Promise<boolean> => {
  const args = ['merge-base', '--is-ancestor', ancestor, descendant]
  const { exitCode } = await git.run({ operation: 'merge-base', at: repo, args, ok: [0, 1], ...(signal && { signal }) })
  return exitCode === 0
}

/** Commits to hold in memory (about 100 bytes each); a longer history is counted tip by tip. */
const graphLimit = 200_000

/**
 * Ahead and behind counts of many tips against one base, in two processes: git 2.39 has no `%(ahead-behind)`.
 * The walk ends at their common history.
 */
export const countAheadBehind = async (
  git: Git,
  repo: Repo,
  base: Sha,
  tips: readonly Sha[],
  { signal, limit = graphLimit }: CallOptions & { limit?: number } = {},
): Promise<Map<Sha, AheadBehind>> => {
  const distinct = [...new Set(tips)]
  const others = distinct.filter((tip) => tip !== base)
  if (others.length === 0) return new Map(distinct.map((tip) => [tip, { ahead: 0, behind: 0, forks: [base] }]))
  const call = { at: repo, ...(signal && { signal }) }
  const args = ['merge-base', '--all', '--octopus', base, ...others]
  const common = await git.run({ ...call, operation: 'merge-base', args, ok: [0, 1] })
  const shared = common.stdout
    .split('\n')
    .filter((sha) => sha !== '')
    .map(toSha)
  const walked = await git.run({
    ...call,
    operation: 'rev-list',
    args: ['rev-list', '--parents', `--max-count=${limit + 1}`, '--stdin'],
    stdin: `${[base, ...others, ...shared.map((sha) => `^${sha}`)].join('\n')}\n`,
  })
  const graph = parseGraph(walked.stdout)
  if (graph.parents.length <= limit) return positions(graph, base, distinct, shared)
  return new Map(
    await mapInSequence(distinct, async (tip) => [tip, await countOne(git, repo, base, tip, signal)] as const),
  )
}

const countOne = async (
  git: Git,
  repo: Repo,
  base: Sha,
  tip: Sha,
  signal: AbortSignal | undefined,
): Promise<AheadBehind> => {
  const args = ['rev-list', '--left-right', '--count', `${base}...${tip}`]
  const { stdout } = await git.run({ operation: 'rev-list', at: repo, args, ...(signal && { signal }) })
  const [behind, ahead] = stdout.trim().split('\t').map(Number)
  if (behind === undefined || ahead === undefined) throw new AppError('git-failed', 'git rev-list printed no counts')
  return { ahead, behind }
}

const mapInSequence = async <T, R>(items: readonly T[], ask: (item: T) => Promise<R>): Promise<R[]> => {
  const answers: R[] = []
  for (const item of items) answers.push(await ask(item))
  return answers
}

const sourceFormat = recordFormat({ source: '%S' }, '%x00')

/** How far back to search: this is a suggestion to the user, not an audit. */
const mentionLimit = 500

/** The branches with a commit that changes one of these files, by name or path. Otherwise as `commitsMentioning`. */
export const commitsChanging = (
  git: Git,
  repo: Repo,
  branches: readonly string[],
  files: readonly string[],
  options: CallOptions & { except?: readonly string[] } = {},
): Promise<string[]> => {
  const paths = files.map((file) => `:(glob)**/${file.replaceAll(/[\\*?[\]]/g, String.raw`\$&`)}`)
  return paths.length === 0 ? Promise.resolve([]) : branchesOf(git, repo, branches, { filter: [], paths }, options)
}

/**
 * The branches with a commit that mentions the text, such as `#42` (but not `#421`). Ignores the history of `except`
 * (refs or commits), such as base. One process for all branches.
 */
export const commitsMentioning = (
  git: Git,
  repo: Repo,
  branches: readonly string[],
  text: string,
  options: CallOptions & { except?: readonly string[] } = {},
): Promise<string[]> => {
  const pattern = `${text.replaceAll(/[^\w#]/g, String.raw`\$&`)}([^0-9A-Za-z_]|$)`
  const filter = ['--extended-regexp', `--grep=${pattern}`]
  return branchesOf(git, repo, branches, { filter, paths: [] }, options)
}

const branchesOf = async (
  git: Git,
  repo: Repo,
  branches: readonly string[],
  { filter, paths }: { readonly filter: readonly string[]; readonly paths: readonly string[] },
  { except = [], signal }: CallOptions & { except?: readonly string[] },
): Promise<string[]> => {
  if (branches.length === 0) return []
  const args = [
    'log',
    '--source',
    '--no-show-signature',
    '--no-color',
    ...filter,
    `--max-count=${mentionLimit}`,
    `--format=${sourceFormat.format}`,
    '--end-of-options',
    ...branches.map((branch) => `refs/heads/${branch}`),
    ...except.map((name) => `^${name}`),
    '--',
    ...paths,
  ]
  const { stdout } = await git.run({ operation: 'log', at: repo, args, ...(signal && { signal }) })
  const found = sourceFormat.parse(stdout).map(({ source }) => source.replace(/^refs\/heads\//, ''))
  return [...new Set(found)]
}
