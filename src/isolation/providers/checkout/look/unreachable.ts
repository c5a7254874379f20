import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Sha, toRepoPath } from '../../../../domain/names.ts'
import type { Unreachable, UnpushedSubmodule, UnpushedTip } from '../../../../domain/removal/unreachable.ts'
import { readAdminDirs, readHead } from '../../../../git/admin-dir.ts'
import { type ConfigEntry, lastValue, splitKey } from '../../../../git/config-entries.ts'
import type { Repo, Tree } from '../../../../git/door.ts'
import { unreferencedPrivateRefs } from '../../../../git/private-refs.ts'
import { listRefs, resolveCommit } from '../../../../git/refs.ts'
import {
  countUnpushed,
  countUnreachable,
  refsAt,
  refsWithoutCommits,
  stashes,
  unpushedTips,
} from '../../../../git/unreachable.ts'
import type { IsolationContext } from '../../../context.ts'
import { askForTags, fetchedTags, type RemoteTags } from './fetched-tags.ts'
import { mapConcurrent } from '../../../map-concurrent.ts'
import { type SubmoduleDir, submoduleDirs } from './submodule-dirs.ts'

type Context = Pick<IsolationContext, 'git'>

/**
 * Commits that removal would make unreachable. The branch stays unless it is proven merged or empty, so its commits are
 * safe; not those of a detached HEAD or of the worktree's own refs, nor unpushed ones of a submodule, whose git
 * directory is deleted with the worktree's record.
 */
export const unreachableCommits = async (context: Context, tree: Tree): Promise<Unreachable[]> => {
  const commits = await detachedCommits(context, tree)
  const refs = await unreferencedPrivateRefs(context.git, tree)
  const submodules = await mapConcurrent(mostAsked, await submoduleDirs(tree.gitDir), async (module) =>
    describeUnpushed(context, module, await unpushedIn(context, module, askForTags)),
  )
  return [
    ...(commits > 0 ? [{ kind: 'detached-head', commits } as const] : []),
    ...refs.map(({ name, commits: held }) => ({ kind: 'own-ref', ref: name, commits: held }) as const),
    ...submodules.flat(),
  ]
}

/** In parallel: a silent remote takes a minute to time out. */
const mostAsked = 8

/** Submodules with anything that no remote is known to have. Starts git only if the record has submodules. */
export const unpushedSubmodules = async (context: Context, tree: Tree): Promise<readonly SubmoduleDir[]> => {
  const modules = await submoduleDirs(tree.gitDir)
  const found = await mapConcurrent(mostAsked, modules, async (module) => {
    const { commits, refs, worktrees } = await unpushedIn(context, module)
    return commits > 0 || refs.length > 0 || worktrees.length > 0
  })
  return modules.filter((_module, i) => found[i])
}

type Unpushed = {
  readonly commits: number
  readonly refs: readonly string[]
  readonly worktrees: Awaited<ReturnType<typeof readAdminDirs>>
  /** Known to be on a remote. */
  readonly pushed: readonly Sha[]
  readonly asked: RemoteTags | 'no-answer' | undefined
}

const unpushedIn = async (context: Context, { dir }: SubmoduleDir, ask?: typeof askForTags): Promise<Unpushed> => {
  const { git } = context
  const repo = repoAt(dir)
  const look = async (pushed: readonly Sha[]) => ({
    pushed,
    commits: await countUnpushed(git, repo, pushed),
    refs: await refsWithoutCommits(git, repo, pushed),
  })
  const found = await look(await fetchedTags(dir))
  const worktrees = await readAdminDirs(dir)
  // Releases are often tagged on commits that no branch has: the remote knows whether these are.
  const mayBeFetched =
    found.refs.some(isTag) || (found.commits > 0 && ask !== undefined && (await areTagged(context, repo)))
  if (ask === undefined || !mayBeFetched) return { ...found, worktrees, asked: undefined }
  const asked = await ask(context, dir, remoteIn(await git.config(repo)))
  return asked === undefined
    ? { ...found, worktrees, asked: 'no-answer' }
    : { ...(await look(asked.known)), worktrees, asked }
}

const isTag = (ref: string): boolean => ref.startsWith('refs/tags/')

/** Whether tags reach every commit that no remote has. */
const areTagged = async ({ git }: Context, repo: Repo): Promise<boolean> => {
  const tags = (await listRefs(git, repo, ['refs/tags'])).map(({ sha }) => sha)
  return tags.length > 0 && (await countUnpushed(git, repo, tags)) === 0
}

