import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { type BranchName, toBranchName } from '../../domain/names.ts'
import type { IsolationContext } from '../context.ts'
import type { Identified, RecallRequest } from '../provider.ts'

/** Rebuilds the row of a checkout. What only the database knew stays unknown. */
export const recalledRow = (
  { host, clock }: Pick<IsolationContext, 'host' | 'clock'>,
  codebase: Codebase,
  { id, tree }: Identified,
  { work, createdBy }: RecallRequest,
  {
    branch: head,
    ...own
  }: Pick<IsolatedEnvironment, 'provider' | 'adminName'> & { readonly branch: string | undefined },
): IsolatedEnvironment => {
  if (head === undefined) throw new AppError('not-adoptable', `${tree.path} has no branch checked out`)
  const branch = toBranchName(head)
  const now = clock()
  return {
    id,
    host,
    codebaseId: codebase.id,
    work,
    ...own,
    path: tree.path,
    branch,
    branchOrigin: isNamedAfter(branch, work) ? 'created' : 'existing',
    status: 'active',
    owned: true,
    createdBy,
    createdAt: now,
    lastActivityAt: now,
    startSha: undefined,
    baseBranch: undefined,
    trust: 'own',
    prNumber: undefined,
    prBranch: undefined,
  }
}

/** Only Coppice names branches like this, so the branch was created with the environment. */
const isNamedAfter = (branch: BranchName, work: RecallRequest['work']): boolean =>
  work.type === 'agent' && branch.startsWith(`agent/${work.id}-`)

/** Inserts it, unless a live one has its work, branch or path. */
export const insertRecalled = (
  { store }: Pick<IsolationContext, 'store'>,
  environment: IsolatedEnvironment,
  { record }: RecallRequest,
): Promise<IsolatedEnvironment> =>
  store.transaction(async (inside) => {
    const inserted = await inside.environments.insert(environment, undefined)
    if (inserted.outcome !== 'inserted') {
      throw new AppError('not-adoptable', `another worktree has the work, branch or path of ${environment.branch}`)
    }
    await record?.(inside, environment)
    return environment
  })
