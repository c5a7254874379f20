import type { Base, Fresh } from './base-branch.ts'
import type { Codebase } from '../../domain/environment.ts'
import { AppError, type ErrorCode, toAppError } from '../../domain/errors.ts'
import type { CallOptions, Git, Repo } from '../../git/door.ts'
import { askRemoteHead, fetchRemote } from '../../git/fetch.ts'
import { listRefs, readSymbolicRef, type Ref, resolveCommit } from '../../git/refs.ts'
import { askRemoteRefs } from '../../git/remote-refs.ts'
import { readSymbolicRefFile } from '../../git/symbolic-ref-file.ts'
import type { IsolationContext } from '../context.ts'
import { defaultBranch } from './default-branch.ts'
import { locked } from '../lock/locked.ts'
import { repoOf } from './repo-of.ts'
import { coppice, remedy, shell } from '../../domain/remedy.ts'

export type BaseOptions = CallOptions & {
  /** Lists refs in another way, so that a caller who needs more of them can use one process for all. */
  readonly list?: ((patterns: readonly string[]) => Promise<readonly Ref[]>) | undefined
}

/**
 * The base that was named (`--base`, or the repository's `worktree.base`), else the remote's HEAD, else the default
 * branch. If the remote has the branch too, the remote's is used: a local `main` is as old as the last pull. For the
 * local one, say `refs/heads/main`.
 */
export const findBase = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'log' | 'progress'>,
  codebase: Codebase,
  named?: string,
  options: BaseOptions = {},
): Promise<Base> => {
  const base =
    named === undefined
      ? await usualBase(context, codebase, options)
      : await baseNamed(context, codebase, named, options)
  if (base !== undefined) return base
  await assertCommits(context, codebase, options)
  throw named === undefined ? noUsualBase(codebase) : baseNotFound(codebase, named)
}

/** A fetch younger than `maxAgeMs` is reused; 0: always fetch. */
export type FreshenOptions = CallOptions & { readonly maxAgeMs: number }

/** One shared fetch for concurrent callers. An unreachable remote is a result, not an error. */
export const freshen = async (
  context: IsolationContext,
  codebase: Codebase,
  options: FreshenOptions,
): Promise<Fresh> => {
  if (codebase.remote === undefined) return { outcome: 'no-remote' }
  const asked = context.clock()
  if (isYoung(codebase.fetchedAt, asked, options)) return { outcome: 'fresh' }
  const work = async (): Promise<Fresh> => {
    const stored = (await context.store.codebases.get(codebase.id))?.fetchedAt
    // The previous lock holder may have fetched; a fetch that began after our call has all that we need.
    const shared = stored !== undefined && (stored > asked || isYoung(stored, asked, options))
    return shared ? { outcome: 'fresh' } : fetchNow(context, codebase, options)
  }
  return locked(context, codebase, `fetching ${codebase.name}`, work, options.signal)
}

/** A time in the future means that the clock was set back. */
const isYoung = (fetchedAt: number | undefined, now: number, { maxAgeMs }: FreshenOptions): boolean =>
  fetchedAt !== undefined && fetchedAt <= now && now - fetchedAt < maxAgeMs

const fetchNow = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'clock' | 'progress'>,
  codebase: Codebase,
  { signal }: CallOptions,
): Promise<Fresh> => {
  const remote = codebase.remote ?? 'origin'
  context.progress(`fetching ${codebase.name} from ${remote}`)
  // When it began: it may have missed what was pushed while it ran.
  const began = context.clock()
  let problem: string | undefined
  try {
    const refspecs = [`+refs/heads/*:refs/remotes/${remote}/*`]
    const fetched = await fetchRemote(context.git, repoOf(codebase), { remote, refspecs }, { signal })
    if (fetched.outcome !== 'fetched') return { outcome: 'offline', detail: fetched.detail }
    problem = fetched.problem
  } catch (error) {
    const { code, message } = toAppError(error)
    if (!remoteFaults.has(code)) throw error
    return { outcome: 'offline', detail: message }
  }
  if (problem === undefined || (await isCurrent(context, codebase, remote))) {
    await context.store.codebases.update(codebase.id, { fetchedAt: began })
  }
  return problem === undefined ? { outcome: 'fetched' } : { outcome: 'fetched', detail: problem }
}

/**
 * After a fetch that couldn't update every ref: do the ones we have match the remote? A branch `a` that became `a/b`
 * there can never be fetched, and must not make every later call fetch again.
 */
const isCurrent = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  remote: string,
): Promise<boolean> => {
  const prefix = `refs/remotes/${remote}/`
  try {
    const there = await askRemoteRefs(git, repoOf(codebase), remote)
    const here = await listRefs(git, repoOf(codebase), [prefix])
    return here.every(({ name, sha }) => {
      const at = there.get(`refs/heads/${name.slice(prefix.length)}`)
      return at === undefined || at === sha
    })
  } catch {
    return false
  }
}

/** Errors of an unreachable or refusing remote; not a full disk or a cancelled call. */
const remoteFaults: ReadonlySet<ErrorCode> = new Set(['git-failed', 'remote-unreachable', 'timeout'])

const baseNamed = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  named: string,
  options: BaseOptions,
): Promise<Base | undefined> => {
  const repo = repoOf(codebase)
  const { remote } = codebase
  const candidates = named.startsWith('refs/')
    ? [named]
    : [
        ...(remote === undefined ? [] : [`refs/remotes/${remote}/${named}`]),
        `refs/remotes/${named}`,
        `refs/heads/${named}`,
        `refs/tags/${named}`,
      ]
  const found = firstOf(candidates, await refsOf(git, repo, candidates, options))
  // A branch always names a commit; a tag may not.
  const known = found === undefined || found.name.startsWith('refs/tags/') ? undefined : found.sha
  const sha = known ?? (await resolveCommit(git, repo, found?.name ?? named, options))
  if (sha === undefined) return undefined
  if (found === undefined) return { name: sha.slice(0, 7), ref: sha, sha, branch: undefined }
  return describe(codebase, { ...found, sha })
}

