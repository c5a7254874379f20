import { AppError } from '../domain/errors.ts'
import { isSha, type Sha } from '../domain/names.ts'
import type { CallOptions, Git, Tree } from './door.ts'
import { splitNul, treePath, type TreePath } from './tree-path.ts'

export type Status = {
  /** undefined on a branch without commits. */
  readonly headSha: Sha | undefined
  /** undefined when HEAD is detached. */
  readonly branch: string | undefined
  readonly changed: readonly Changed[]
  readonly unmerged: readonly TreePath[]
  readonly untracked: readonly TreePath[]
  /** A fully ignored directory is one entry ending in `/`. */
  readonly ignored: readonly TreePath[]
}

export type Changed = TreePath & {
  /** Differs between HEAD and index. */
  readonly staged: boolean
  /** Differs between index and file. */
  readonly unstaged: boolean
  readonly submodule: boolean
}

/**
 * Skips submodules, since git would run a status in each with *its* configuration: they are separate repositories and
 * checked separately. Still sees a staged change of a submodule's commit.
 */
const args = [
  'status',
  '--porcelain=v2',
  '-z',
  '--branch',
  '--untracked-files=all',
  '--ignored=matching',
  '--ignore-submodules=dirty',
  '--no-renames',
  '--no-ahead-behind',
]

/** Long enough for a cold disk. */
const statusTimeoutMs = 120_000

/** Runs `git status` regardless of settings that hide files. Takes no lock and changes nothing. */
export const readStatus = async (
  git: Git,
  tree: Tree,
  { indexFile, signal }: CallOptions & { indexFile?: string } = {},
): Promise<Status> => {
  const { stdoutBytes, stderr } = await git.run({
    operation: 'status',
    at: tree,
    args,
    timeoutMs: statusTimeoutMs,
    ...(indexFile !== undefined && { indexFile }),
    ...(signal && { signal }),
  })
  // Git skips an unreadable directory with a warning and exit code 0: that isn't *clean*.
  const unread = /^(?:warning: could not open directory .*|error: .*)$/m.exec(stderr)?.[0]
  if (unread !== undefined) throw new AppError('git-failed', `git status couldn't read everything: ${unread}`)
  return parseStatus(stdoutBytes)
}

export const parseStatus = (output: Buffer): Status => {
  const status = {
    headSha: undefined as Sha | undefined,
    branch: undefined as string | undefined,
    changed: [] as Changed[],
    unmerged: [] as TreePath[],
    untracked: [] as TreePath[],
    ignored: [] as TreePath[],
  }
  for (const record of splitNul(output)) {
    const kind = String.fromCharCode(record[0] ?? 0)
    if (kind === '#') readHeader(record.toString('utf8'), status)
    else if (kind === '?') status.untracked.push(treePath(record.subarray(2)))
    else if (kind === '!') status.ignored.push(treePath(record.subarray(2)))
    else if (kind === '1') status.changed.push(readChanged(record))
    // `u XY sub m1 m2 m3 mW h1 h2 h3 path`
    else if (kind === 'u') status.unmerged.push(treePath(afterSpaces(record, 10)))
    // Unknown isn't *clean*.
    else
      throw new AppError(
        'git-failed',
        `couldn't parse the output of git status: ${record.toString('utf8').slice(0, 80)}`,
      )
  }
  return status
}

const readHeader = (line: string, status: { headSha: Sha | undefined; branch: string | undefined }): void => {
  const oid = /^# branch\.oid (.+)$/.exec(line)?.[1]
  const head = /^# branch\.head (.+)$/s.exec(line)?.[1]
  if (oid !== undefined && isSha(oid)) status.headSha = oid
  if (head !== undefined && head !== '(detached)') status.branch = head
}

/** `1 XY sub mH mI mW hH hI path` */
const readChanged = (record: Buffer): Changed => ({
  ...treePath(afterSpaces(record, 8)),
  staged: record[2] !== dot,
  unstaged: record[3] !== dot,
  submodule: String.fromCharCode(record[5] ?? 0) === 'S',
})

const dot = '.'.charCodeAt(0)

const afterSpaces = (record: Buffer, count: number): Buffer => {
  let at = 0
  for (let i = 0; i < count; i += 1) at = record.indexOf(0x20, at) + 1
  return record.subarray(at)
}
