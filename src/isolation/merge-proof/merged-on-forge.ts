/*
 * What a code host says about merged pull requests. In: branches that git can't prove merged. Out: those whose tip is
 * the head of a merged pull request. `main.ts` passes the host in; isolation knows none.
 */
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { isAppError, toAppError } from '../../domain/errors.ts'
import type { Merged, MergedPullRequest } from '../../domain/merge-proof.ts'
import type { MergeEvent } from '../../domain/message.ts'
import type { BranchName, EnvironmentId, Sha } from '../../domain/names.ts'
import type { Notice } from '../../domain/notice.ts'
import { isAboutPullRequest, type Work } from '../../domain/work.ts'
import type { CallOptions } from '../../git/door.ts'
import { messagesSince, subjectsOf } from '../../git/messages.ts'
import { notReachableFrom } from '../../git/reachable.ts'
import type { Base } from '../codebases/base-branch.ts'
import type { IsolationContext } from '../context.ts'
import type { ForgeQuestion } from '../forge.ts'
import { mapInPairs } from '../map-concurrent.ts'
import { whyNoMergeTarget } from './base-proof.ts'
import type { BranchQuestion, Inquiry } from './merge-question.ts'

/** The environment's row and what git says about its branch. */
type Status = {
  readonly environment: IsolatedEnvironment
  readonly merged: Merged
  readonly tip: Sha | undefined
}

/**
 * Asks about everything that git leaves open, in one query, and remembers what is merged. Returns whether there is
 * something new, and a notice if the forge didn't answer: then git's answer stays.
 */
export const askForge = async (
  context: Pick<IsolationContext, 'store' | 'clock' | 'forge' | 'log'>,
  codebase: Codebase,
  base: Base,
  statuses: readonly Status[],
  { signal }: CallOptions = {},
): Promise<{ readonly learned: boolean; readonly notices: readonly Notice[] }> => {
  const nothing = { learned: false, notices: [] }
  const { forge, store, log, clock } = context
  if (forge === undefined || !canProve(codebase, base)) return nothing
  // Only these could be removed: what Coppice didn't create, or can't find, stays anyway.
  const open = statuses.filter(
    ({ environment, merged }) => environment.owned && environment.status === 'active' && mayBeAsked(merged),
  )
  const aliases = await store.environments.aliasesOf(open.map(({ environment }) => environment.id))
  const questions = open.flatMap(questionOf(aliases))
  if (questions.length === 0) return nothing
  try {
    const { merged, problem } = await forge.mergedPullRequests(codebase, questions, { signal })
    await store.mergedPullRequests.save(codebase.id, merged, clock())
    return { learned: merged.length > 0, notices: problem === undefined ? [] : [{ kind: 'forge-silent', ...problem }] }
  } catch (error) {
    if (isAppError(error, 'cancelled')) throw error
    log.warn("couldn't ask the code host what was merged", { codebase: codebase.name, error })
    return { learned: false, notices: [{ kind: 'forge-silent', message: toAppError(error).message }] }
  }
}

/** Git proved nothing. Base's own branch is never merged, whatever the forge says. */
const mayBeAsked = (merged: Merged): boolean =>
  merged.value === 'no' || (merged.value === 'cannot-tell' && merged.why.kind !== 'own-base')

const questionOf =
  (aliases: ReadonlyMap<EnvironmentId, readonly Work[]>) =>
  ({ environment, tip }: Status): ForgeQuestion[] => {
    if (tip === undefined) return []
    const { id, work, branch, prNumber, prBranch } = environment
    const works = [work, ...(aliases.get(id) ?? [])].filter(isAboutPullRequest)
    const numbers = [prNumber, ...works.map((one) => Number(one.id))].filter(isNumber)
    const branches = prBranch === undefined ? [branch] : [branch, prBranch]
    return [{ tip, branches: [...new Set(branches)], numbers: [...new Set(numbers)] }]
  }

const isNumber = (n: number | undefined): n is number => Number.isSafeInteger(n) && Number(n) > 0

/** Whoever can't ask the remote for base can't check what the forge says either. */
const canProve = (codebase: Codebase, base: Base): boolean =>
  codebase.github !== undefined && codebase.remote !== undefined && whyNoMergeTarget(codebase, base) === undefined

/**
 * A merge event: remembered if an environment may be waiting for it. Anything else that is merged in the repository
 * isn't our business.
 */
export const rememberMerge = async (
  { store, host, clock }: Pick<IsolationContext, 'store' | 'host' | 'clock'>,
  { headBranch, ...merged }: MergeEvent,
): Promise<void> => {
  for (const codebase of await store.codebases.list(host)) {
    if (!isSameRepository(codebase, merged)) continue
    const live = await store.environments.live(codebase.id)
    const aliases = await store.environments.aliasesOf(live.map(({ id }) => id))
    const concerned = live.flatMap((environment) =>
      questionOf(aliases)({ environment, tip: merged.headSha, merged: { value: 'no', own: 0 } }),
    )
    const isAbout = ({ branches, numbers }: ForgeQuestion): boolean =>
      numbers.includes(merged.number) || (headBranch !== undefined && branches.includes(headBranch))
    if (concerned.some(isAbout)) await store.mergedPullRequests.save(codebase.id, [merged], clock())
  }
}

