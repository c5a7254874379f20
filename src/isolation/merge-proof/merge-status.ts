import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import type { Merged, StaleBase } from '../../domain/merge-proof.ts'
import type { BranchName, Sha } from '../../domain/names.ts'
import type { Notice } from '../../domain/notice.ts'
import { listRefs } from '../../git/refs.ts'
import { AppError } from '../../domain/errors.ts'
import type { Base } from '../codebases/base-branch.ts'
import { baseAndConfig } from '../codebases/base-and-config.ts'
import type { IsolationContext } from '../context.ts'
import { broughtTips } from '../provider-of.ts'
import { mapInPairs } from '../map-concurrent.ts'
import { askForge } from './merged-on-forge.ts'
import { questionAbout } from './merge-question.ts'
import { mergedMany } from './merged.ts'
import { repoOf } from '../codebases/repo-of.ts'

/** Whether an environment is merged, without looking at its files. */
export type MergeStatus = {
  readonly environment: IsolatedEnvironment
  readonly merged: Merged
  readonly tip: Sha | undefined
  /** The later of the record's time and the branch's last commit. */
  readonly lastActivityAt: number
}

/** For all live environments of a codebase. Uses a constant number of git processes if nothing changed. */
export const mergeStatuses = async (
  context: IsolationContext,
  codebase: Codebase,
  known?: Base,
  environments?: readonly IsolatedEnvironment[],
): Promise<MergeStatus[]> => {
  const live = environments ?? (await context.store.environments.live(codebase.id))
  const mine = live.filter(({ host, status }) => host === context.host && (status === 'active' || status === 'missing'))
  if (mine.length === 0) return []
  const base = known ?? (await baseAndConfig(context, codebase)).base
  return mergeStatusesOf(context, codebase, mine, base)
}

/** The same, after asking the forge about what git leaves open: for callers that remove what is merged. */
export const mergeStatusesWithForge = async (
  context: IsolationContext,
  codebase: Codebase,
  base: Base,
  environments?: readonly IsolatedEnvironment[],
): Promise<{ readonly statuses: MergeStatus[]; readonly notices: readonly Notice[] }> => {
  const byGit = await mergeStatuses(context, codebase, base, environments)
  const { learned, notices } = await askForge(context, codebase, base, byGit)
  return { statuses: learned ? await mergeStatuses(context, codebase, base, environments) : byGit, notices }
}

/** On a stale base nothing counts as merged: the work may have been reverted since. */
export const withoutMergeProof = (mergeStatus: MergeStatus, why: StaleBase): MergeStatus => ({
  ...mergeStatus,
  merged: { value: 'cannot-tell', why },
})

export const mergeStatusOf = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  base: Base,
): Promise<MergeStatus> => {
  const [mergeStatus] = await mergeStatusesOf(context, codebase, [environment], base)
  if (mergeStatus === undefined) throw new AppError('unexpected', `no merge status of ${environment.branch}`)
  return mergeStatus
}

const mergeStatusesOf = async (
  context: IsolationContext,
  codebase: Codebase,
  environments: readonly IsolatedEnvironment[],
  base: Base,
): Promise<MergeStatus[]> => {
  const { refs: tipRefs, logs, problems } = await broughtTips(context, codebase, environments)
  const names = [...tipRefs.values()]
  // Many names may not fit on a command line; listing all branches always works.
  const repo = repoOf(codebase)
  const all = listRefs(context.git, repo, names.length > 50 ? ['refs/heads/', 'refs/coppice/'] : names)
  // One ref whose commit is gone makes git refuse the whole list; ask for each alone.
  const listed = await all.catch(async () => {
    const alone = await mapInPairs(names, (name) => listRefs(context.git, repo, [name]).catch(() => []))
    return alone.flat()
  })
  const refs = new Map(listed.map((ref) => [ref.name, ref]))
  const known = environments.map((environment) => ({ environment, ref: refs.get(tipRefs.get(environment.id) ?? '') }))
  const questions = known.flatMap(({ environment, ref }) =>
    ref === undefined ? [] : [questionAbout(environment, ref.sha, logs.get(environment.id))],
  )
  const answers = await mergedMany(context, codebase, questions, base)
  return known.map(({ environment, ref }) => ({
    environment,
    tip: ref?.sha,
    merged: mergedOf(environment, problems.get(environment.id), answers),
    lastActivityAt: Math.max(environment.lastActivityAt, ref?.committerDate ?? 0),
  }))
}

/** If the ref is out of date, newer commits would not be judged. */
const mergedOf = (
  { branch }: IsolatedEnvironment,
  problem: string | undefined,
  answers: ReadonlyMap<BranchName, Merged>,
): Merged => {
  if (problem !== undefined) return { value: 'cannot-tell', why: { kind: 'failed', message: problem } }
  return answers.get(branch) ?? { value: 'cannot-tell', why: { kind: 'branch-gone', branch } }
}
