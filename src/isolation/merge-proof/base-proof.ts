import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { toAppError } from '../../domain/errors.ts'
import type { MergeDoubt, StaleBase } from '../../domain/merge-proof.ts'
import type { BranchName, Sha } from '../../domain/names.ts'
import { branchReflog } from '../../git/reflog.ts'
import type { CallOptions, Git, Repo } from '../../git/door.ts'
import { commitsOutside, descendantsOf, firstParentsDownTo, notReachableFrom } from '../../git/reachable.ts'
import type { Base } from '../codebases/base-branch.ts'
import type { IsolationContext } from '../context.ts'
import type { BranchQuestion } from './merge-question.ts'
import { repoOf } from '../codebases/repo-of.ts'
import { restorePointsOf } from '../restore-points.ts'

const heads = 'refs/heads/'

/**
 * Why nothing can be proven merged into this base. Work is merged into a branch: a tag or a commit may have been put
 * right on the work's own tip. With a remote the branch must be the remote's, which we can ask; without one, a
 * remote-tracking ref is just a name anybody can move.
 */
export const whyNoMergeTarget = (
  { remote }: Codebase,
  { ref, name }: Pick<Base, 'ref' | 'name'>,
): StaleBase | undefined => {
  if (remote === undefined) return ref.startsWith(heads) ? undefined : { kind: 'base-not-local', base: name }
  return ref.startsWith('refs/remotes/') ? undefined : { kind: 'base-not-remote', base: name }
}

/** Branches that Coppice made for these environments. */
export const branchesMadeBy = (environments: readonly IsolatedEnvironment[]): ReadonlySet<string> =>
  new Set(environments.filter(({ branchOrigin }) => branchOrigin === 'created').map(({ branch }) => branch))

/** Of live and restorable environments: work in progress, never a base. */
const branchesMade = async (context: IsolationContext, codebase: Codebase): Promise<ReadonlySet<string>> => {
  const removed = (await restorePointsOf(context, codebase)).map(({ contents }) => contents.environment)
  return branchesMadeBy([...(await context.store.environments.live(codebase.id)), ...removed])
}

/**
 * The branches, all within base or equal to it, that may be there without a merge: base was created from them. Anybody
 * can create a local branch on a worktree's tip; it proves nothing.
 */
export const doubtsAbout = async (
  context: IsolationContext,
  codebase: Codebase,
  base: Base,
  questions: readonly BranchQuestion[],
  options: CallOptions = {},
): Promise<ReadonlyMap<BranchName, MergeDoubt>> => {
  const all = (why: MergeDoubt) => new Map(questions.map(({ branch }) => [branch, why]))
  if (questions.length === 0) return new Map()
  const noTarget = whyNoMergeTarget(codebase, base)
  if (noTarget !== undefined) return all(noTarget)
  if (codebase.remote !== undefined) return new Map()
  try {
    const branch = base.ref.slice(heads.length)
    if ((await branchesMade(context, codebase)).has(branch)) return all({ kind: 'base-of-worktree', base: branch })
    return await createdFrom(context, codebase, base, questions, options)
  } catch (error) {
    if (options.signal?.aborted === true) throw error
    return all({ kind: 'failed', message: toAppError(error).message })
  }
}

const createdFrom = async (
  context: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  base: Base,
  questions: readonly BranchQuestion[],
  options: CallOptions,
): Promise<ReadonlyMap<BranchName, MergeDoubt>> => {
  const { git } = context
  const repo = repoOf(codebase)
  const branch = base.ref.slice(heads.length)
  const doubted = (some: readonly BranchQuestion[], kind: BaseDoubt) =>
    new Map(some.map((one) => [one.branch, { kind, base: branch }]))
  const [first, ...later] = await branchReflog(repo, branch)
  // The earliest known commit of base.
  const earliest = first?.from ?? first?.to
  if (first === undefined || earliest === undefined) {
    const unmerged = await withoutMergeCommit(context, codebase, base, questions, options)
    return doubted(unmerged, 'base-without-reflog')
  }
  const isWhole = first.from === undefined
  if (isWhole && later.every(({ to }) => to === first.to)) {
    return doubted(questions, 'base-untouched')
  }
  const tips = questions.map(({ tip }) => tip)
  const outside = await notReachableFrom(git, repo, earliest, tips, options)
  const inside = questions.filter(({ tip }) => !outside.has(tip))
  const entered = questions.filter(({ tip }) => outside.has(tip))
  return new Map([
    ...doubted(await withOwnCommit(git, repo, earliest, entered, options), 'base-created-from-it'),
    ...(isWhole
      ? doubted(inside, 'base-created-from-it')
      : doubted(await withoutMergeCommit(context, codebase, base, inside, options), 'base-reflog-too-short')),
  ])
}

type BaseDoubt = 'base-without-reflog' | 'base-untouched' | 'base-created-from-it' | 'base-reflog-too-short'

/** Those that own this commit: base was created from an earlier state of them. */
const withOwnCommit = async (
  git: Git,
  repo: Repo,
  commit: Sha,
  questions: readonly BranchQuestion[],
  options: CallOptions,
): Promise<BranchQuestion[]> => {
  const known = questions.filter(({ start }) => start !== undefined && start !== commit)
  const ends = known.flatMap(({ start, tip }) => (start === undefined ? [tip] : [start, tip]))
  const after = await descendantsOf(git, repo, commit, ends, options)
  return known.filter(({ start, tip }) => after.has(tip) && start !== undefined && !after.has(start))
}

/** With more own commits than this, nothing is compared or proven. */
const mostOwnCommits = 10_000

/**
 * If the reflog doesn't say how their commits got into base, only a merge or squash commit proves it: a branch created
 * from them, or fast-forwarded to them, has their commits on its first-parent line.
 */
const withoutMergeCommit = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  base: Base,
  questions: readonly BranchQuestion[],
  options: CallOptions,
): Promise<BranchQuestion[]> => {
  const repo = repoOf(codebase)
  const branch = base.ref.slice(heads.length)
  const unmerged: BranchQuestion[] = []
  for (const question of questions) {
    const { start, tip, startedFrom } = question
    if (start === undefined || startedFrom !== branch) {
      unmerged.push(question)
      continue
    }
    const own = await commitsOutside(git, repo, tip, [start], { ...options, limit: mostOwnCommits })
    const line = await firstParentsDownTo(git, repo, base.sha, [start, tip], options)
    if (own.length >= mostOwnCommits || own.some((sha) => line.has(sha))) unmerged.push(question)
  }
  return unmerged
}
