import { AppError } from '../../domain/errors.ts'
import type { Sha } from '../../domain/names.ts'
import { type Change, type CommitChanges, commitsTouching } from '../../git/changes.ts'
import { type Merge, mergeTrees, pathsWithMergeDriver } from '../../git/merge-trees.ts'
import { treesOf } from '../../git/trees.ts'
import type { Differences } from './differences.ts'
import type { Inquiry } from './merge-question.ts'

/** Beyond these the search costs too much: not proven, so the branch stays. */
const caps = { commits: 5_000, listBytes: 16 * 1024 * 1024, comparisons: 50 }

export type Branch = { readonly fork: Sha; readonly tip: Sha; readonly paths: ReadonlySet<string> }

/**
 * The commit on base that brought the whole branch, if any, and if base still has that change. Its tree must equal the
 * result of merging the branch into its parent, so that line positions match: a patch compared without positions also
 * fits another, identical block of the file.
 */
export const squashOf = async (
  inquiry: Inquiry,
  branch: Branch,
  differences: Differences,
): Promise<Sha | undefined> => {
  const { git, repo, base, signal } = inquiry
  const { fork, tip } = branch
  const list = { maxBytes: caps.listBytes, signal }
  const own = await differences(fork, tip)
  if (own === undefined || own.length === 0) return undefined
  // A path that is in base as before the branch has not landed, or went back. Most open branches end here.
  const since = await differences(fork, base.sha)
  const changed = new Set(since?.map((change) => change.path))
  if (own.some((change) => !changed.has(change.path))) return undefined
  // A commit that brings the whole branch touches all of its paths, so commits that touch one of them are enough.
  const path = own.map((change) => change.path).find(isPlain)
  const range = { from: fork, to: base.sha, path, maxCommits: caps.commits }
  const commits = await commitsTouching(git, repo, range, list)
  if (commits === undefined) return undefined
  const found = await newestOfEither(inquiry, branch, own, commits)
  if (found === undefined || (await isReverted(inquiry, found))) return undefined
  return found
}

/** A path that is safe as an argument. */
const isPlain = (path: string): boolean => /^[\x20-\x7e]+$/.test(path)

type Candidate = {
  readonly sha: Sha
  readonly parent: Sha
  /** By its paths it may have brought the branch, or reverted it; `exactly`: the same blobs. */
  readonly brings: 'maybe' | 'exactly' | 'no'
  readonly takesBack: 'maybe' | 'exactly' | 'no'
}

/**
 * From the newest, the first commit that brings the branch or reverts it decides: a change that landed and was reverted
 * isn't merged; if it landed again after that, it is.
 */
const newestOfEither = async (
  inquiry: Inquiry,
  branch: Branch,
  own: readonly Change[],
  commits: readonly CommitChanges[],
): Promise<Sha | undefined> => {
  const all = commits.flatMap((commit) => candidate(own, commit) ?? [])
  const candidates = all.slice(0, caps.comparisons)
  const asked = candidates.filter(({ brings, takesBack }) => brings !== 'exactly' && takesBack !== 'exactly')
  const landed = await compareByMerging(inquiry, branch, asked)
  for (const { sha, brings, takesBack } of candidates) {
    if (brings === 'exactly' || landed.get(sha) === 'brings') return sha
    if (takesBack === 'exactly' || landed.get(sha) === 'takes-back') return undefined
  }
  return undefined
}

const candidate = (own: readonly Change[], { sha, parents, changes }: CommitChanges): Candidate | undefined => {
  const [parent] = parents
  if (parent === undefined) return undefined
  const brings = likeness(own, changes)
  const takesBack = likeness(own, changes.map(reversed))
  return brings === 'no' && takesBack === 'no' ? undefined : { sha, parent, brings, takesBack }
}

/** Two processes for all candidates, one for the attributes. */
const compareByMerging = async (
  { git, repo, signal }: Inquiry,
  { tip, paths }: Branch,
  candidates: readonly Candidate[],
): Promise<ReadonlyMap<Sha, 'brings' | 'takes-back'>> => {
  if (candidates.length === 0) return new Map()
  if ((await pathsWithMergeDriver(git, repo, [...paths], { signal })).length > 0) return new Map()
  const merges = candidates.flatMap(({ sha, parent }): Merge[] => [
    { into: parent, tip },
    { into: sha, tip },
  ])
  const merged = await mergeTrees(git, repo, merges, { signal })
  const trees = await treesOf(git, repo, [...new Set(merges.map(({ into }) => into))], { signal })
  const gives = (at: number, tree: Sha | undefined): boolean => {
    const merge = merged[at]
    return merge?.clean === true && tree !== undefined && merge.tree === tree
  }
  return new Map(
    candidates.flatMap(({ sha, parent, brings, takesBack }, i): [Sha, 'brings' | 'takes-back'][] => {
      if (brings === 'maybe' && gives(2 * i, trees.get(sha))) return [[sha, 'brings']]
      return takesBack === 'maybe' && gives(2 * i + 1, trees.get(parent)) ? [[sha, 'takes-back']] : []
    }),
  )
}

/** Both sides are sorted by path, as in git's trees. */
const likeness = (own: readonly Change[], other: readonly Change[]): 'maybe' | 'exactly' | 'no' => {
  const pairs = own.map((change, i) => ({ change, match: other[i] }))
  const sameShape = ({ change, match }: (typeof pairs)[number]): boolean =>
    change.path === match?.path && change.oldMode === match.oldMode && change.newMode === match.newMode
  if (own.length !== other.length || !pairs.every(sameShape)) return 'no'
  const sameBlobs = pairs.every(({ change, match }) => change.oldId === match?.oldId && change.newId === match.newId)
  return sameBlobs ? 'exactly' : 'maybe'
}

const reversed = (change: Change): Change => ({
  path: change.path,
  oldMode: change.newMode,
  newMode: change.oldMode,
  oldId: change.newId,
  newId: change.oldId,
})

/** A revert need not be the exact opposite: other work may have moved the lines around it. But git's own says so. */
const isReverted = async ({ git, repo, base, signal }: Inquiry, found: Sha): Promise<boolean> => {
  const { stdout } = await git.run({
    operation: 'log',
    at: repo,
    args: [
      ...'log --max-count=1 --format=%H --no-show-signature --no-color --fixed-strings'.split(' '),
      `--grep=This reverts commit ${found}`,
      '--end-of-options',
      `${found}..${base.sha}`,
      '--',
    ],
    ...(signal && { signal }),
  })
  if (stdout.trim() !== '' && !/^[0-9a-f]+\n$/.test(stdout)) {
    throw new AppError('git-failed', 'git log gave an answer that could not be read')
  }
  return stdout.trim() !== ''
}