/** GitHub ignores case. */
const isSameRepository = ({ github }: Codebase, { repository }: MergedPullRequest): boolean =>
  github !== undefined && github.toLowerCase() === repository.toLowerCase()

/**
 * Of the branches that git leaves open, those whose tip is exactly the head of a pull request that was merged into
 * base. Base must have what that merge added, and must not have reverted it: a forge says *merged* for ever.
 */
export const provenByForge = async (
  { store }: Pick<IsolationContext, 'store'>,
  inquiry: Inquiry,
  codebase: Codebase,
  open: readonly BranchQuestion[],
): Promise<ReadonlyMap<BranchName, Merged>> => {
  const { base } = inquiry
  if (open.length === 0 || !canProve(codebase, base)) return new Map()
  const heads = [...new Set(open.map(({ tip }) => tip))]
  const said = (await store.mergedPullRequests.find(codebase.id, heads)).filter(
    (one) => isSameRepository(codebase, one) && one.baseBranch === base.branch,
  )
  const confirmed = await stillMerged(inquiry, said)
  const byHead = new Map(confirmed.map((one) => [one.headSha, one]))
  return new Map(
    open.flatMap(({ branch, tip }): [BranchName, Merged][] => {
      const one = byHead.get(tip)
      if (one === undefined) return []
      const pullRequest = { forge: one.forge, number: one.number }
      return [[branch, { value: 'yes', proof: 'forge', base: base.name, commit: tip, pullRequest }]]
    }),
  )
}

const stillMerged = async (inquiry: Inquiry, said: readonly MergedPullRequest[]): Promise<MergedPullRequest[]> => {
  try {
    return await notReverted(inquiry, await inBase(inquiry, said))
  } catch (error) {
    if (inquiry.signal?.aborted === true) throw error
    return []
  }
}

/** One process for all; if git doesn't have one of the commits, each alone. */
const inBase = async (
  { git, repo, base, signal }: Inquiry,
  said: readonly MergedPullRequest[],
): Promise<MergedPullRequest[]> => {
  const within = async (some: readonly MergedPullRequest[]): Promise<MergedPullRequest[]> => {
    const outside = await notReachableFrom(
      git,
      repo,
      base.sha,
      some.map(({ mergeCommit }) => mergeCommit),
      { signal },
    )
    return some.filter(({ mergeCommit }) => !outside.has(mergeCommit))
  }
  try {
    return await within(said)
  } catch (error) {
    if (signal?.aborted === true) throw error
    return (await mapInPairs(said, (one) => within([one]).catch(() => []))).flat()
  }
}

/**
 * Git's own words for a revert, and GitHub's. Git may shorten the hash (`--reference`); and where a squash keeps only a
 * pull request's title, the title of what was reverted is all that is left.
 */
const notReverted = async (
  { git, repo, base, signal }: Inquiry,
  merged: readonly MergedPullRequest[],
): Promise<MergedPullRequest[]> => {
  const commits = merged.map(({ mergeCommit }) => mergeCommit)
  const subjects = await subjectsOf(git, repo, commits, { signal })
  const wordsFor = ({ mergeCommit, repository, number }: MergedPullRequest): string[] => {
    const title = (subjects.get(mergeCommit) ?? '').replace(new RegExp(` \\(#${number}\\)$`), '')
    return [`This reverts commit ${mergeCommit.slice(0, 7)}`, `Reverts ${repository}#${number}`, `Revert "${title}`]
  }
  const texts = merged.flatMap(wordsFor)
  const found = await messagesSince(git, repo, { from: base.sha, since: commits, texts }, { signal })
  const messages = found.map((message) => message.toLowerCase())
  const isReverted = (one: MergedPullRequest): boolean => {
    const [commit = '', pullRequest = '', title = ''] = wordsFor(one).map((words) => words.toLowerCase())
    return messages.some(
      (message) =>
        following(message, commit).some((rest) => isSameHash(rest, one.mergeCommit.slice(7))) ||
        // `#12` is also the beginning of `#123`.
        following(message, pullRequest).some((rest) => !/^\d/.test(rest)) ||
        following(message, title).some((rest) => /^(?: \(#\d+\))?"/.test(rest)),
    )
  }
  return merged.filter((one) => !isReverted(one))
}

const following = (message: string, words: string): string[] => message.split(words).slice(1)

/** The rest of a hash, in full or shortened. */
const isSameHash = (rest: string, hash: string): boolean => hash.startsWith(/^[0-9a-f]*/.exec(rest)?.[0] ?? '')
