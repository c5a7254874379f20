import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import type { RestorePoint } from '../../src/domain/removal/restore-point.ts'
import { branchForWork, sameWork, workLabel } from '../../src/domain/work.ts'
import { expected } from './expected.ts'
import { branchTips } from './questions.ts'
import { type Real, prBranch } from './real.ts'
import { contentDifference, difference, filesOf, takeSnapshot } from './snapshot.ts'
import type { Standing } from './standings.ts'
import { type Environment, type Model, type Point, branchMayGo } from './state.ts'

/** What the operation that just ran was allowed to do. Everything else that happened is a broken promise. */
export type Allowed = {
  readonly remove?: (environment: Environment, standing: Standing | undefined) => boolean
  readonly release?: (environment: Environment) => boolean
  readonly create?: boolean
  readonly adopt?: boolean
  readonly restore?: Point
  /** `perhaps`: it may have died before that. */
  readonly expire?: 'all' | 'perhaps'
  /** How the works stood before it ran. */
  readonly standings: ReadonlyMap<string, Standing>
}

/** Takes over what an operation did, if it was allowed to do it and did it well. */
export const absorb = async (model: Model, real: Real, allowed: Allowed): Promise<void> => {
  const { store } = real.context
  const tips = branchTips(real)
  const rows = new Map((await store.environments.live(real.world.codebase.id)).map((row) => [row.id as string, row]))
  const points = await store.restorePoints.list(real.world.codebase.id)
  for (const [id, { expiresAt }] of allowed.expire === undefined ? [] : model.points) {
    const stays = allowed.expire === 'perhaps' && points.some((point) => point.id === id)
    if (expiresAt <= model.now && !stays) model.points.delete(id)
  }
  for (const environment of model.environments.values()) {
    if (!rows.has(environment.id)) await absorbRemoval(model, real, environment, allowed, tips, points)
  }
  for (const row of rows.values()) {
    const known = model.environments.get(row.id)
    if (known === undefined) absorbCreation(model, real, row, allowed, tips)
  }
  for (const environment of model.environments.values()) {
    environment.aliases = await store.environments.aliases(rows.get(environment.id)?.id ?? neverId(environment))
  }
}

const neverId = (environment: Environment): never => {
  throw new Error(`no row of ${environment.branch}`)
}

const absorbRemoval = async (
  model: Model,
  real: Real,
  environment: Environment,
  allowed: Allowed,
  tips: ReadonlyMap<string, string>,
  points: readonly RestorePoint[],
): Promise<void> => {
  const { id, branch, owned, away } = environment
  const row = await real.context.store.environments.get(environment.id as IsolatedEnvironment['id'])
  model.environments.delete(id)
  for (const conversation of model.conversations.values()) {
    if (conversation.environment === id) conversation.environment = undefined
  }
  if (row?.status === 'released') {
    expected(!owned, `${branch} is Coppice's own and was let go of`)
    expected(allowed.release?.(environment) === true, `${branch} was let go of unasked`)
    return
  }
  expected(row?.status === 'removed', `${branch} has status ${row?.status ?? 'none'}`)
  expected(owned, `G6: the adopted ${branch} was removed`)
  expected(
    allowed.remove?.(environment, allowed.standings.get(id)) === true,
    `G1/G5: ${branch} was removed, and should not have been`,
  )
  real.counts.removed += 1
  const point = points.find(
    ({ environmentId, id: pointId }) => environmentId === environment.id && !model.points.has(pointId),
  )
  if (point === undefined) throw new Error(`G1: ${branch} was removed without a restore point`)
  model.points.set(point.id, {
    environment,
    expiresAt: model.now + 30 * 24 * 60 * 60 * 1000,
    missing: away !== undefined,
  })
  if (away !== undefined) model.leftovers.set(away, filesOf(away))
  const gone = !tips.has(branch)
  const may = branchMayGo(environment, allowed.standings.get(id)?.merged ?? 'unknown')
  expected(
    may.includes(gone),
    `branch ${branch} (${allowed.standings.get(id)?.merged}, ${environment.origin}) was ${gone ? 'deleted' : 'kept'}`,
  )
  const tip = model.branches.get(branch) ?? ''
  const elsewhere = allowed.standings.get(id)?.merged !== 'untouched' || [...model.origin.values()].includes(tip)
  expected(!gone || elsewhere, `G1: branch ${branch} was deleted, and origin does not have ${tip}`)
  if (gone) model.branches.delete(branch)
}

