import { join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../src/domain/environment.ts'
import type { IsolationHints } from '../../src/domain/hints.ts'
import { sameWork, type Work, toWork } from '../../src/domain/work.ts'
import { addClone, recoverRepositoryClones } from '../../src/isolation/codebases/clone-repository.ts'
import type { IsolationContext } from '../../src/isolation/context.ts'
import { acquireLease } from '../../src/isolation/lease.ts'
import { reconcile } from '../../src/isolation/reconcile.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { keepSpares } from '../../src/isolation/providers/worktree/spare.ts'
import { said } from '../helpers/words.ts'

export type Operation = (context: IsolationContext, codebase: Codebase) => Promise<unknown>

const issue = (n: number): Work => toWork('issue', String(n))

const create =
  (work: Work, hints: IsolationHints = {}): Operation =>
  async (context, codebase) => {
    const request = { codebase, work, hints, createdBy: 'test', aliases: [toWork('task', 'alias')] }
    const made = await createEnvironments(context).create(request)
    if (made.outcome === 'limit') throw new Error('the limit is reached')
    return made.environment
  }

/** An environment for this issue. */
export const createIssue = (n: number): Operation => create(issue(n))

const remove =
  (work: Work, force: boolean): Operation =>
  async (context, codebase) => {
    const environment = await context.store.environments.liveByWork(codebase.id, work)
    if (environment === undefined) {
      const [point] = await context.store.restorePoints.list(codebase.id)
      const last = point && (await context.store.environments.get(point.environmentId))
      if (last?.status === 'removed' && sameWork(last.work, work)) return last
      throw new Error('it is neither there nor removed')
    }
    const removed = await createEnvironments(context).destroy(environment, { trigger: 'command', force })
    if (removed.outcome !== 'removed') throw new Error(`not removed: ${JSON.stringify(removed)}`)
    return removed.environment
  }

const restore: Operation = async (context, codebase) => {
  const live = await context.store.environments.liveByWork(codebase.id, issue(5))
  if (live?.status === 'active') return live
  const [point] = await context.store.restorePoints.list(codebase.id)
  if (point === undefined) throw new Error('there is nothing to restore')
  return (await createEnvironments(context).restore(point)).environment
}

/** All that happens at the next start. Answers what had to be left, and why. */
export const recover = async (context: IsolationContext, codebase: Codebase): Promise<string[]> => {
  const clones = await recoverRepositoryClones(context)
  const { left } = await reconcile(context, codebase)
  return said([...clones.left, ...left])
}

/** Done in the killed process and in the recovering one alike; each finds its subject by name. */
export const operations = {
  'create-fresh': create(issue(1)),
  'create-existing': create(issue(2)),
  'create-fork-pr': create(toWork('pr', '7'), { isForkPR: true }),
  'create-own-pr': create(toWork('pr', '8'), { prBranch: 'feature' }),
  'remove-clean': remove(issue(5), false),
  'remove-forced': remove(issue(5), true),
  'take-up-again': create(issue(5)),
  restore,
  clone: (context) => addClone(context, join(context.home, '..', 'origin.git'), { name: 'cloned' }),
  spare: (context, codebase) => keepSpares(context, codebase),
  adopt: (context, codebase) =>
    createEnvironments(context).adopt(codebase, join(context.worktreesBase, '..', 'theirs'), {
      createdBy: 'test',
      aliases: [issue(9)],
    }),
  lease: async (context, codebase) => {
    const environment: IsolatedEnvironment | undefined = await context.store.environments.liveByWork(
      codebase.id,
      issue(5),
    )
    if (environment === undefined) throw new Error('there is nothing to lease')
    const lease = await acquireLease(context, codebase, environment, { purpose: 'a run' })
    await lease.release()
  },
  reconcile: async (context, codebase) => {
    const left = await recover(context, codebase)
    if (left.length > 0) throw new Error(`left: ${left.join('; ')}`)
  },
} satisfies Record<string, Operation>

export type OperationName = keyof typeof operations
