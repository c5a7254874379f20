import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { Store } from '../store/store.ts'
import type { ConversationsContext } from './context.ts'
import { gitChanges, gitChangesBetweenRuns, type GitLook, lookAtRepository, lookAtWorktree } from './git-wire.ts'

type Context = Pick<ConversationsContext, 'isolation' | 'redact'>

/** Git's own files at one moment: the repository's, and those of the worktree that a run works in. */
export type GitLooks = {
  readonly codebase: Codebase
  readonly environment: IsolatedEnvironment | undefined
  readonly repository: GitLook
  readonly worktree: GitLook | undefined
}

export const lookAtGit = async (
  { programEnvironment: user }: Pick<IsolationContext, 'programEnvironment'>,
  codebase: Codebase,
  environment: IsolatedEnvironment | undefined,
): Promise<GitLooks> => ({
  codebase,
  environment,
  repository: lookAtRepository(codebase, user),
  worktree: environment === undefined ? undefined : await lookAtWorktree(codebase, environment, user),
})

/** What changed while a run went on. */
export const changesSince = (before: GitLooks, after: GitLooks): readonly string[] => [
  ...gitChanges(before.repository, after.repository),
  ...(before.worktree === undefined || after.worktree === undefined ? [] : gitChanges(before.worktree, after.worktree)),
]

/**
 * What changed since the last look that was kept: after the last run had ended, or while no server ran. The first look at
 * a repository or a worktree has nothing to compare with.
 */
export const changesSinceLastLook = async (
  { isolation: { store, host } }: Context,
  now: GitLooks,
): Promise<readonly string[]> => {
  const lines: string[] = []
  for (const { scope, look } of scopesOf(now)) {
    const kept = (await store.gitLooks.get(host, scope)) as GitLook | undefined
    if (kept !== undefined) lines.push(...gitChangesBetweenRuns(kept, look))
  }
  return lines
}

/** In the transaction that records what is said about it: a crash neither hides a change nor reports it twice. */
export const keepLooks = async ({ isolation, redact }: Context, store: Store, now: GitLooks): Promise<void> => {
  for (const { scope, look, environmentId } of scopesOf(now)) {
    // One that could not be taken must not become what the next one is compared with.
    if ('problem' in look) continue
    await store.gitLooks.put({
      host: isolation.host,
      scope,
      codebaseId: now.codebase.id,
      environmentId,
      look: redacted(look, redact),
      at: isolation.clock(),
    })
  }
}

/** By the worktree's path, too: one that was moved or restored has other pointers, and that was no agent. */
const scopesOf = ({ codebase, environment, repository, worktree }: GitLooks) => [
  { scope: `repository ${codebase.id} ${codebase.repoPath}`, look: repository, environmentId: undefined },
  ...(environment === undefined || worktree === undefined
    ? []
    : [{ scope: `worktree ${environment.id} ${environment.path}`, look: worktree, environmentId: environment.id }]),
]

const redacted = (look: Exclude<GitLook, { problem: string }>, redact: ConversationsContext['redact']): GitLook => {
  const { configs, followed, ...rest } = look
  const hidden = (all: typeof configs): typeof configs =>
    Object.fromEntries(
      Object.entries(all).map(([name, entries]) => [
        name,
        entries.map((entry) => ({ ...entry, key: redact(entry.key), shown: redact(entry.shown) })),
      ]),
    )
  return {
    ...rest,
    configs: hidden(configs),
    ...(followed !== undefined && { followed: { ...followed, configs: hidden(followed.configs) } }),
  }
}