const firstOf = (names: readonly string[], refs: readonly Ref[]): Ref | undefined => {
  const there = new Map(refs.map((ref) => [ref.name, ref]))
  return names.map((name) => there.get(name)).find((ref) => ref !== undefined)
}

const refsOf = (git: Git, repo: Repo, patterns: readonly string[], options: BaseOptions): Promise<readonly Ref[]> =>
  options.list === undefined ? listRefs(git, repo, patterns, options) : options.list(patterns)

/** Uses the ref it resolves to: `main` as a symbolic ref to a worktree's branch is that branch. */
const describe = ({ remote }: Codebase, { name: named, target, sha }: Ref): Base => {
  const ref = target ?? named
  const name = ref.replace(/^refs\/(?:heads|remotes|tags)\//, '')
  if (ref.startsWith('refs/heads/')) return { name, ref, sha, branch: name }
  const tracking = `refs/remotes/${remote ?? ''}/`
  return { name, ref, sha, branch: ref.startsWith(tracking) ? ref.slice(tracking.length) : undefined }
}

const usualBase = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'log' | 'progress'>,
  codebase: Codebase,
  options: BaseOptions,
): Promise<Base | undefined> =>
  (await remoteBase(context, codebase, options)) ?? defaultBase(context, codebase, options)

/** No remote, or its HEAD is unknown and it is unreachable. */
const defaultBase = async (
  context: Pick<IsolationContext, 'store' | 'git'>,
  codebase: Codebase,
  options: BaseOptions,
): Promise<Base | undefined> => {
  const { remembered, candidates } = await defaultBranch(context, codebase)
  const { remote } = codebase
  const refs = (remembered === undefined ? candidates : [remembered, ...candidates]).flatMap((name) => [
    ...(remote === undefined ? [] : [`refs/remotes/${remote}/${name}`]),
    `refs/heads/${name}`,
  ])
  const found = firstOf(refs, await refsOf(context.git, repoOf(codebase), refs, options))
  if (found === undefined) return undefined
  const base = describe(codebase, found)
  // With a remote this is a guess until we ask it.
  if (remote === undefined && base.branch !== remembered) {
    await context.store.codebases.update(codebase.id, { baseBranch: base.branch })
  }
  return base
}

/** Git's record of the remote's HEAD, else the one we stored, else asks the remote once. */
const remoteBase = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'log' | 'progress'>,
  codebase: Codebase,
  options: BaseOptions,
): Promise<Base | undefined> => {
  const { remote } = codebase
  if (remote === undefined) return undefined
  const tracking = `refs/remotes/${remote}/`
  const noted = await notedHead(context, codebase, `${tracking}HEAD`, options)
  const known = noted?.startsWith(tracking) === true ? noted.slice(tracking.length) : codebase.baseBranch
  const base = known && (await tip(context, codebase, known, options))
  if (base) return base
  const asked = await askRemote(context, codebase, remote, options)
  return asked === undefined || asked === known ? undefined : tip(context, codebase, asked, options)
}

const tip = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  branch: string,
  options: BaseOptions,
): Promise<Base | undefined> => {
  const ref = `refs/remotes/${codebase.remote ?? ''}/${branch}`
  const found = (await refsOf(git, repoOf(codebase), [ref], options)).find(({ name }) => name === ref)
  return found && describe(codebase, found)
}

const notedHead = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  ref: string,
  options: CallOptions,
): Promise<string | undefined> => {
  // Missing, or refs are stored in another way: ask git.
  return readSymbolicRefFile(codebase.repoPath, ref) ?? readSymbolicRef(git, repoOf(codebase), ref, options)
}

const askRemote = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'log' | 'progress'>,
  codebase: Codebase,
  remote: string,
  options: CallOptions,
): Promise<string | undefined> => {
  try {
    context.progress(`asking ${remote} for its default branch`)
    const branch = await askRemoteHead(context.git, repoOf(codebase), remote, options)
    if (branch !== undefined) await context.store.codebases.update(codebase.id, { baseBranch: branch })
    return branch
  } catch (error) {
    if (options.signal?.aborted === true) throw error
    context.log.info("the remote didn't report its default branch", { codebase: codebase.name, error })
    return undefined
  }
}

const assertCommits = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  options: CallOptions,
): Promise<void> => {
  const refs = await listRefs(git, repoOf(codebase), ['refs/heads', 'refs/remotes'], options)
  if (refs.length > 0 || (await resolveCommit(git, repoOf(codebase), 'HEAD', options)) !== undefined) return
  throw new AppError('no-commits', `${codebase.name} has no commits yet, so there is nothing to start from`, {
    remedy: remedy`make a first commit (${shell('git commit --allow-empty -m "first"')}) and try again`,
  })
}

export const baseNotFound = (codebase: Codebase, named: string): AppError =>
  new AppError('base-not-found', `no branch, tag or commit ${JSON.stringify(named)} in ${codebase.name}`, {
    remedy: remedy`run ${shell('git branch --all')} for a list; the base is set by --base, worktree.base or ${coppice('codebase add <path> --base <branch>')}`,
  })

const noUsualBase = (codebase: Codebase): AppError =>
  new AppError('base-not-found', `couldn't tell which branch of ${codebase.name} is its default branch`, {
    remedy: remedy`set it with ${shell('git config --global init.defaultBranch <branch>')}, or rename it to main`,
  })
