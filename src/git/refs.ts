import { AppError } from '../domain/errors.ts'
import { type BranchName, isSha, type Sha, toSha } from '../domain/names.ts'
import type { CallOptions, Git, Repo, Tree } from './door.ts'
import { meaningfulLine } from './failure.ts'
import { recordFormat } from './record-format.ts'

export type Ref = {
  /** The full name, `refs/heads/x`. */
  readonly name: string
  readonly sha: Sha
  /** Milliseconds; undefined if it isn't a commit. */
  readonly committerDate: number | undefined
  /** The final target of a symbolic ref; undefined for an ordinary ref. */
  readonly target?: string | undefined
}

const refFormat = recordFormat(
  {
    name: '%(refname)',
    sha: '%(objectname)',
    date: '%(committerdate:unix)',
    target: '%(symref)',
  },
  '%00',
)

/**
 * Every ref below these prefixes (`refs/heads`) or with exactly these names: git doesn't distinguish the two, so
 * `refs/heads/feature` also matches `feature/x`. For exact names use `readRefs`. One process for all.
 */
export const listRefs = async (
  git: Git,
  repo: Repo,
  patterns: readonly string[],
  { signal }: CallOptions = {},
): Promise<Ref[]> => {
  const args = ['for-each-ref', `--format=${refFormat.format}`, '--end-of-options', ...patterns]
  const request = { operation: 'for-each-ref', at: repo, args, shared: true, ...(signal && { signal }) } as const
  const { stdout } = await git.run(request)
  return refFormat.parse(stdout).map(({ name, sha, date, target }) => ({
    name,
    sha: toSha(sha),
    committerDate: date === '' ? undefined : Number(date) * 1000,
    ...(target !== '' && { target }),
  }))
}

/** The existing refs with exactly these names. */
export const readRefs = async (
  git: Git,
  repo: Repo,
  names: readonly string[],
  options: CallOptions = {},
): Promise<ReadonlyMap<string, Ref>> => {
  const wanted = new Set(names)
  const refs = await listRefs(git, repo, names, options)
  return new Map(refs.filter(({ name }) => wanted.has(name)).map((ref) => [ref.name, ref]))
}

export const readRef = async (git: Git, repo: Repo, name: string): Promise<Ref | undefined> =>
  (await readRefs(git, repo, [name])).get(name)

/** All branches by their short names, even one whose commit is missing, on which `listRefs` fails. */
export const branchNames = async (git: Git, repo: Repo): Promise<string[]> => {
  const args = ['for-each-ref', '--format=%(refname)', 'refs/heads/']
  const { stdout } = await git.run({ operation: 'for-each-ref', at: repo, args })
  return stdout.split('\n').flatMap((name) => (name === '' ? [] : [name.slice('refs/heads/'.length)]))
}

export type RefCommand =
  | { readonly create: string; readonly to: Sha }
  /** `from` undefined: any value. */
  | { readonly update: string; readonly to: Sha; readonly from: Sha | undefined }
  | { readonly delete: string; readonly from: Sha | undefined }

export type RefOutcome = { readonly ok: true } | { readonly ok: false; readonly stderr: string }

/** Atomic. Not ok: a ref isn't where a command expected it, and nothing has changed. */
export const updateRefs = async (
  git: Git,
  repo: Repo,
  commands: readonly RefCommand[],
  { reason, durable = false, signal }: CallOptions & { reason: string; durable?: boolean },
): Promise<RefOutcome> => {
  const { exitCode, stderr } = await git.run({
    operation: 'update-ref',
    at: repo,
    args: ['update-ref', '-m', reason, '--no-deref', '--stdin', '-z'],
    stdin: ['start\0', ...commands.map(writeCommand), 'prepare\0', 'commit\0'].join(''),
    ok: [0, 128],
    durable,
    locks: true,
    ...(signal && { signal }),
  })
  if (exitCode === 0) return { ok: true }
  if (/\.lock': File exists/.test(stderr)) {
    throw new AppError('busy', `git update-ref failed: another git holds a lock: ${meaningfulLine(stderr)}`)
  }
  if (/No space left on device/.test(stderr)) throw new AppError('disk-full', 'git update-ref failed: the disk is full')
  if (!/cannot lock ref|already exists|cannot create|cannot process/.test(stderr)) {
    throw new AppError('git-failed', `git update-ref failed: ${meaningfulLine(stderr)}`, { cause: { stderr } })
  }
  return { ok: false, stderr }
}

/** An empty old value means *any*. */
const writeCommand = (command: RefCommand): string => {
  if ('create' in command) return `create ${command.create}\0${command.to}\0`
  if ('update' in command) return `update ${command.update}\0${command.to}\0${command.from ?? ''}\0`
  return `delete ${command.delete}\0${command.from ?? ''}\0`
}

/** undefined when the name doesn't resolve to a commit. */
export const resolveCommit = async (
  git: Git,
  at: Repo | Tree,
  rev: string,
  { signal }: CallOptions = {},
): Promise<Sha | undefined> => {
  const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${rev}^{commit}`]
  const { stdout, exitCode } = await git.run({
    operation: 'rev-parse',
    at,
    args,
    ok: [0, 1, 128],
    ...(signal && { signal }),
  })
  const sha = stdout.trim()
  return exitCode === 0 && isSha(sha) ? sha : undefined
}

/**
 * Whether git takes this name for anything in the repository. A branch of that name would stand in front of a remote's
 * branch and of the beginning of an object's id, or behind a tag; and scripts ask for names like `MERGE_HEAD`.
 */
export const isNameOfSomething = async (git: Git, repo: Repo, name: string): Promise<boolean> => {
  if (/^(?:[0-9a-fA-F]{4,}|[A-Z_]+)$/.test(name)) return true
  const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', name]
  return (await git.run({ operation: 'rev-parse', at: repo, args, ok: [0, 1, 128] })).exitCode === 0
}

/** Switches HEAD to a branch at HEAD's own commit, without touching index or files. */
export const setHeadBranch = async (
  git: Git,
  tree: Tree,
  branch: BranchName,
  { reason = 'coppice: switch to the branch', signal }: CallOptions & { reason?: string } = {},
): Promise<void> => {
  const args = ['symbolic-ref', '-m', reason, 'HEAD', `refs/heads/${branch}`]
  await git.run({ operation: 'symbolic-ref', at: tree, args, locks: true, ...(signal && { signal }) })
}

/** What a symbolic ref points to; undefined when it's detached or missing. */
export const readSymbolicRef = async (
  git: Git,
  at: Repo | Tree,
  name: string,
  { signal }: CallOptions = {},
): Promise<string | undefined> => {
  const args = ['symbolic-ref', '--quiet', '--end-of-options', name]
  const { stdout, exitCode } = await git.run({
    operation: 'symbolic-ref',
    at,
    args,
    ok: [0, 1, 128],
    ...(signal && { signal }),
  })
  return exitCode === 0 ? stdout.trim() : undefined
}
