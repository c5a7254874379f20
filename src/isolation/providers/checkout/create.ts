import { resolve } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { AppError } from '../../../domain/errors.ts'
import { toEnvironmentId } from '../../../domain/names.ts'
import type { Notice } from '../../../domain/notice.ts'
import { aliasesFor, isTrusted } from '../../../domain/trust.ts'
import { withChild } from '../../children.ts'
import type { IsolationContext } from '../../context.ts'
import { locked } from '../../lock/locked.ts'
import { isInside, prepareRoot } from '../../paths.ts'
import type { Created, Existing, CreateRequest, LimitReached } from '../../provider.ts'
import { replaceMissing } from '../../resolve/replace-missing.ts'
import { waitForOperation } from '../../wait-for-operation.ts'
import type { RepoConfig } from '../../../domain/config/repository.ts'
import { provisionEnvironment } from './provision/provision.ts'
import { activate, choosePath, createTree, undoFailed } from './creation-steps.ts'
import type { CreatedTree, Creation } from './kind.ts'
import { type Plan, planCreation } from './plan.ts'
import type { CheckoutKind } from './kind.ts'
import { coppice, remedy } from '../../../domain/remedy.ts'

/**
 * Decide → row and intent → git → copy, link, setup → active. Only git's part holds the repository's lock: a setup
 * script may take minutes, and others must not wait for it.
 */
export const createEnvironment = async (
  context: IsolationContext,
  checkout: CheckoutKind,
  request: CreateRequest,
): Promise<Created | Existing | LimitReached> => {
  const { codebase, signal } = request
  // Before creating anything there; again by its real path.
  assertOutside(codebase, resolve(context.worktreesBase))
  const root = await prepareRoot(context.worktreesBase, codebase.name, context.host)
  assertOutside(codebase, root)
  const purpose = `creating a worktree for ${request.work.type} ${request.work.id}`
  const start = (): ReturnType<typeof begin> =>
    locked(context, codebase, purpose, () => begin(context, checkout, request, root), signal)
  const recovered: Notice[] = []
  let begun = await start()
  // Another process is creating or removing this work's environment: wait without the lock.
  while ('outcome' in begun && begun.outcome === 'under-way') {
    await waitForOperation(context, codebase, begun.environment, { signal, tell: (notice) => recovered.push(notice) })
    begun = await start()
  }
  if ('outcome' in begun) return begun.outcome === 'existing' ? { ...begun, notices: recovered } : begun
  const { creation, made, config } = begun
  try {
    const dressed = await withChild(context, made.entry.id, {}, (onSpawn) =>
      provisionEnvironment(context, {
        codebase,
        environment: creation.environment,
        tree: made.tree,
        config,
        onSpawn,
        ...(signal === undefined ? {} : { signal }),
      }),
    )
    await context.failpoint('create.dressed')
    const environment = await activate(creation, made)
    return {
      outcome: 'created',
      environment,
      fromSpare: made.fromSpare,
      notices: [...recovered, ...creation.plan.notices, ...doubtNotice(creation), ...dressed.notices],
    }
  } catch (error) {
    throw await undoFailed(creation, made, error)
  }
}

/** Why something not declared a fork is treated like one, and how a person can vouch for it. */
const doubtNotice = ({ plan: { trust, doubt, branch, prNumber } }: Creation): Notice[] =>
  isTrusted(trust) || doubt === undefined ? [] : [{ kind: 'treated-as-fork', branch, prNumber, doubt }]

/** Inside the checkout, every environment would be untracked files; inside the git directory, worse. */
const assertOutside = ({ repoPath, checkoutPath, name }: Codebase, root: string): void => {
  const holder = [checkoutPath, repoPath].find((path) => path !== undefined && isInside(path, root))
  if (holder === undefined) return
  throw new AppError('path-outside-root', `worktrees of ${name} can't be inside the repository itself (${root})`, {
    remedy: 'choose another WORKTREE_BASE',
  })
}

type UnderWay = { readonly outcome: 'under-way'; readonly environment: IsolatedEnvironment }
type Begun = { readonly creation: Creation; readonly made: CreatedTree; readonly config: RepoConfig }

const begin = async (
  context: IsolationContext,
  checkout: CheckoutKind,
  request: CreateRequest,
  root: string,
): Promise<Begun | Existing | LimitReached | UnderWay> => {
  const { codebase, work } = request
  const existing = await context.store.environments.liveByWork(codebase.id, work)
  // A missing one is replaced, and its branch is used as is.
  if (existing !== undefined && existing.status !== 'missing') return alreadyThere(existing)
  const replaced = existing && (await replaceMissing(context, codebase, existing))
  if (replaced?.outcome === 'back') return { outcome: 'existing', environment: replaced.environment }
  const notices = replaced?.notices ?? []
  const { config } = request
  const planned = await planCreation(context, request)
  const plan = { ...planned, notices: [...notices, ...planned.notices] }
  const path = await choosePath(context, codebase, root, plan)
  const creation: Creation = {
    context,
    codebase,
    checkout,
    kind: 'create',
    environment: newEnvironment(context, checkout, request, plan, path),
    plan,
    aliases: aliasesFor(plan.trust, work, request.aliases),
    limit: context.settings.worktreesPerCodebase,
    useSpare: true,
    whileWriting: request.whileWriting,
    signal: request.signal,
  }
  const made = await createTree(creation)
  if (!('outcome' in made)) return { creation, made, config }
  if (made.outcome === 'limit') {
    return { outcome: 'limit', active: made.active, limit: context.settings.worktreesPerCodebase }
  }
  throw new AppError('branch-in-use', `another worktree has the same ${made.on} as ${plan.branch}`, {
    remedy: remedy`run ${coppice('worktree list')} to see it`,
  })
}

const alreadyThere = (environment: IsolatedEnvironment): Existing | UnderWay =>
  environment.status === 'active' ? { outcome: 'existing', environment } : { outcome: 'under-way', environment }

const newEnvironment = (
  context: Pick<IsolationContext, 'clock' | 'ids' | 'host'>,
  { name }: CheckoutKind,
  { codebase, work, createdBy, base, persistent }: CreateRequest,
  plan: Plan,
  path: string,
): IsolatedEnvironment => ({
  id: toEnvironmentId(context.ids()),
  host: context.host,
  codebaseId: codebase.id,
  work,
  provider: name,
  path,
  branch: plan.branch,
  branchOrigin: plan.origin,
  status: 'creating',
  owned: true,
  createdBy,
  createdAt: context.clock(),
  lastActivityAt: context.clock(),
  startSha: plan.start,
  adminName: undefined,
  baseBranch: base.branch,
  trust: plan.trust,
  prNumber: plan.prNumber,
  prBranch: plan.prBranch,
  ...(persistent === true && { persistent }),
})
