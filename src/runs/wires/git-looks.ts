/*
 * What an agent changed outside its worktree. In: the shared checkout and git's own files, before and after a run. Out:
 * the changes, for a warning.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { toAppError } from '../../domain/errors.ts'
import { providerOf } from '../../isolation/provider-of.ts'
import type { Store } from '../../store/store.ts'
import type { RunsContext } from '../context.ts'
import {
  gitChanges,
  gitChangesBetweenRuns,
  type GitLook,
  lookAtOwnRepository,
  lookAtRepository,
  lookAtWorktree,
  type LookOptions,
} from './git-wire.ts'

type Context = Pick<RunsContext, 'isolation' | 'redact'>

/** Snapshot of git's own files: the repository's, and those of the run's worktree. */
export type GitLooks = {
  readonly codebase: Codebase
  readonly environment: IsolatedEnvironment | undefined
  readonly repository: GitLook
  readonly worktree: GitLook | undefined
}

export const lookAtGit = async (
  context: Context,
  codebase: Codebase,
  environment: IsolatedEnvironment | undefined,
): Promise<GitLooks> => ({
  codebase,
  environment,
  repository: await lookAtRepository(codebase, optionsOf(context)),
  worktree: environment === undefined ? undefined : await lookAtEnvironment(context, codebase, environment),
})

const lookAtEnvironment = async (
  context: Context,
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<GitLook> => {
  try {
    const own = (await providerOf(context.isolation, environment)).ownRepository(environment)
    return own === undefined
      ? await lookAtWorktree(codebase, environment, optionsOf(context))
      : await lookAtOwnRepository(own, environment, optionsOf(context))
  } catch (error) {
    return { problem: toAppError(error).message }
  }
}

const optionsOf = ({ isolation: { programEnvironment: user }, redact }: Context): LookOptions => ({ user, redact })

/**
 * Changes during a run. Without a complete check at the start, compares with the last stored one: otherwise a run that
 * makes git's files readable again would hide what was planted before.
 */
export const changesSince = async (context: Context, before: GitLooks, after: GitLooks): Promise<readonly string[]> => {
  const atStart = asKept(before)
  const lines: string[][] = []
  for (const { scope, look } of scopesOf(after)) {
    const old = atStart.get(scope)
    if (old === undefined) continue
    lines.push('problem' in old ? await changesSinceKept(context, scope, look) : gitChanges(old, look))
  }
  return lines.flat()
}

/**
 * Changes since the last stored check: after the last run, or while no server ran. The first check of a repository or
 * worktree has nothing to compare with.
 */
export const changesSinceLastLook = async (
  context: Context,
  now: GitLooks,
): Promise<{ readonly lines: readonly string[]; readonly kept: KeptLooks }> => {
  const lines: string[] = []
  const keptLooks = new Map<string, GitLook>()
  for (const { scope, look } of scopesOf(now)) {
    const { store, host } = context.isolation
    const kept = (await store.gitSnapshots.isStored(host, scope, look)) ? look : await keptLook(context, scope)
    if (kept === undefined) continue
    keptLooks.set(scope, kept)
    if (kept !== look) lines.push(...gitChangesBetweenRuns(kept, look))
  }
  return { lines, kept: keptLooks }
}

/** By scope. */
export type KeptLooks = ReadonlyMap<string, GitLook>

export const asKept = (looks: GitLooks): KeptLooks => new Map(scopesOf(looks).map(({ scope, look }) => [scope, look]))

const changesSinceKept = async (context: Context, scope: string, look: GitLook): Promise<string[]> => {
  const kept = await keptLook(context, scope)
  return kept === undefined ? [] : gitChangesBetweenRuns(kept, look)
}

const keptLook = async ({ isolation: { store, host } }: Context, scope: string): Promise<GitLook | undefined> =>
  (await store.gitSnapshots.get(host, scope)) as GitLook | undefined

/**
 * Call in the transaction that records the report: a crash neither hides a change nor repeats it. Writes nothing for
 * what is kept already: most runs change none of these files, and this was four writes per run.
 */
export const keepLooks = async (
  { isolation }: Context,
  store: Store,
  now: GitLooks,
  kept: KeptLooks = new Map(),
): Promise<void> => {
  for (const { scope, look, environmentId } of scopesOf(now)) {
    // A failed check must not become the next baseline.
    if ('problem' in look || isDeepStrictEqual(look, kept.get(scope))) continue
    await store.gitSnapshots.put({
      host: isolation.host,
      scope,
      codebaseId: now.codebase.id,
      environmentId,
      snapshot: look,
      at: isolation.clock(),
    })
  }
}

/** Includes the worktree's path: a moved or restored one has other pointers, through no agent. */
const scopesOf = ({ codebase, environment, repository, worktree }: GitLooks) => [
  { scope: `repository ${codebase.id} ${codebase.repoPath}`, look: repository, environmentId: undefined },
  ...(environment === undefined || worktree === undefined
    ? []
    : [{ scope: `worktree ${environment.id} ${environment.path}`, look: worktree, environmentId: environment.id }]),
]
