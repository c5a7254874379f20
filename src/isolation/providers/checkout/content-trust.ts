import { basename, join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { isAppError } from '../../../domain/errors.ts'
import type { BranchName, Sha } from '../../../domain/names.ts'
import type { RestoreContents, RestorePoint } from '../../../domain/removal/restore-point.ts'
import type { Doubt, Trust } from '../../../domain/trust.ts'
import { readToken } from '../../../git/admin-dir.ts'
import { type ReflogEntry, branchReflog, headReflog } from '../../../git/reflog.ts'
import { lastValue } from '../../../git/config-entries.ts'
import type { CallOptions } from '../../../git/door.ts'
import { commitsOutside } from '../../../git/reachable.ts'
import { askRemoteRefs } from '../../../git/remote-refs.ts'
import { baseAndConfig } from '../../codebases/base-and-config.ts'
import type { IsolationContext } from '../../context.ts'
import { restorePointsOf } from '../../restore-points.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import { restoreDirectory } from '../../restore-points.ts'

export type Content = {
  readonly tip: Sha
  /** The local branch that holds it, if any. */
  readonly branch: BranchName | undefined
  /** Git's record of the worktree where it is checked out, if any. */
  readonly gitDir?: string | undefined
}

export type ContentTrust = {
  readonly trust: Exclude<Trust, 'vouched' | 'lapsed'>
  /** Why it isn't proven. */
  readonly doubt: Doubt | undefined
}

/**
 * Whether commits come from the repository's own people. Proof: they are in base, were committed here, or are on a
 * branch of our remote. Cheap checks come first; the remote is asked only if they leave a doubt.
 */
export const contentTrust = async (
  context: IsolationContext,
  codebase: Codebase,
  content: Content,
  options: CallOptions = {},
): Promise<ContentTrust> => {
  const elsewhere = await followsElsewhere(context, codebase, content.branch)
  if (elsewhere !== undefined) return unproven(elsewhere)
  const earlier = await lastRemoved(context, codebase, content.branch)
  // Restarting a work doesn't change the origin of what it had when it was removed.
  const before = earlier?.environment.trust === 'own' ? earlier.tip : undefined
  if (before === content.tip) return own
  const { base } = await baseAndConfig(context, codebase)
  const repo = repoOf(codebase)
  const outside = (known: readonly Sha[]): Promise<Sha[]> =>
    commitsOutside(context.git, repo, content.tip, known, { ...options, limit: mostCommits })
  const all = await outside([base.sha])
  if (all.length === 0) return own
  // Only with what it had on top: an older commit may have what a later one removed.
  const ours = before !== undefined && all.includes(before) ? [base.sha, before] : [base.sha]
  const left = ours.length === 1 ? all : await outside(ours)
  // A commit made in an untrusted worktree may contain a stranger's work.
  const made =
    earlier !== undefined && earlier.environment.trust !== 'own'
      ? new Set<Sha>()
      : await madeHere(context, codebase, content)
  if (left.length < mostCommits && left.every((sha) => made.has(sha))) return own
  const heads = await remoteHeads(context, codebase, options)
  if (heads === undefined) {
    return unproven({ kind: 'remote-silent', remote: codebase.remote ?? 'a remote', ...foreignIn(left, made) })
  }
  const rest = await outside([...ours, ...heads])
  if (rest.length < mostCommits && rest.every((sha) => made.has(sha))) return own
  return unproven({ kind: 'foreign-commits', ...foreignIn(rest, made) })
}

const own: ContentTrust = { trust: 'own', doubt: undefined }
const unproven = (doubt: Doubt): ContentTrust => ({ trust: 'unproven', doubt })

/** Branches with more commits of their own aren't walked. */
export const mostCommits = 2_000

const foreignIn = (commits: readonly Sha[], made: ReadonlySet<Sha>): { commits: number; first: string } => {
  const foreign = commits.filter((sha) => !made.has(sha))
  return { commits: foreign.length, first: foreign[0] ?? '' }
}

/** After `gh pr checkout` of a fork, the branch follows `refs/pull/…`, or pulls from or pushes to elsewhere. */
const followsElsewhere = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  branch: BranchName | undefined,
): Promise<Doubt | undefined> => {
  if (branch === undefined) return undefined
  const entries = await git.config(repoOf(codebase))
  const merge = lastValue(entries, `branch.${branch}.merge`)
  if (merge !== undefined && !merge.startsWith('refs/heads/')) return { kind: 'follows-ref', branch, ref: merge }
  for (const key of ['remote', 'pushremote']) {
    const remote = lastValue(entries, `branch.${branch}.${key}`)
    if (remote !== undefined && remote !== '.' && remote !== codebase.remote) {
      return { kind: key === 'remote' ? 'follows-elsewhere' : 'pushes-elsewhere', branch }
    }
  }
  return undefined
}

