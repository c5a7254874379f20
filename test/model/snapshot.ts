import { createHash } from 'node:crypto'
import { lstatSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** A working tree as a person sees it: where HEAD is, what is staged, and every file with its content. */
export type Snapshot = {
  /** A branch's name, or undefined when detached. */
  readonly branch: string | undefined
  readonly sha: string
  /** `git ls-files -s` */
  readonly index: string
  /** path → blob id of the bytes that lie there, ignored files included. */
  readonly files: ReadonlyMap<string, string>
}

export type RunGit = (cwd: string, ...args: string[]) => string

export const takeSnapshot = (git: RunGit, path: string): Snapshot => {
  const { branch, sha } = headOf(path) ?? askedHead(git, path)
  return { branch, sha, index: git(path, 'ls-files', '-s'), files: filesOf(path) }
}

type Head = Pick<Snapshot, 'branch' | 'sha'>

/** By git's files, since this runs for every tree after every command; undefined when the ref is not a file. */
const headOf = (path: string): Head | undefined => {
  try {
    const link = join(path, '.git')
    const linked = lstatSync(link).isFile()
    const gitDir = linked ? readFileSync(link, 'utf8').trim().slice('gitdir: '.length) : link
    const head = readFileSync(join(gitDir, 'HEAD'), 'utf8').trim()
    if (!head.startsWith('ref: refs/heads/')) return { branch: undefined, sha: head }
    const common = linked ? dirname(dirname(gitDir)) : gitDir
    const sha = readFileSync(join(common, head.slice('ref: '.length)), 'utf8').trim()
    return { branch: head.slice('ref: refs/heads/'.length), sha }
  } catch {
    return undefined
  }
}

const askedHead = (git: RunGit, path: string): Head => {
  const [sha = '', name = ''] = git(path, 'rev-parse', 'HEAD', '--symbolic-full-name', 'HEAD').split('\n')
  return { branch: name.startsWith('refs/heads/') ? name.slice('refs/heads/'.length) : undefined, sha }
}

export const filesOf = (root: string): Map<string, string> => {
  const found = new Map<string, string>()
  const visit = (below: string): void => {
    for (const entry of readdirSync(join(root, below), { withFileTypes: true })) {
      const path = below === '' ? entry.name : `${below}/${entry.name}`
      if (path === '.git') continue
      if (entry.isDirectory()) visit(path)
      else found.set(path, blobId(readFileSync(join(root, path))))
    }
  }
  if (lstatSync(root, { throwIfNoEntry: false })?.isDirectory() === true) visit('')
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Git's own name for these bytes. */
const blobId = (bytes: Buffer): string =>
  createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex')

/** Every blob that the tree holds, on disk or in the index. */
export const blobsOf = ({ files, index }: Snapshot): string[] => [
  ...files.values(),
  ...index.split('\n').flatMap((line) => line.split(' ')[1] ?? []),
]

/** In one sentence what differs; undefined when nothing does. */
export const difference = (was: Snapshot, is: Snapshot): string | undefined => {
  if (was.branch !== is.branch) return `HEAD was on ${was.branch ?? 'no branch'}, now on ${is.branch ?? 'no branch'}`
  return contentDifference(was, is)
}

/** The same without the name of the branch, which a restore may have to change. */
export const contentDifference = (was: Snapshot, is: Snapshot): string | undefined => {
  if (was.sha !== is.sha) return `HEAD was at ${was.sha.slice(0, 7)}, now at ${is.sha.slice(0, 7)}`
  if (was.index !== is.index) return `the index was\n${was.index}\nand is\n${is.index}`
  for (const [path, id] of was.files)
    if (is.files.get(path) !== id)
      return `${path} was ${id.slice(0, 7)}, is ${is.files.get(path)?.slice(0, 7) ?? 'gone'}`
  for (const path of is.files.keys()) if (!was.files.has(path)) return `${path} is new`
  return undefined
}
