import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import { expected } from './expected.ts'
import { branchTips, refsBelow } from './questions.ts'
import type { Real } from './real.ts'
import { blobsOf, difference, filesOf, takeSnapshot } from './snapshot.ts'
import type { Model } from './state.ts'

/** After every command: is the world exactly what the model says? */
export const checkWorld = async (model: Model, real: Real): Promise<void> => {
  const { store } = real.context
  const live = await store.environments.live(real.world.codebase.id)
  checkUniqueness(live)
  checkRecords(model, live)
  await checkListAndDirectories(model, real, live)
  checkTrees(model, real)
  checkBranches(model, real)
  await checkPoints(model, real)
  await checkDebris(real)
  for (const { name, environment } of model.conversations.values()) {
    const row = await store.conversations.find('model', name)
    expected(
      row?.environmentId === environment,
      `conversation ${name} has ${row?.environmentId}, should have ${environment}`,
    )
  }
  real.counts.checks += 1
}

const checkUniqueness = (live: readonly IsolatedEnvironment[]): void => {
  const keys = live.flatMap(({ work, branch, path }) => [
    `work ${work.type}-${work.id}`,
    `branch ${branch}`,
    `path ${path}`,
  ])
  for (const [at, key] of keys.entries()) expected(keys.indexOf(key) === at, `G2: two live environments have ${key}`)
}

const checkRecords = (model: Model, live: readonly IsolatedEnvironment[]): void => {
  expected(live.length === model.environments.size, `G3: ${live.length} records, ${model.environments.size} expected`)
  for (const { id, status, branch, path, owned } of live) {
    const known = model.environments.get(id)
    expected(known !== undefined, `G3: ${branch} is recorded, and should not be`)
    expected(
      known.branch === branch && known.path === path && known.owned === owned,
      `G3: the record of ${branch} changed`,
    )
    expected(status === 'active' || status === 'missing', `G3: ${branch} is still ${status}`)
  }
}

const checkListAndDirectories = async (
  model: Model,
  real: Real,
  live: readonly IsolatedEnvironment[],
): Promise<void> => {
  const { world, context, git } = real
  const spares = (await context.store.spares.list(world.codebase.id)).map(({ path }) => path)
  const listed = git(world.repo.path, 'worktree', 'list', '--porcelain')
    .split('\n')
    .filter((line) => line.startsWith('worktree '))
    .map((line) => line.slice('worktree '.length))
  const known = [...new Set([world.repo.path, ...live.map(({ path }) => path), ...model.strangers.keys(), ...spares])]
  same('G3: git lists', listed, known)
  const root = join(context.worktreesBase, 'project')
  const present = [...model.environments.values()].filter(({ away }) => away === undefined).map(({ path }) => path)
  const here = (path: string): boolean => path.startsWith(`${root}/`)
  same(
    'G3: directories',
    names(root).map((name) => join(root, name)),
    [...new Set([...present, ...model.strangers.keys(), ...model.leftovers.keys()].filter(here))],
  )
  same(
    'G3: spares',
    names(join(context.worktreesBase, '.spares')).map((name) => join(context.worktreesBase, '.spares', name)),
    spares,
  )
  same('G4: trash', names(join(context.worktreesBase, '.trash')), [])
}

/** G1 and G6 for everything that is in its place, and G10. */
const checkTrees = (model: Model, real: Real): void => {
  for (const { branch, path, away, snapshot } of model.environments.values()) {
    if (away !== undefined) same(`G1: files of ${branch}, away`, lines(filesOf(away)), lines(snapshot.files))
    else none(`G1: the tree of ${branch}`, difference(snapshot, takeSnapshot(real.git, path)))
  }
  for (const [path, { snapshot }] of model.strangers) {
    none(`G6: a person's ${path}`, difference(snapshot, takeSnapshot(real.git, path)))
  }
  for (const [path, files] of model.leftovers) same(`G6: ${path}`, lines(filesOf(path)), lines(files))
  none('G10: the canonical checkout', difference(model.canonical, takeSnapshot(real.git, real.world.repo.path)))
}

const lines = (files: ReadonlyMap<string, string>): string[] => [...files].map(([path, id]) => `${path} ${id}`)

const checkBranches = (model: Model, real: Real): void => {
  const text = (tips: ReadonlyMap<string, string>): string[] => [...tips].map(([name, sha]) => `${name} ${sha}`)
  same('G1/G4: branches', text(branchTips(real)), text(model.branches))
}

/** G1 for what was removed: every blob and commit is reachable or lies beside git; nothing expires before its time. */
const checkPoints = async (model: Model, real: Real): Promise<void> => {
  const { world, context, git } = real
  const rows = await context.store.restorePoints.list(world.codebase.id)
  const ids = [...model.points.keys()]
  same(
    'G1/G4: restore points',
    rows.map(({ id }) => id),
    ids,
  )
  same('G4: refs of restore points', [...refsBelow(real, 'refs/coppice/restore/').keys()], ids)
  same('G4: directories of restore points', names(join(context.home, 'restore')), ids)
  if (ids.length === 0) return
  const kept = new Set(git(world.repo.path, 'rev-list', '--objects', '--no-object-names', '--all').split('\n'))
  for (const [id, { environment, missing }] of model.points) {
    const beside = new Set(filesOf(join(context.home, 'restore', id)).values())
    const { snapshot, lost, branch } = environment
    const blobs = missing ? blobsOf({ ...snapshot, files: new Map() }) : blobsOf(snapshot)
    for (const blob of blobs) expected(kept.has(blob) || beside.has(blob), `G1: ${branch} lost the content ${blob}`)
    for (const sha of [snapshot.sha, ...lost]) expected(kept.has(sha), `G1: ${branch} lost the commit ${sha}`)
  }
}

const checkDebris = async ({ context, world }: Real): Promise<void> => {
  const open = await context.store.journal.open(context.host)
  expected(open.length === 0, `G4: open in the journal: ${open.map(({ kind, step }) => `${kind} ${step}`).join(', ')}`)
  const { commonDir } = world.repo
  const stray = readdirSync(commonDir, { recursive: true, encoding: 'utf8' }).filter(
    // Our own lock is a file that stays: who holds it is the kernel's knowledge.
    (name) => !name.startsWith('objects/') && name !== 'coppice.lock' && /\.lock$|\.tmp$/.test(name),
  )
  same("G4: locks in git's directory", stray, [])
}

const names = (directory: string): string[] => (existsSync(directory) ? readdirSync(directory) : [])

const none = (what: string, problem: string | undefined): void => expected(problem === undefined, `${what}: ${problem}`)

const same = (what: string, is: readonly string[], should: readonly string[]): void => {
  const missing = should.filter((one) => !is.includes(one))
  const extra = is.filter((one) => !should.includes(one))
  expected(
    missing.length + extra.length === 0,
    `${what}: missing [${missing.join(', ')}], too many [${extra.join(', ')}]`,
  )
}
