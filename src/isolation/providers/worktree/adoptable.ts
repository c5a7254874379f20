import { lstat } from 'node:fs/promises'
import { branchNameProblem, toBranchName } from '../../../domain/names.ts'
import { branchForWork, toWork } from '../../../domain/work.ts'
import type { Codebase } from '../../../domain/environment.ts'
import { type AdminDir, readAdminDirs } from '../../../git/admin-dir.ts'
import { readSymbolicRefFile } from '../../../git/symbolic-ref-file.ts'
import type { IsolationContext } from '../../context.ts'
import { environmentAt } from '../../moved.ts'
import { isCopied } from '../../codebases/copied-records.ts'
import { pathCandidates, prepareRoot } from '../../paths.ts'
import type { Adoptable } from '../../provider.ts'
import type { ResolveRequest } from '../../resolve/resolution.ts'
import { repoOf } from '../../codebases/repo-of.ts'

/**
 * A linked worktree of this very repository, at the path the new one would get, on the PR's branch or on the suggested
 * one (exact, then treating `/` and `-` as equal). The main working tree has no record and is never found.
 */
export const findAdoptable = async (
  context: IsolationContext,
  request: ResolveRequest,
): Promise<Adoptable | undefined> => {
  const { codebase } = request
  const records = (await readAdminDirs(repoOf(codebase).commonDir)).filter(hasBranch)
  if (records.length === 0) return undefined
  const wanted = await wantedPath(context, request)
  const onItsBranch = onBranch(records, request)
  for (const record of [...records.filter((r) => r.worktreePath === wanted), ...onItsBranch]) {
    const path = record.worktreePath
    if (path === undefined || !(await isDirectory(path)) || (await isCopied(record))) continue
    const environment =
      (await context.store.environments.liveByPath(context.host, path)) ??
      (await environmentAt(context, codebase, path))
    if (environment === undefined) return { kind: 'untracked', path }
    // Found by path alone, it is another work's (`feature/x` beside `feature-x`); on the PR's branch it is shared.
    if (onItsBranch.includes(record) && environment.codebaseId === codebase.id)
      return { kind: 'environment', environment }
  }
  return undefined
}

type OnBranch = AdminDir & { readonly head: { readonly branch: string } }
const hasBranch = (record: AdminDir): record is OnBranch => record.head !== undefined && 'branch' in record.head

const onBranch = (records: readonly OnBranch[], { codebase, work, hints }: ResolveRequest): OnBranch[] => {
  if (hints.isForkPR === true || work.type === 'review') return []
  const prBranch = work.type === 'pr' ? hints.prBranch : undefined
  const suggested = isBase(codebase, hints.suggestedBranch) ? undefined : hints.suggestedBranch
  const names = [prBranch, suggested].filter((name) => name !== undefined)
  const exact = names.flatMap((name) => records.filter((record) => record.head.branch === name))
  const alike = names.flatMap((name) => records.filter((record) => flat(record.head.branch) === flat(name)))
  return [...exact, ...alike]
}

/** A pull request from base to a release branch may close an issue; the issue isn't worked on in a checkout of base. */
const isBase = ({ repoPath, remote, baseBranch, base }: Codebase, name: string | undefined): boolean => {
  const tracking = `refs/remotes/${remote}/`
  const noted = remote === undefined ? undefined : readSymbolicRefFile(repoPath, `${tracking}HEAD`)
  return name !== undefined && [baseBranch, base, noted?.slice(tracking.length)].includes(name)
}

const flat = (branch: string): string => branch.replaceAll('/', '-')

const wantedPath = async (
  context: Pick<IsolationContext, 'clock' | 'host' | 'worktreesBase'>,
  request: ResolveRequest,
): Promise<string | undefined> => {
  const { work, hints, codebase } = request
  const root = await prepareRoot(context.worktreesBase, codebase.name, context.host)
  const own = work.type === 'pr' && hints.isForkPR !== true ? hints.prBranch : undefined
  if (own !== undefined && branchNameProblem(own) !== undefined) return undefined
  // A fork's PR and a PR of unknown branch get a review's tree.
  const named = work.type === 'pr' && own === undefined ? toWork('review', work.id) : work
  const branch = request.branch ?? (own === undefined ? branchForWork(named, context.clock()) : toBranchName(own))
  return pathCandidates(root, codebase.name, branch)[0]
}

const isDirectory = (path: string): Promise<boolean> =>
  lstat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
