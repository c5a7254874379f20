import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { isAppError, toAppError } from '../../domain/errors.ts'
import type { Merged } from '../../domain/merge-proof.ts'
import type { BranchName, EnvironmentId, Sha } from '../../domain/names.ts'
import type { AheadBehind } from '../../git/ahead-behind.ts'
import type { CallOptions, Repo } from '../../git/door.ts'
import { countAheadBehind } from '../../git/history.ts'
import { listRefs, type Ref } from '../../git/refs.ts'
import { baseAndConfig } from '../codebases/base-and-config.ts'
import type { Base } from '../codebases/base-branch.ts'
import { repoOf } from '../codebases/repo-of.ts'
import type { IsolationContext } from '../context.ts'
import { broughtTips } from '../provider-of.ts'
import { questionAbout } from './merge-question.ts'
import { mergedMany } from './merged.ts'

/** How each environment's branch relates to base. */
export type Positions = {
  readonly tips: ReadonlyMap<EnvironmentId, Ref>
  readonly positions: ReadonlyMap<Sha, AheadBehind>
  readonly merged: ReadonlyMap<BranchName, Merged>
}

/** For a list: one that can't be judged says so; the others still get answers. */
export const positionsOf = async (
  context: IsolationContext,
  codebase: Codebase,
  environments: readonly IsolatedEnvironment[],
  { signal }: CallOptions,
): Promise<Positions> => {
  let tips: ReadonlyMap<EnvironmentId, Ref> = new Map()
  try {
    const found = await tipsAndBase(context, codebase, environments, { signal })
    const { base, logs, problems } = found
    tips = found.tips
    const questions = environments.flatMap((environment) => {
      const ref = found.tips.get(environment.id)
      return ref === undefined ? [] : [questionAbout(environment, ref.sha, logs.get(environment.id))]
    })
    const asked = questions.map(({ tip }) => tip)
    const positions = await countAll(context, repoOf(codebase), base, asked, signal)
    const known = positions === undefined ? {} : { positions }
    const merged = await mergedMany(context, codebase, questions, base, { ...known, signal })
    for (const { id, branch } of environments) {
      const problem = problems.get(id)
      if (problem !== undefined) merged.set(branch, unknown(problem))
    }
    return { tips, positions: positions ?? new Map(), merged }
  } catch (error) {
    if (isAppError(error, 'cancelled')) throw error
    const { message } = toAppError(error)
    const merged = environments.map(({ branch }): [BranchName, Merged] => [branch, unknown(message)])
    return { tips, positions: new Map(), merged: new Map(merged) }
  }
}

/**
 * How many commits each branch is ahead of base; none for those that can't be counted. A few git processes for all of
 * them together, and only one if no branch has moved since `before`.
 */
export const countAhead = async (
  context: IsolationContext,
  codebase: Codebase,
  environments: readonly IsolatedEnvironment[],
  { before, signal }: CallOptions & { readonly before?: CountedAhead | undefined } = {},
): Promise<CountedAhead> => {
  const { base, tips, problems } = await tipsAndBase(context, codebase, environments, { signal })
  const moved = [...tips.values()]
    .map(({ sha }) => sha)
    .filter((sha) => before?.base !== base.sha || !before.bySha.has(sha))
  const counted =
    moved.length === 0 ? new Map<Sha, AheadBehind>() : await countAll(context, repoOf(codebase), base, moved, signal)
  const bySha = new Map<Sha, number>()
  const ahead = new Map<EnvironmentId, number>()
  for (const [id, { sha }] of tips) {
    const known = counted?.get(sha)?.ahead ?? (before?.base === base.sha ? before.bySha.get(sha) : undefined)
    if (known === undefined) continue
    bySha.set(sha, known)
    if (!problems.has(id)) ahead.set(id, known)
  }
  return { base: base.sha, bySha, ahead }
}

export type CountedAhead = {
  readonly base: Sha
  readonly bySha: ReadonlyMap<Sha, number>
  readonly ahead: ReadonlyMap<EnvironmentId, number>
}

const tipsAndBase = async (
  context: IsolationContext,
  codebase: Codebase,
  environments: readonly IsolatedEnvironment[],
  { signal }: CallOptions,
) => {
  const { refs: names, logs, problems } = await broughtTips(context, codebase, environments)
  const refs = listing(context, repoOf(codebase), [...names.values()], signal)
  const { base } = await baseAndConfig(context, codebase, undefined, { list: refs.list, signal })
  const byName = await refs.byName()
  const tips = new Map(
    [...names].flatMap(([id, name]): [EnvironmentId, Ref][] => {
      const ref = byName.get(name)
      return ref === undefined ? [] : [[id, ref]]
    }),
  )
  return { base, tips, logs, problems }
}

const unknown = (message: string): Merged => ({ value: 'cannot-tell', why: { kind: 'failed', message } })

/** Lists the tips with the first query about base: one process, not two. */
const listing = (
  { git }: Pick<IsolationContext, 'git'>,
  repo: Repo,
  names: readonly string[],
  signal: AbortSignal | undefined,
) => {
  let first: Promise<Ref[]> | undefined
  const tips = ['refs/heads', ...names.filter((name) => !name.startsWith('refs/heads/'))]
  const ask = (patterns: readonly string[]): Promise<Ref[]> => listRefs(git, repo, patterns, { signal })
  return {
    list: (patterns: readonly string[]): Promise<Ref[]> =>
      first === undefined ? (first = ask([...tips, ...patterns])) : ask(patterns),
    byName: async (): Promise<ReadonlyMap<string, Ref>> =>
      new Map((await (first ??= ask(tips))).map((ref) => [ref.name, ref])),
  }
}

/** undefined if git failed on one of them: callers that need the answer then ask for each alone. */
const countAll = async (
  { git }: Pick<IsolationContext, 'git'>,
  repo: Repo,
  base: Base,
  tips: readonly Sha[],
  signal: AbortSignal | undefined,
): Promise<ReadonlyMap<Sha, AheadBehind> | undefined> => {
  try {
    return await countAheadBehind(git, repo, base.sha, tips, { signal })
  } catch (error) {
    if (isAppError(error, 'cancelled')) throw error
    return undefined
  }
}
