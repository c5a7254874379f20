import { basename, join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { isAppError } from '../../../domain/errors.ts'
import type { BranchName, Sha } from '../../../domain/names.ts'
import type { RestoreContents, RestorePoint } from '../../../domain/removal/restore-point.ts'
import { type Doubt, isTrusted, type Trust } from '../../../domain/trust.ts'
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
  /** The local branch that holds it, if it is one. */
  readonly branch: BranchName | undefined
  /** Git's record of the worktree that it is checked out in, if it is. */
  readonly gitDir?: string | undefined
}

export type ContentTrust = {
  readonly trust: Exclude<Trust, 'vouched'>
  /** Why it is not proven. */
  readonly doubt: Doubt | undefined
}

/**
 * Whether commits come from the repository's own people. Proof is: they are in base, they were committed here, or they
 * are on a branch of our remote. The cheap questions come first; the remote is asked only if they leave a doubt.
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
  // Taking a work up again changes nothing about where it comes from, as long as its branch has not moved meanwhile.
  if (earlier?.environment.trust === 'own' && earlier.tip === content.tip) return own
  const { base } = await baseAndConfig(context, codebase)
  const repo = repoOf(codebase)
  const outside = (known: readonly Sha[]): Promise<Sha[]> =>
    commitsOutside(context.git, repo, content.tip, known, { ...options, limit: mostCommits })
  const left = await outside([base.sha])
  if (left.length === 0) return own
  // What was committed in an unproven worktree may be a stranger's work in one commit of ours.
  const made = earlier?.environment.trust === 'unproven' ? new Set<Sha>() : await madeHere(context, codebase, content)
  if (left.length < mostCommits && left.every((sha) => made.has(sha))) return own
  const heads = await remoteHeads(context, codebase, options)
  if (heads === undefined) {
    return unproven({ kind: 'remote-silent', remote: codebase.remote ?? 'a remote', ...foreignIn(left, made) })
  }
  const rest = await outside([base.sha, ...heads])
  if (rest.length < mostCommits && rest.every((sha) => made.has(sha))) return own
  return unproven({ kind: 'foreign-commits', ...foreignIn(rest, made) })
}

const own: ContentTrust = { trust: 'own', doubt: undefined }
const unproven = (doubt: Doubt): ContentTrust => ({ trust: 'unproven', doubt })

/** A branch with more commits of its own than this is not walked. */
const mostCommits = 2_000

const foreignIn = (commits: readonly Sha[], made: ReadonlySet<Sha>): { commits: number; first: string } => {
  const foreign = commits.filter((sha) => !made.has(sha))
  return { commits: foreign.length, first: foreign[0] ?? '' }
}

/** `gh pr checkout` of a fork leaves its mark: the branch follows `refs/pull/…`, or pulls from or pushes to elsewhere. */
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

/** The newest removed environment on this branch, while it can be restored. */
const lastRemoved = async (
  context: IsolationContext,
  codebase: Codebase,
  branch: BranchName | undefined,
): Promise<RestoreContents | undefined> => {
  if (branch === undefined) return undefined
  const points = await restorePointsOf(context, codebase)
  return points.find(({ contents }) => contents.environment.branch === branch)?.contents
}

/** What the remote has as branches now; undefined when it does not answer. Without a remote there are none. */
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
 * Commits that somebody committed in this repository, as its reflogs tell. A branch's reflog does not say in which
 * worktree: once there has been an unproven one, only the HEAD reflogs of trusted worktrees count.
 */
const madeHere = async (
  context: IsolationContext,
  codebase: Codebase,
  { branch, gitDir }: Content,
): Promise<ReadonlySet<Sha>> => {
  const repo = repoOf(codebase)
  const points = await restorePointsOf(context, codebase)
  const strangers = [
    ...(await context.store.environments.unproven(codebase.id)),
    // These outlive the codebase's registration.
    ...points.map(({ contents }) => contents.environment).filter(({ trust }) => !isTrusted(trust)),
  ]
  const isStrange = strangers.some(({ adminName }) => gitDir !== undefined && adminName === basename(gitDir))
  const logs = [
    ...(strangers.length > 0 ? await trustedMoves(context, codebase, points, strangers) : []),
    ...(strangers.length > 0 || branch === undefined ? [] : [await branchReflog(repo, branch)]),
    await headReflog(repo.commonDir),
    ...(gitDir === undefined || isStrange ? [] : [await headReflog(gitDir)]),
  ]
  const made = new Set<Sha>()
  for (const moves of logs) for (const move of moves) if (isCommit(move, made)) made.add(move.to)
  return made
}

/** Where HEAD went in every trusted worktree, those included that can still be restored. */
const trustedMoves = async (
  context: Pick<IsolationContext, 'store' | 'host' | 'home'>,
  codebase: Codebase,
  points: readonly RestorePoint[],
  strangers: readonly IsolatedEnvironment[],
): Promise<ReflogEntry[][]> => {
  const { store, host } = context
  const isOurs = (environment: IsolatedEnvironment): boolean =>
    environment.host === host && isTrusted(environment.trust)
  const live = (await store.environments.live(codebase.id)).filter(isOurs)
  const removed = points
    .filter(({ contents }) => isOurs(contents.environment))
    .map(async ({ id }) => headReflog(join(restoreDirectory(context, id), 'admin')))
  const present = live.map(async (environment) => {
    const record = await recordOf(codebase, environment, strangers)
    return record === undefined ? [] : headReflog(record)
  })
  // A reflog that cannot be read proves nothing.
  return Promise.all([...removed, ...present].map((moves) => moves.catch(() => [])))
}

/** Git's record of the environment, unless another worktree has got its name. An adopted one may have no token. */
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
 * A rebase, a cherry-pick or `git am` replays what somebody else may have written, and an amended commit keeps what it
 * amends: those prove nothing by themselves.
 */
const isCommit = (move: ReflogEntry, made: ReadonlySet<Sha>): move is ReflogEntry & { readonly to: Sha } => {
  const { from, to, message } = move
  if (to === undefined) return false
  if (message.startsWith('commit (amend):')) return from !== undefined && made.has(from)
  return /^(?:commit(?: \((?:initial|merge)\))?|revert):/.test(message) || mergeMade.test(message)
}

/**
 * What `git merge` and a merging `git pull` say. After the colon a replayed commit has its own subject, which a stranger
 * may have worded like this: `cherry-pick: …`, or `pull --rebase (pick): …`, hence no parentheses.
 */
const mergeMade = /^(?:merge|pull)(?: [^:()]*)?: Merge made by the '[\w-]+' strategy\.?$/