/** Its files may be gone or replaced, and git fails if it can't enter `core.worktree`. */
const repoAt = (dir: string): Tree => ({ commonDir: toRepoPath(dir), gitDir: dir, path: dir })

/** What a person must know to push it. */
const describeUnpushed = async (
  context: Context,
  { name, dir }: SubmoduleDir,
  { commits, refs, worktrees, pushed, asked }: Unpushed,
): Promise<Unreachable[]> => {
  if (commits === 0 && refs.length === 0 && worktrees.length === 0) return []
  const repo = repoAt(dir)
  const submodule = await pushingFrom(context, name, dir)
  const found: Unreachable[] = []
  if (commits > 0) {
    const { tips, hasMore } = await unpushedTips(context.git, repo, pushed, mostTips)
    found.push({
      kind: 'submodule-commits',
      submodule,
      commits,
      tips: await nameTips(context, repo, tips, asked),
      hasMoreTips: hasMore,
      askedForTags: asked === undefined || asked === 'no-answer' ? asked : 'answered',
    })
  }
  if (refs.length > 0) found.push({ kind: 'submodule-refs', submodule, refs })
  // Last: removing a worktree deletes its reflog, which alone may have its commits.
  if (worktrees.length > 0) {
    const described = worktrees.map((one) => ({ path: one.worktreePath, isLocked: one.lockReason !== undefined }))
    found.push({ kind: 'submodule-worktrees', submodule, worktrees: described })
  }
  return found
}

/** More don't fit on a command line to paste. */
const mostTips = 10

const pushingFrom = async (context: Context, name: string, gitDir: string): Promise<UnpushedSubmodule> => {
  const entries = await context.git.config(repoAt(gitDir))
  const files = lastValue(entries, 'core.worktree')
  const remote = remoteIn(entries)
  return {
    name,
    gitDir,
    filesAreGone: files !== undefined && !existsSync(resolve(gitDir, files)),
    remote,
    tracksPushes: remote === undefined || tracksEveryBranch(entries, remote),
  }
}

/** An agent can write the configuration: a remote called `--receive-pack=…` would be an option in a pasted command. */
const remoteIn = (entries: readonly ConfigEntry[]): string | undefined => {
  const names = entries.flatMap(({ key }) => {
    const { section, subsection = '', variable } = splitKey(key)
    return section === 'remote' && variable === 'url' && /^\w[\w./-]*$/.test(subsection) ? [subsection] : []
  })
  return names.find((name) => name === 'origin') ?? names[0]
}

/** As after an ordinary clone. With any other refspec, fetching the branch by name creates the tracking ref. */
const tracksEveryBranch = (entries: readonly ConfigEntry[], remote: string): boolean => {
  const refspecs = entries.filter(({ key }) => key === `remote.${remote}.fetch`).map(({ value }) => value ?? '')
  return (
    refspecs.some((refspec) => /^\+?refs\/heads\/\*:refs\/remotes\//.test(refspec)) &&
    !refspecs.some((refspec) => refspec.startsWith('^'))
  )
}

const nameTips = async (
  { git }: Context,
  repo: Repo,
  tips: readonly Sha[],
  asked: Unpushed['asked'],
): Promise<UnpushedTip[]> => {
  const head = await resolveCommit(git, repo, 'HEAD')
  const stashed = new Set(await stashes(git, repo))
  const remoteNames = asked === undefined || asked === 'no-answer' ? undefined : asked.names
  const named: UnpushedTip[] = []
  for (const sha of tips) {
    const refs = sha === head ? [] : await refsAt(git, repo, sha)
    const tag = refs.find(isTag)
    const ref =
      refs.find((one) => one.startsWith('refs/heads/')) ?? refs.find((one) => !isTag(one) && one !== 'refs/stash')
    if (sha === head) named.push({ at: 'head', sha })
    else if (ref !== undefined) named.push({ at: 'ref', sha, ref })
    else if (tag !== undefined) named.push({ at: 'tag', sha, ref: tag, isFree: remoteNames?.has(tag) === false })
    else named.push({ at: stashed.has(sha) ? 'stash' : 'reflog', sha })
  }
  return named
}

/** Commits on a detached HEAD that no branch has. Starts git only if HEAD is detached. */
export const detachedCommits = async ({ git }: Context, tree: Tree): Promise<number> => {
  const head = await readHead(tree.gitDir)
  if (head === undefined) throw new Error('its HEAD cannot be read')
  return 'sha' in head ? countUnreachable(git, tree, ['HEAD']) : 0
}