const absorbCreation = (
  model: Model,
  real: Real,
  row: IsolatedEnvironment,
  allowed: Allowed,
  tips: ReadonlyMap<string, string>,
): void => {
  const { id, path, branch, owned, work } = row
  expected(row.status === 'active', `the new ${branch} is ${row.status}`)
  const snapshot = takeSnapshot(real.git, path)
  const stranger = model.strangers.get(path)
  const plainly = {
    id,
    work,
    aliases: [],
    path,
    branch,
    lost: [],
    away: undefined,
    inUse: false,
    persistent: false,
    lastActivityAt: model.now,
  }
  if (stranger !== undefined) {
    expected(allowed.adopt === true && !owned, `${path} was adopted unasked`)
    expected(branch === stranger.branch, `the adopted ${path} is on ${stranger.branch}, recorded as ${branch}`)
    model.environments.set(id, { ...plainly, owned: false, origin: 'existing', plain: false, own: false, snapshot })
    return
  }
  expected(owned, `${branch} is new and not owned`)
  real.counts.environments += 1
  const before = model.branches.get(branch)
  const restored = allowed.restore
  if (restored !== undefined && sameWork(restored.environment.work, work)) {
    absorbRestore(
      model,
      real,
      {
        ...plainly,
        owned,
        snapshot,
        plain: false,
        origin: restored.environment.origin,
        own: restored.environment.own,
        persistent: restored.environment.persistent,
      },
      restored,
    )
  } else {
    expected(allowed.create === true, `${workLabel(work)} got an environment unasked`)
    const start =
      before ??
      model.origin.get(branch) ??
      (work.type === 'pr' ? model.origin.get(prBranch(Number(work.id))) : undefined)
    expected(snapshot.branch === branch, `the new ${branch} is on ${snapshot.branch ?? 'no branch'}`)
    const at = start ?? model.origin.get('main')
    expected(snapshot.sha === at, `the new ${branch} should start at ${at}, but is at ${snapshot.sha}`)
    expected(real.git(path, 'status', '--porcelain', '--ignored') === '', `the new ${branch} is not clean`)
    if (work.type === 'issue') expected(branch === branchForWork(work, 0), `${workLabel(work)} got branch ${branch}`)
    const origin = before === undefined ? 'created' : 'existing'
    expected(row.branchOrigin === origin, `${branch} is recorded as ${row.branchOrigin}, but was ${origin}`)
    model.environments.set(id, { ...plainly, owned, origin, plain: start === undefined, own: false, snapshot })
  }
  const tip = tips.get(branch)
  if (before !== undefined) expected(tip === before, `branch ${branch} was at ${before} and was reset to ${tip}`)
  if (tip !== undefined) model.branches.set(branch, tip)
}

/** Everything is as it was when it was removed: HEAD, index, files, untracked and ignored ones. */
const absorbRestore = (model: Model, real: Real, environment: Environment, point: Point): void => {
  const was = point.environment.snapshot
  const is = environment.snapshot
  real.counts.restored += 1
  const renamed = is.branch !== was.branch && is.branch?.startsWith(`${was.branch}-restored`) === true
  // Of a tree that was away only what git's record knew can come back: HEAD and the index.
  const seen = point.missing ? { ...is, files: was.files } : is
  const changed = renamed ? contentDifference(was, seen) : difference(was, seen)
  expected(changed === undefined, `restored ${environment.branch} differs: ${changed}`)
  model.environments.set(environment.id, environment)
}
