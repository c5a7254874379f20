import { AppError } from '../domain/errors.ts'
import type { Sha } from '../domain/names.ts'
import { type Change, changesBetween, type CommitChanges, commitsTouching, patchBetween } from '../git/changes.ts'
import type { CallOptions, Git, Repo } from '../git/door.ts'

/** Beyond these the search costs more than its answer is worth: not proven, so the branch stays. */
const caps = { commits: 5_000, listBytes: 16 * 1024 * 1024, patchBytes: 8 * 1024 * 1024, comparisons: 50 }

type Span = { readonly fork: Sha; readonly tip: Sha; readonly base: Sha }

/**
 * The commit on base that holds the branch's whole patch (`fork..tip`), if there is one and base still stands by it.
 * Cheap questions first: only commits that touch the same paths in the same way have their text compared.
 */
export const squashOf = async (git: Git, repo: Repo, span: Span, options: CallOptions): Promise<Sha | undefined> => {
  const { fork, tip, base } = span
  const list = { maxBytes: caps.listBytes, ...options }
  const own = await changesBetween(git, repo, fork, tip, list)
  if (own === undefined || own.length === 0) return undefined
  // A commit that holds the whole patch touches each of its paths, so it is enough to look at those that touch one.
  const path = own.map((change) => change.path).find(isPlain)
  const commits = await commitsTouching(git, repo, { from: fork, to: base, path, maxCommits: caps.commits }, list)
  if (commits === undefined) return undefined
  const found = await newestOfEither(git, repo, span, { own, commits }, options)
  if (found === undefined || (await wentBack(git, repo, span, { own, found }, options))) return undefined
  return found
}

/** A path that survives as an argument whatever its bytes are. */
const isPlain = (path: string): boolean => /^[\x20-\x7e]+$/.test(path)

type Candidates = { readonly own: readonly Change[]; readonly commits: readonly CommitChanges[] }

/**
 * Newest first, the first commit that either brings the patch or takes it back decides: a change that landed and was
 * reverted is not merged, one that landed again after that is.
 */
const newestOfEither = async (
  git: Git,
  repo: Repo,
  { fork, tip }: Span,
  { own, commits }: Candidates,
  options: CallOptions,
): Promise<Sha | undefined> => {
  const capped = { maxBytes: caps.patchBytes, ...options }
  let patch: string | undefined
  let comparisons = 0
  for (const { sha, parents, changes } of commits) {
    const parent = parents[0]
    const brings = sameShape(own, changes)
    const takesBack = sameShape(own, changes.map(reversed))
    if (parent === undefined || !(brings || takesBack)) continue
    if (brings && sameBlobs(own, changes)) return sha
    comparisons += 1
    if (comparisons > caps.comparisons) return undefined
    patch ??= await patchBetween(git, repo, fork, tip, capped)
    if (patch === undefined || patch === '') return undefined
    if (takesBack && (await patchBetween(git, repo, sha, parent, capped)) === patch) return undefined
    if (brings && (await patchBetween(git, repo, parent, sha, capped)) === patch) return sha
  }
  return undefined
}

/** Both sides come sorted by path, as git keeps its trees. */
const sameShape = (own: readonly Change[], other: readonly Change[]): boolean =>
  own.length === other.length &&
  own.every((change, i) => {
    const match = other[i]
    return change.path === match?.path && change.oldMode === match.oldMode && change.newMode === match.newMode
  })

const sameBlobs = (own: readonly Change[], other: readonly Change[]): boolean =>
  own.every((change, i) => change.oldId === other[i]?.oldId && change.newId === other[i]?.newId)

const reversed = (change: Change): Change => ({
  path: change.path,
  oldMode: change.newMode,
  newMode: change.oldMode,
  oldId: change.newId,
  newId: change.oldId,
})

/**
 * A revert need not be the exact opposite: other work may have moved the lines around it. Two more signs: a path is
 * again what it was before the branch, or a later commit says that it reverts this one.
 */
const wentBack = async (
  git: Git,
  repo: Repo,
  { fork, base }: Span,
  { own, found }: { readonly own: readonly Change[]; readonly found: Sha },
  { signal }: CallOptions,
): Promise<boolean> => {
  const since = await changesBetween(git, repo, fork, base, { maxBytes: caps.listBytes, signal })
  if (since === undefined) return true
  const changed = new Set(since.map((change) => change.path))
  if (own.some((change) => !changed.has(change.path))) return true
  const { stdout } = await git.run({
    operation: 'log',
    at: repo,
    args: [
      ...'log --max-count=1 --format=%H --no-show-signature --no-color --fixed-strings'.split(' '),
      `--grep=This reverts commit ${found}`,
      '--end-of-options',
      `${found}..${base}`,
      '--',
    ],
    ...(signal && { signal }),
  })
  if (stdout.trim() !== '' && !/^[0-9a-f]+\n$/.test(stdout)) {
    throw new AppError('git-failed', 'git log answered something that cannot be read')
  }
  return stdout.trim() !== ''
}
