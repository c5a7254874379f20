import type { Proven } from '../../domain/merge-proof.ts'
import type { Sha } from '../../domain/names.ts'
import type { Change, Pair } from '../../git/changes.ts'
import { type MergedTree, mergeTrees, pathsWithMergeDriver } from '../../git/merge-trees.ts'
import { forkPoints } from '../../git/reachable.ts'
import { mapInPairs } from '../map-concurrent.ts'
import { compare, type Differences } from './differences.ts'
import type { BranchQuestion, Inquiry } from './merge-question.ts'
import { squashOf } from './squash.ts'

/** `proof` undefined: checked, not proven. */
export type Tried = { readonly proof: Proven | undefined } | { readonly failed: unknown }

/** Branches that have diverged from base: did their content get there in another way? */
export const contentLanded = async (
  inquiry: Inquiry,
  questions: readonly BranchQuestion[],
  baseTree: Sha | undefined,
): Promise<{ readonly question: BranchQuestion; readonly tried: Tried }[]> => {
  const forks = await mapInPairs(questions, ({ tip }) => orFailed(() => forksOf(inquiry, tip)))
  const related = questions.filter((_, i) => isRelated(forks[i])).map(({ tip }) => tip)
  const merges = await mergeAll(inquiry, related)
  const cases = questions.map((question, i) => ({ question, fork: forks[i], merge: merges.get(question.tip) }))
  const differences = await compare(inquiry, pairsOf(inquiry, cases))
  return mapInPairs(cases, async ({ question, fork, merge }) => {
    if (fork === undefined || 'failed' in fork) return { question, tried: { failed: fork?.failed } }
    // Unrelated histories: only the same tree could be a proof, and that was checked.
    if (!isRelated(fork)) return { question, tried: { proof: undefined } }
    if (merge === undefined || 'failed' in merge) return { question, tried: { failed: merge?.failed } }
    const proof = await orFailed(() =>
      prove(inquiry, question.tip, { forks: fork.value, merge: merge.value, baseTree, differences }),
    )
    return { question, tried: 'failed' in proof ? proof : { proof: proof.value } }
  })
}

type OrFailed<T> = { readonly value: T } | { readonly failed: unknown }

const orFailed = async <T>(work: () => Promise<T>): Promise<OrFailed<T>> => {
  try {
    return { value: await work() }
  } catch (failed) {
    return { failed }
  }
}

const forksOf = async ({ git, repo, base, positions, signal }: Inquiry, tip: Sha): Promise<readonly Sha[]> =>
  positions?.get(tip)?.forks ?? forkPoints(git, repo, base.sha, tip, { signal })

/** What each branch changed, and what base changed since each fork. */
const pairsOf = (
  { base }: Inquiry,
  cases: readonly { readonly question: BranchQuestion; readonly fork: OrFailed<readonly Sha[]> | undefined }[],
): Pair[] => {
  const related = cases.map(({ question, fork }) => ({
    to: question.tip,
    forks: fork !== undefined && 'value' in fork ? fork.value : [],
  }))
  const bases = new Set(related.flatMap(({ forks }) => forks.slice(0, 1)))
  return [
    ...related.flatMap(({ to, forks }) => forks.map((from) => ({ from, to }))),
    ...[...bases].map((from) => ({ from, to: base.sha })),
  ]
}

const isRelated = (fork: OrFailed<readonly Sha[]> | undefined): boolean =>
  fork !== undefined && 'value' in fork && fork.value.length > 0

/** All in one process; if that fails, each alone, so that only the one git fails on stays unanswered. */
const mergeAll = async (
  { git, repo, base, signal }: Inquiry,
  tips: readonly Sha[],
): Promise<ReadonlyMap<Sha, OrFailed<MergedTree>>> => {
  const merge = (some: readonly Sha[]): Promise<OrFailed<MergedTree[]>> => {
    const merges = some.map((tip) => ({ into: base.sha, tip }))
    return orFailed(() => mergeTrees(git, repo, merges, { signal }))
  }
  const together = await merge(tips)
  const answers =
    'value' in together
      ? together.value.map((value) => ({ value }))
      : await mapInPairs(tips, async (tip) => {
          const one = await merge([tip])
          const value = 'value' in one ? one.value[0] : undefined
          return value === undefined ? { failed: 'failed' in one ? one.failed : together.failed } : { value }
        })
  return new Map(tips.map((tip, i) => [tip, answers[i] ?? { failed: undefined }]))
}

type Evidence = {
  readonly forks: readonly Sha[]
  readonly merge: MergedTree
  readonly baseTree: Sha | undefined
  readonly differences: Differences
}

const prove = async (
  inquiry: Inquiry,
  tip: Sha,
  { forks, merge, baseTree, differences }: Evidence,
): Promise<Proven | undefined> => {
  const { base } = inquiry
  const own = await pathsOf(differences, tip, forks)
  if (own === undefined) return undefined
  if (merge.clean && merge.tree === baseTree && (await mergedByText(inquiry, differences, tip, own))) {
    return { proof: 'merge-changes-nothing', base: base.name }
  }
  const [fork] = forks
  const squash = fork && (await squashOf(inquiry, { fork, tip, paths: own }, differences))
  return squash && { proof: 'squash', base: base.name, commit: squash }
}

/** The paths that the branch changed; undefined if there are too many to compare. */
const pathsOf = async (
  differences: Differences,
  tip: Sha,
  forks: readonly Sha[],
): Promise<ReadonlySet<string> | undefined> => {
  const own = new Set<string>()
  for (const fork of forks) {
    const changes = await differences(fork, tip)
    if (changes === undefined) return undefined
    for (const { path } of changes) own.add(path)
  }
  return own
}

/**
 * "Changes nothing" must come from comparing text at the same path. An attribute `merge=union` or `merge=ours` in the
 * repository's `info/attributes`, which an agent can write, drops a change in a merge without a conflict. And git
 * guesses renames: of two identical files that base deleted it may pick either as the origin of a third, so a path that
 * only one side has proves nothing.
 */
const mergedByText = async (
  { git, repo, base, signal }: Inquiry,
  differences: Differences,
  tip: Sha,
  own: ReadonlySet<string>,
): Promise<boolean> => {
  const apart = await differences(tip, base.sha)
  const blended = apart?.filter(({ path }) => own.has(path))
  if (blended === undefined || blended.some(isOneSided)) return false
  if (blended.length === 0) return true
  const paths = blended.map(({ path }) => path)
  return (await pathsWithMergeDriver(git, repo, paths, { signal })).length === 0
}

const isOneSided = ({ oldMode, newMode }: Change): boolean => oldMode === '000000' || newMode === '000000'
