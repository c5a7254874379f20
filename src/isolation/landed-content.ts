import type { MergeProof } from '../domain/merge-proof.ts'
import type { Sha } from '../domain/names.ts'
import { changesBetween } from '../git/changes.ts'
import { type MergedTree, mergeTrees, pathsWithMergeDriver } from '../git/merge-trees.ts'
import { forkPoints } from '../git/reachable.ts'
import { inPairs } from './in-lanes.ts'
import type { BranchQuestion, Inquiry } from './merge-question.ts'
import { squashOf } from './squash.ts'

export type Proof = { readonly proof: MergeProof; readonly detail: string }
/** `proof` undefined: asked, and not proven. */
export type Tried = { readonly proof: Proof | undefined } | { readonly failed: unknown }

/** Branches that have gone apart from base: did their content get there by another way? */
export const contentLanded = async (
  inquiry: Inquiry,
  questions: readonly BranchQuestion[],
  baseTree: Sha | undefined,
): Promise<{ readonly question: BranchQuestion; readonly tried: Tried }[]> => {
  const forks = await inPairs(questions, ({ tip }) => orFailed(() => forksOf(inquiry, tip)))
  const related = questions.filter((_, i) => isRelated(forks[i])).map(({ tip }) => tip)
  const merges = await mergeAll(inquiry, related)
  const cases = questions.map((question, i) => ({ question, fork: forks[i], merge: merges.get(question.tip) }))
  return inPairs(cases, async ({ question, fork, merge }) => {
    if (fork === undefined || 'failed' in fork) return { question, tried: { failed: fork?.failed } }
    // Histories that never met: only the same tree could be a proof, and that has been asked.
    if (!isRelated(fork)) return { question, tried: { proof: undefined } }
    if (merge === undefined || 'failed' in merge) return { question, tried: { failed: merge?.failed } }
    const proof = await orFailed(() =>
      prove(inquiry, question.tip, { forks: fork.value, merge: merge.value, baseTree }),
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

const forksOf = ({ git, repo, base, signal }: Inquiry, tip: Sha): Promise<Sha[]> =>
  forkPoints(git, repo, base.sha, tip, { signal })

const isRelated = (fork: OrFailed<readonly Sha[]> | undefined): boolean =>
  fork !== undefined && 'value' in fork && fork.value.length > 0

/** All in one process; if that fails, each alone, so that only the one that git stumbles over stays unanswered. */
const mergeAll = async (
  { git, repo, base, signal }: Inquiry,
  tips: readonly Sha[],
): Promise<ReadonlyMap<Sha, OrFailed<MergedTree>>> => {
  const together = await orFailed(() => mergeTrees(git, repo, base.sha, tips, { signal }))
  if ('value' in together) return new Map([...together.value].map(([tip, value]) => [tip, { value }]))
  const alone = await inPairs(tips, async (tip): Promise<[Sha, OrFailed<MergedTree>]> => {
    const one = await orFailed(() => mergeTrees(git, repo, base.sha, [tip], { signal }))
    const value = 'value' in one ? one.value.get(tip) : undefined
    if (value !== undefined) return [tip, { value }]
    return [tip, { failed: 'failed' in one ? one.failed : together.failed }]
  })
  return new Map(alone)
}

type Evidence = { readonly forks: readonly Sha[]; readonly merge: MergedTree; readonly baseTree: Sha | undefined }

const prove = async (inquiry: Inquiry, tip: Sha, evidence: Evidence): Promise<Proof | undefined> => {
  const { git, repo, base, signal } = inquiry
  const { forks, merge, baseTree } = evidence
  if (merge.clean && merge.tree === baseTree && (await mergedByText(inquiry, tip, forks))) {
    return { proof: 'merge-changes-nothing', detail: `merging it into ${base.name} changes nothing` }
  }
  const [fork] = forks
  const squash = fork && (await squashOf(git, repo, { fork, tip, base: base.sha }, { signal }))
  return squash && { proof: 'squash', detail: `squash of ${squash.slice(0, 7)} on ${base.name}` }
}

const listBytes = 16 * 1024 * 1024

/**
 * "Changes nothing" must come from comparing text. An attribute `merge=union` or `merge=ours` in the repository's own
 * `info/attributes`, which an agent can write, lets a change vanish in a merge without a conflict.
 */
const mergedByText = async (
  { git, repo, base, signal }: Inquiry,
  tip: Sha,
  forks: readonly Sha[],
): Promise<boolean> => {
  const apart = await changesBetween(git, repo, tip, base.sha, { maxBytes: listBytes, signal })
  if (apart === undefined) return false
  const own = new Set<string>()
  for (const fork of forks) {
    const changes = await changesBetween(git, repo, fork, tip, { maxBytes: listBytes, signal })
    if (changes === undefined) return false
    for (const { path } of changes) own.add(path)
  }
  const blended = apart.filter(({ path }) => own.has(path))
  if (blended.length === 0) return true
  // A path that base does not have may have been renamed there, and then the attribute of its new name counts.
  const asked = blended.some(({ newMode }) => newMode === '000000') ? apart : blended
  const paths = asked.map(({ path }) => path)
  return (await pathsWithMergeDriver(git, repo, paths, { signal })).length === 0
}
