import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError } from '../domain/errors.ts'
import { type Sha, toSha } from '../domain/names.ts'
import { catFiles } from './blobs.ts'
import type { CallOptions, Git, Repo } from './door.ts'
import { splitNul, treePath, type TreePath } from './tree-path.ts'

export type TreeEntry = Pick<TreePath, 'bytes'> & { readonly mode: string; readonly sha: Sha }

export type Written = CallOptions & { readonly durable?: boolean }

/**
 * Makes a tree of these entries through an index of its own. All of them or an error: git drops a name it would not
 * check out (`.git/x`), and a file where a directory comes later, with exit code 0.
 */
export const writeTree = async (
  git: Git,
  repo: Repo,
  entries: readonly TreeEntry[],
  { signal, durable = false, temporary = tmpdir() }: Written & { temporary?: string } = {},
): Promise<Sha> => {
  const directory = mkdtempSync(join(temporary, 'coppice-index-'))
  const call = { at: { commonDir: repo.commonDir }, indexFile: join(directory, 'index'), durable, locks: true }
  const stdin = Buffer.concat(
    entries.flatMap(({ mode, sha, bytes }) => [Buffer.from(`${mode} ${sha}\t`), bytes, Buffer.from('\0')]),
  )
  try {
    const args = ['update-index', '-z', '--index-info']
    await git.run({ ...call, operation: 'update-index', args, stdin, ...(signal && { signal }) })
    const listed = await git.run({
      ...call,
      operation: 'ls-files',
      args: ['ls-files', '-z'],
      ...(signal && { signal }),
    })
    if (splitNul(listed.stdoutBytes).length !== entries.length) {
      throw new AppError('git-failed', 'git cannot hold all of these names in one tree')
    }
    const { stdout } = await git.run({
      ...call,
      operation: 'write-tree',
      args: ['write-tree'],
      ...(signal && { signal }),
    })
    return toSha(stdout.trim())
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

export type NewCommit = {
  readonly tree: Sha
  readonly parents: readonly Sha[]
  readonly message: string
  /** Author and committer alike; `at` in milliseconds. */
  readonly by: { readonly name: string; readonly email: string; readonly at: number }
}

export const commitTree = async (
  git: Git,
  repo: Repo,
  { tree, parents, message, by }: NewCommit,
  { signal, durable = false }: Written = {},
): Promise<Sha> => {
  const date = `@${Math.floor(by.at / 1000)} +0000`
  const { stdout } = await git.run({
    operation: 'commit-tree',
    at: repo,
    args: ['commit-tree', '--no-gpg-sign', ...parents.flatMap((parent) => ['-p', parent]), '-F', '-', tree],
    stdin: message,
    identity: {
      GIT_AUTHOR_NAME: by.name,
      GIT_AUTHOR_EMAIL: by.email,
      GIT_AUTHOR_DATE: date,
      GIT_COMMITTER_NAME: by.name,
      GIT_COMMITTER_EMAIL: by.email,
      GIT_COMMITTER_DATE: date,
    },
    durable,
    ...(signal && { signal }),
  })
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

/** A file as a commit has it; undefined when the commit has no such file. */
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

export type ObjectKind = 'commit' | 'tree' | 'blob' | 'tag'

/** What each object is; undefined for one that is not there. */
export const objectKinds = async (
  git: Git,
  repo: Repo,
  shas: readonly Sha[],
  { signal }: CallOptions = {},
): Promise<Map<Sha, ObjectKind | undefined>> => {
  if (shas.length === 0) return new Map()
  const { stdout } = await git.run({
    operation: 'cat-file',
    at: repo,
    args: ['cat-file', '--batch-check=%(objecttype)'],
    stdin: `${shas.join('\n')}\n`,
    ...(signal && { signal }),
  })
  const kinds = stdout.split('\n')
  return new Map(shas.map((sha, i) => [sha, toKind(kinds[i] ?? '')]))
}

const toKind = (text: string): ObjectKind | undefined =>
  text === 'commit' || text === 'tree' || text === 'blob' || text === 'tag' ? text : undefined