/** The newest removed environment on this branch. Restore points outlive the codebase's registration, rows don't. */
const lastRemoved = async (
  context: IsolationContext,
  codebase: Codebase,
  branch: BranchName | undefined,
): Promise<Pick<RestoreContents, 'environment' | 'tip'> | undefined> => {
  if (branch === undefined) return undefined
  const points = await restorePointsOf(context, codebase)
  const point = points.find(({ contents }) => contents.environment.branch === branch)?.contents
  const row = await context.store.environments.lastRemoved(codebase.id, branch)
  if (row === undefined || (point !== undefined && point.environment.createdAt >= row.createdAt)) return point
  return { environment: row, tip: row.removedTip }
}

/** The remote's current branch tips; undefined when it doesn't answer, empty without a remote. */
const remoteHeads = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  options: CallOptions,
): Promise<readonly Sha[] | undefined> => {
  if (codebase.remote === undefined) return []
  try {
    const refs = await askRemoteRefs(git, repoOf(codebase), codebase.remote, { ...options, only: ['refs/heads/*'] })
    return [...refs.values()]
  } catch (error) {
    if (!isAppError(error, 'remote-unreachable')) throw error
    return undefined
  }
}

/**
 * Commits made in this repository, according to its reflogs. A branch's reflog doesn't name the worktree, so once there
 * has been one that isn't our own, only the HEAD reflogs of our own count. A vouched one isn't: its reflogs also have
 * what untrusted runs did before.
 */
const madeHere = async (
  context: IsolationContext,
  codebase: Codebase,
  { branch, gitDir }: Content,
): Promise<ReadonlySet<Sha>> => {
  const repo = repoOf(codebase)
  const points = await restorePointsOf(context, codebase)
  const strangers = [
    ...(await context.store.environments.notOwn(codebase.id)),
    // These outlive the codebase's registration.
    ...points.map(({ contents }) => contents.environment).filter(({ trust }) => trust !== 'own'),
  ]
  const isStrange = strangers.some(({ adminName }) => gitDir !== undefined && adminName === basename(gitDir))
  const logs = [
    ...(strangers.length > 0 ? await movesInOwn(context, codebase, points, strangers) : []),
    ...(strangers.length > 0 || branch === undefined ? [] : [await branchReflog(repo, branch)]),
    await headReflog(repo.commonDir),
    ...(gitDir === undefined || isStrange ? [] : [await headReflog(gitDir)]),
  ]
  return commitsIn(logs)
}

/** An amended commit counts if what it amends was made here too, so the order matters. */
export const commitsIn = (logs: readonly (readonly ReflogEntry[])[]): ReadonlySet<Sha> => {
  const made = new Set<Sha>()
  for (const moves of logs) for (const move of moves) if (isCommit(move, made)) made.add(move.to)
  return made
}

/** HEAD's moves in every worktree of our own, including those that can still be restored. */
const movesInOwn = async (
  context: Pick<IsolationContext, 'store' | 'host' | 'home'>,
  codebase: Codebase,
  points: readonly RestorePoint[],
  strangers: readonly IsolatedEnvironment[],
): Promise<ReflogEntry[][]> => {
  const { store, host } = context
  const isOurs = (environment: IsolatedEnvironment): boolean => environment.host === host && environment.trust === 'own'
  const live = (await store.environments.live(codebase.id)).filter(isOurs)
  const removed = points
    .filter(({ contents }) => isOurs(contents.environment))
    .map(async ({ id }) => headReflog(join(restoreDirectory(context, id), 'admin')))
  const present = live.map(async (environment) => {
    const record = await recordOf(codebase, environment, strangers)
    return record === undefined ? [] : headReflog(record)
  })
  // An unreadable reflog proves nothing.
  return Promise.all([...removed, ...present].map((moves) => moves.catch(() => [])))
}

/** Git's record of the environment, unless another worktree now has its name. Adopted ones may have no token. */
const recordOf = async (
  codebase: Codebase,
  { id, adminName, owned }: IsolatedEnvironment,
  strangers: readonly IsolatedEnvironment[],
): Promise<string | undefined> => {
  if (adminName === undefined) return undefined
  const record = join(codebase.repoPath, 'worktrees', adminName)
  const token = await readToken(record)
  if (token === id) return record
  const isAdopted = !owned && token === undefined && strangers.every((stranger) => stranger.adminName !== adminName)
  return isAdopted ? record : undefined
}

/**
 * A rebase, cherry-pick or `git am` may replay someone else's work, and an amended commit keeps what it amends: those
 * prove nothing by themselves.
 */
const isCommit = (move: ReflogEntry, made: ReadonlySet<Sha>): move is ReflogEntry & { readonly to: Sha } => {
  const { from, to, message } = move
  if (to === undefined) return false
  if (message.startsWith('commit (amend):')) return from !== undefined && made.has(from)
  return /^(?:commit(?: \((?:initial|merge)\))?|revert):/.test(message) || mergeMade.test(message)
}

/**
 * The reflog message of `git merge` and a merging `git pull`. A replayed commit's own subject follows the colon, and a
 * stranger may imitate this: `cherry-pick: …`, or `pull --rebase (pick): …`, hence no parentheses.
 */
const mergeMade = /^(?:merge|pull)(?: [^:()]*)?: Merge made by the '[\w-]+' strategy\.?$/
