import { type Sha, toSha } from '../domain/names.ts'
import { catFiles } from './blobs.ts'
import type { CallOptions, Git, Repo } from './door.ts'
import { splitNul, treePath, type TreePath } from './tree-path.ts'

export type Written = CallOptions & { readonly durable?: boolean }

export type NewCommit = {
  readonly tree: Sha
  readonly parents: readonly Sha[]
  readonly message: string
  /** Author and committer; `at` in milliseconds. */
  readonly by: Signature
  /** If it isn't the committer. */
  readonly author?: Signature
}

export type Signature = { readonly name: string; readonly email: string; readonly at: number }

export const commitTree = async (
  git: Git,
  repo: Repo,
  { tree, parents, message, by, author = by }: NewCommit,
  { signal, durable = false }: Written = {},
): Promise<Sha> => {
  if (parents.length > maxParents) {
    const held: Sha[] = []
    for (let i = 0; i < parents.length; i += maxParents) {
      const some = { tree, parents: parents.slice(i, i + maxParents), message, by, author }
      held.push(await commitTree(git, repo, some, { durable, ...(signal && { signal }) }))
    }
    return commitTree(git, repo, { tree, parents: held, message, by, author }, { durable, ...(signal && { signal }) })
  }
  const { stdout } = await git.run({
    operation: 'commit-tree',
    at: repo,
    args: ['commit-tree', '--no-gpg-sign', ...parents.flatMap((parent) => ['-p', parent]), '-F', '-', tree],
    stdin: message,
    identity: {
      GIT_AUTHOR_NAME: author.name,
      GIT_AUTHOR_EMAIL: author.email,
      GIT_AUTHOR_DATE: dateOf(author),
      GIT_COMMITTER_NAME: by.name,
      GIT_COMMITTER_EMAIL: by.email,
      GIT_COMMITTER_DATE: dateOf(by),
    },
    durable,
    ...(signal && { signal }),
  })
  return toSha(stdout.trim())
}

const dateOf = ({ at }: Signature): string => `@${Math.floor(at / 1000)} +0000`

/** Each is an argument, and command lines are limited. Intermediate commits hold more. */
const maxParents = 1000

/** Writes one object verbatim. */
export const writeObject = async (
  git: Git,
  repo: Repo,
  type: 'blob' | 'tag',
  content: Buffer,
  { signal, durable = false }: Written = {},
): Promise<Sha> => {
  const { stdout } = await git.run({
    operation: 'hash-object',
    at: repo,
    // Git validates tags since 2.20, and older tags may fail that.
    args: ['hash-object', '-w', '-t', type, '--literally', '--no-filters', '--stdin'],
    stdin: content,
    locks: true,
    durable,
    ...(signal && { signal }),
  })
  return toSha(stdout.trim())
}

/** Writes a tree. Names must be plain words. */
export const writeTree = async (
  git: Git,
  repo: Repo,
  entries: readonly { readonly name: string; readonly type: 'blob' | 'tree'; readonly sha: Sha }[],
  { signal, durable = false }: Written = {},
): Promise<Sha> => {
  const lines = entries.map(
    ({ name, type, sha }) => `${type === 'tree' ? '040000' : '100644'} ${type} ${sha}\t${name}\n`,
  )
  const request = { operation: 'mktree', at: repo, args: ['mktree'], stdin: lines.join(''), durable }
  const { stdout } = await git.run({ ...request, locks: true, ...(signal && { signal }) })
  return toSha(stdout.trim())
}

export type ListedEntry = TreePath & {
  readonly mode: string
  readonly type: 'blob' | 'commit' | 'tree'
  readonly sha: Sha
}

/** Every file of a tree or commit, submodules as `commit`. */
export const readTree = async (
  git: Git,
  repo: Repo,
  tree: Sha,
  { signal }: CallOptions = {},
): Promise<ListedEntry[]> => {
  const args = ['ls-tree', '-r', '-z', '--full-tree', tree]
  const { stdoutBytes } = await git.run({ operation: 'ls-tree', at: repo, args, ...(signal && { signal }) })
  return splitNul(stdoutBytes).map((record) => {
    const tab = record.indexOf(0x09)
    const [mode = '', type = '', sha = ''] = record.subarray(0, tab).toString('utf8').split(' ')
    return { ...treePath(record.subarray(tab + 1)), mode, type: type as ListedEntry['type'], sha: toSha(sha) }
  })
}

/** A file's content in a commit; undefined when the commit doesn't have it. */
export const showFile = async (
  git: Git,
  repo: Repo,
  commit: Sha,
  path: string,
  options: CallOptions = {},
): Promise<Buffer | undefined> => {
  let found: Buffer | undefined
  await catFiles(
    git,
    repo,
    [`${commit}:${path}`],
    (_name, content) => {
      found = content
    },
    options,
  )
  return found
}
