import { existsSync, lstatSync, readFileSync, readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import { readToken } from '../../src/git/admin-dir.ts'
import { reconcile } from '../../src/isolation/reconcile.ts'
import {
  type Inventory,
  adminNames,
  clones,
  type ListedWorktree,
  blobId,
  filesBelow,
  fingerprint,
  keptBesideGit,
  namesIn,
  refsOf,
  worktrees,
} from '../crash/inventory.ts'
import type { World } from './world.ts'
import { said } from './words.ts'

export type Expectations = {
  /** Taken before the fault. */
  readonly before: Inventory
  /** Branches that may be there now although they were not before: of an environment that was removed meanwhile. */
  readonly mayKeep?: readonly string[]
  /** Worktrees that a person or another tool made. */
  readonly strangers?: readonly string[]
  /** Where temporary files of this world go. */
  readonly temporary?: string
}

/** Each broken guarantee in one sentence that begins with its number; none when all hold. */
export const checkInvariants = async (world: World, expectations: Expectations): Promise<string[]> => {
  const live = await world.context.store.environments.live(world.codebase.id)
  const linked = worktrees(world).slice(1)
  const cloned = await clones(world)
  return [
    ...nothingLost(world, expectations, linked, cloned),
    ...oneOfEach(live),
    ...(await recordsAgree(world, expectations, live, linked, cloned)),
    ...(await noDebris(world, expectations, live, linked)),
    ...nothingForeignTouched(world, expectations),
    ...(await nothingGuessed(world, expectations)),
  ]
}

/** G9: a second recovery finds nothing to do and changes nothing. */
export const checkRecoveredOnce = async (world: World): Promise<string[]> => {
  const before = await stateOf(world)
  const again = await reconcile(world.context, world.codebase)
  const problems = said([...again.settled, ...again.left])
  if ((await stateOf(world)) !== before) problems.push('changed something')
  return problems.map((problem) => `G9: the second recovery ${problem}`)
}

/** G1: every file and commit is in a worktree, a branch or a restore point. The trash does not count. */
const nothingLost = (
  world: World,
  { before, strangers = [] }: Expectations,
  linked: readonly ListedWorktree[],
  cloned: readonly ListedWorktree[],
): string[] => {
  const all = ['rev-list', '--objects', '--no-object-names', '--all', '--reflog', '--indexed-objects']
  const repositories = [world.repo.path, ...cloned.map(({ path }) => path)]
  const kept = new Set(repositories.flatMap((path) => world.box.raw(path, ...all).split('\n')))
  const places = [...linked, ...cloned].map(({ path }) => path).concat(strangers)
  for (const path of places) for (const file of filesBelow(path)) kept.add(blobId(join(path, file)))
  for (const path of keptBesideGit(world)) kept.add(blobId(path))
  return [...before.blobs, ...before.commits]
    .filter(([id]) => !kept.has(id))
    .map(([id, where]) => `G1: lost ${id.slice(0, 8)}, once ${where}`)
}

/** G2: at most one live environment per work, branch, path. */
const oneOfEach = (live: readonly IsolatedEnvironment[]): string[] => {
  const keys = live.flatMap(({ work, branch, host, path }) => [
    `work ${work.type}-${work.id}`,
    `branch ${branch}`,
    `path ${host}:${path}`,
  ])
  return keys.filter((key, index) => keys.indexOf(key) !== index).map((key) => `G2: two live environments have ${key}`)
}

/** G3: records, git's list and directories agree. */
const recordsAgree = async (
  world: World,
  { strangers = [] }: Expectations,
  live: readonly IsolatedEnvironment[],
  listed: readonly ListedWorktree[],
  cloned: readonly ListedWorktree[],
): Promise<string[]> => {
  const problems: string[] = []
  const spares = await world.context.store.spares.list(world.codebase.id)
  for (const { status, path, branch, owned, id, adminName, provider } of live) {
    const tree = [...listed, ...cloned].find((one) => one.path === path)
    if (status === 'creating' || status === 'removing') problems.push(`${branch} is still ${status}`)
    if (status === 'active' && !existsSync(join(path, '.git'))) problems.push(`${branch} is active without a directory`)
    if (status === 'active' && tree?.branch !== `refs/heads/${branch}` && tree?.branch !== undefined)
      problems.push(`${branch} is recorded, git has ${tree.branch} at ${path}`)
    if (status === 'active' && tree === undefined) problems.push(`${branch} is active and git does not list ${path}`)
    const record = provider === 'clone' ? join(path, '.git') : join(world.repo.commonDir, 'worktrees', adminName ?? '-')
    if (status === 'active' && owned && (await readToken(record)) !== id) problems.push(`${branch} has lost its token`)
  }
  const known = [...live.map(({ path }) => path), ...spares.map(({ path }) => path), ...strangers]
  for (const { path } of listed) if (!known.includes(path)) problems.push(`git lists ${path}, which nobody knows`)
  for (const spare of spares) {
    if (!listed.some(({ path }) => path === spare.path)) problems.push(`spare ${spare.path} is not a worktree`)
  }
  const root = join(world.context.worktreesBase, world.codebase.name)
  for (const name of namesIn(root)) {
    if (!known.includes(join(root, name))) problems.push(`${join(root, name)} is there, and no record of it`)
  }
  return problems.map((problem) => `G3: ${problem}`)
}

/** G4: no stray branch, lock, admin directory, temporary directory, process. */
const noDebris = async (
  world: World,
  { before, mayKeep = [], temporary, strangers = [] }: Expectations,
  live: readonly IsolatedEnvironment[],
  linked: readonly ListedWorktree[],
): Promise<string[]> => {
  const { repo, context, codebase } = world
  const { store, worktreesBase, home } = context
  const problems: string[] = []
  const spares = await store.spares.list(codebase.id)
  const points = await store.restorePoints.list(codebase.id)
  const branches = [
    ...before.branches,
    ...[...live.map(({ branch }) => branch), ...mayKeep].map((b) => `refs/heads/${b}`),
  ]
  const refs = refsOf(world)
  for (const ref of refs.keys()) {
    if (ref.startsWith('refs/heads/') && !branches.includes(ref)) problems.push(`stray branch ${ref}`)
    const cloneId = /^refs\/coppice\/clone\/([^/]+)\//.exec(ref)?.[1]
    if (cloneId !== undefined && !live.some(({ id }) => id === cloneId)) problems.push(`pins of no clone: ${ref}`)
    if (ref.startsWith('refs/coppice/restore/') && !points.some((point) => point.ref === ref))
      problems.push(`restore point without a row: ${ref}`)
  }
  for (const { ref, id } of points) {
    if (!refs.has(ref)) problems.push(`restore point without its ref: ${ref}`)
    if (!existsSync(join(home, 'restore', id))) problems.push(`restore point without its directory: ${id}`)
  }
  for (const id of namesIn(join(home, 'restore'))) {
    if (!points.some((point) => point.id === id)) problems.push(`restore directory without a row: ${id}`)
  }
  for (const line of configuredBranches(world)) {
    if (!refs.has(`refs/heads/${line}`)) problems.push(`configuration of branch ${line}, which is not there`)
  }
  if (adminNames(world).length !== linked.length)
    problems.push(`${adminNames(world).length} admin directories, git lists ${linked.length}`)
  problems.push(
    ...strayFiles(
      repo.commonDir,
      spares.map(({ adminName }) => adminName),
      strangers,
    ),
  )
  for (const name of namesIn(join(worktreesBase, '.spares'))) {
    if (!spares.some(({ path }) => path.endsWith(`/${name}`))) problems.push(`left in .spares: ${name}`)
  }
  for (const name of namesIn(join(home, 'clones'))) {
    if (!live.some(({ id }) => id === name)) problems.push(`left of a clone: ${name}`)
  }
  for (const name of namesIn(join(home, 'repos'))) if (name.startsWith('.')) problems.push(`half a clone: ${name}`)
  for (const name of namesIn(join(worktreesBase, '.trash'))) problems.push(`left in .trash: ${name}`)
  for (const entry of await store.journal.open(context.host)) problems.push(`journal: ${entry.kind} at ${entry.step}`)
  if (temporary !== undefined) for (const name of namesIn(temporary)) problems.push(`temporary ${name}`)
  for (const name of namesIn(join(home, 'tmp'))) problems.push(`private index ${name}`)
  for (const [pid, command] of processesAt(world.box.root)) problems.push(`process ${pid}: ${command}`)
  const ports = (await Promise.all(live.map(({ id }) => store.ports.ofEnvironment(id)))).flat().length
  if ((await store.ports.taken(context.host)).length !== ports) problems.push('a port of nobody is taken')
  return problems.map((problem) => `G4: ${problem}`)
}

const configuredBranches = ({ repo }: World): string[] =>
  [...readFileSync(join(repo.commonDir, 'config'), 'utf8').matchAll(/^\[branch "(.+)"\]$/gm)].map(
    ([, name]) => name ?? '',
  )

/** Lock files anywhere in git's directory, `locked` records of anything but a waiting spare, half-written files. */
const strayFiles = (commonDir: string, spares: readonly string[], strangers: readonly string[]): string[] => {
  const found = readdirSync(commonDir, { recursive: true, encoding: 'utf8' })
    // The repository's lock between processes: its file is never deleted.
    .filter((name) => name !== 'coppice.lock' && !name.startsWith('objects/') && /\.lock$|\.tmp$/.test(name))
    .map((name) => `left in git's directory: ${name}`)
  const locked = namesIn(join(commonDir, 'worktrees')).filter(
    (name) => existsSync(join(commonDir, 'worktrees', name, 'locked')) && !spares.includes(name),
  )
  const theirs = (name: string): boolean =>
    strangers.some((path) => readFileSync(join(commonDir, 'worktrees', name, 'gitdir'), 'utf8').startsWith(`${path}/`))
  return [...found, ...locked.filter((name) => !theirs(name)).map((name) => `locked record ${name}`)]
}

/** Whoever works in this world or names it in its command line. */
export const processesAt = (root: string): [number, string][] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      try {
        const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')
        if (!command.includes(root) && !readlinkSync(`/proc/${name}/cwd`).startsWith(root)) return []
        const isZombie = /^\d+ \(.*\) Z /s.test(readFileSync(`/proc/${name}/stat`, 'utf8'))
        return isZombie ? [] : [[Number(name), command.slice(0, 200)] satisfies [number, string]]
      } catch {
        return []
      }
    })

/** G5, G6, G10: what was not made by Coppice is as it was. */
const nothingForeignTouched = (world: World, { before }: Expectations): string[] =>
  [...before.foreign]
    .filter(([path, print]) => !existsSync(path) || fingerprint(path) !== print)
    .map(([path]) =>
      path === world.repo.path ? `G10: the canonical checkout changed` : `G6: ${path} changed or is gone`,
    )

/** G11: missing means that the directory is not there; removed means that it was looked at and saved. */
const nothingGuessed = async (world: World, { before }: Expectations): Promise<string[]> => {
  const problems: string[] = []
  const points = await world.context.store.restorePoints.list(world.codebase.id)
  for (const { id, branch, owned } of before.environments) {
    const now = await world.context.store.environments.get(id)
    if (now?.status === 'missing' && lstatSync(now.path, { throwIfNoEntry: false }) !== undefined)
      problems.push(`${branch} is called missing, and its directory is there`)
    if (owned && now?.status === 'removed' && !points.some(({ environmentId }) => environmentId === id))
      problems.push(`${branch} is called removed, and nothing of it was saved`)
  }
  return problems.map((problem) => `G11: ${problem}`)
}

/** Refs, and git's records of worktrees: each small file with its content. Read from the disk: git would take longer. */
const gitState = (commonDir: string): [string, string][] => {
  const files = [
    'packed-refs',
    ...['refs', 'worktrees'].flatMap((name) => filesBelow(join(commonDir, name)).map((file) => join(name, file))),
  ]
  return files.map((file) => {
    const path = join(commonDir, file)
    return [file, existsSync(path) && !file.endsWith('/index') ? readFileSync(path, 'latin1') : '']
  })
}

/** All that recovery could change, as one text. */
const stateOf = async (world: World): Promise<string> => {
  const { store, home, worktreesBase, host } = world.context
  const { id } = world.codebase
  return JSON.stringify([
    await store.environments.live(id),
    await store.journal.open(host),
    await store.spares.list(id),
    await store.restorePoints.list(id),
    await store.leases.all(host),
    await store.ports.taken(host),
    gitState(world.repo.commonDir),
    filesBelow(worktreesBase),
    filesBelow(join(home, 'restore')),
  ])
}
