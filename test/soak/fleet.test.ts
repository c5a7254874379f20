import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type Item, settledStates } from '../../src/domain/fleet/item.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { openStore } from '../../src/store/open.ts'
import { checkFleet } from '../crash/fleet-check.ts'
import { fingerprint, type Inventory } from '../crash/inventory.ts'
import { fleetIn } from '../helpers/fleet.ts'
import { checkInvariants, checkRecoveredOnce, processesAt } from '../helpers/invariants.ts'
import { makeServerWorld, type ServerWorld } from '../helpers/server-process.ts'
import { makeContext, type World } from '../helpers/world.ts'
import { killAll, type Kills, killOne, nextVictim, randomFrom } from './chaos.ts'
import { type Ledger, readLedger } from './ledger.ts'

/*
 * Twenty agents work off a queue while something is killed all the time: an agent's process, a git, tmux's server, the
 * server. A person takes up what was parked. Then the killing ends, and every item has to land.
 */

const numberOf = (name: string, otherwise: number): number => Number(process.env[name] ?? otherwise)
const seconds = numberOf('COPPICE_SOAK_SECONDS', 60)
const items = numberOf('COPPICE_SOAK_ITEMS', 40)
const seed = numberOf('COPPICE_SOAK_SEED', Math.floor(Date.now() / 1000) % 1_000_000)

type ItemJson = { readonly id: number; readonly state: string; readonly agent: string | null }
type LandingJson = { readonly item: number; readonly state: string; readonly landedSha: string | null }
type EventJson = { readonly number: number; readonly kind: string; readonly item: number | null }
type StatusJson = { readonly state: string; readonly items: Readonly<Record<string, number>> }

test(`a fleet in which everything is killed now and then loses, doubles and blocks nothing (seed ${seed})`, async () => {
  const random = randomFrom(seed)
  await using world = makeServerWorld({ config: configIn(resolve(import.meta.dirname, 'worker.sh')) })
  // A failure must not leave the agents at work.
  using atTheEnd = new DisposableStack()
  atTheEnd.defer(() => killAll(world.box.root))
  const ledger = world.box.path('ledger')
  mkdirSync(ledger)
  writeFileSync(join(world.home, 'config.yaml'), configIn(`${resolve(import.meta.dirname, 'worker.sh')} ${ledger}`))
  const repo = await world.project()
  repo.write('.coppice/config.yaml', 'landing:\n  gates: ["test ! -e red"]\n  batch: 8\n  strategy: merge\n')
  repo.git('add', '.')
  repo.git('commit', '-qm', 'landing')
  repo.git('push', '-q', 'origin', 'main')
  await succeed(world, repo.path, 'codebase', 'trust', 'project')
  for (let n = 1; n <= items; n += 1) await succeed(world, repo.path, 'item', 'add', `Item ${n}`)

  const kills: Kills = { agent: 0, git: 0, server: 0, tmux: 0 }
  let server = await world.serve()
  const canonical = new Map([[repo.path, fingerprint(repo.path)]])
  const end = performance.now() + seconds * 1000
  const person = takeUp(world, repo.path)
  while (performance.now() < end) {
    await delay(200 + random() * 1300)
    const victim = nextVictim(random)
    if (victim !== 'server') {
      if (killOne(victim, world.box.root, random) !== undefined) kills[victim] += 1
      continue
    }
    await server.stop('SIGKILL')
    kills.server += 1
    await delay(random() * 2000)
    server = await world.serve()
  }
  const settled = await untilSettled(world, repo.path)
  await person.stop()
  const report = { seed, seconds, items, kills, takenUp: person.taken(), settled }
  process.stdout.write(`${JSON.stringify(report)}\n`)

  const landings = await answer<readonly LandingJson[]>(world, repo.path, 'landings', '--all')
  const happened = (await succeed(world, repo.path, 'events', '--after', '0', '--json'))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as EventJson)
  await succeed(world, repo.path, 'fleet', 'down', '--grace', '0')
  await server.stop()
  // Removed worktrees are deleted in the background.
  await expect.poll(() => processesAt(world.box.root), { timeout: 60_000 }).toEqual([])
  const problems = await problemsOf(world, repo, { before: inventoryOf(readLedger(ledger), canonical), landings })
  expect([...problems, ...toldOnce(happened)]).toEqual([])
  expect(kills.agent).toBeGreaterThan(0)
}, 1_800_000)

const configIn = (worker: string): string => `
worktrees: { spares: 0 }
fleet:
  patrolSeconds: 2
  maxAgents: 20
  pools:
    workers: { command: "sh ${worker}", pull: true, max: 20, done: land }
`

const succeed = async (world: ServerWorld, cwd: string, ...args: string[]): Promise<string> => {
  const { code, out, err } = await world.cli(cwd, ...args)
  if (code !== 0) throw new Error(`coppice ${args.join(' ')} ended with ${code}:\n${out}${err}`)
  return out
}

const answer = async <T>(world: ServerWorld, cwd: string, ...args: string[]): Promise<T> =>
  JSON.parse(await succeed(world, cwd, '--json', ...args)) as T

/** A person who looks every few seconds, lets a paused fleet go on and takes up what was parked. */
const takeUp = (
  world: ServerWorld,
  cwd: string,
): { readonly stop: () => Promise<void>; readonly taken: () => Readonly<Record<'up' | 'sling', number>> } => {
  const stopping = new AbortController()
  const taken = { up: 0, sling: 0 }
  const rounds = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await delay(5_000, undefined, { signal: stopping.signal }).catch(() => undefined)
      const status = await answer<StatusJson>(world, cwd, 'fleet', 'status').catch(() => undefined)
      if (status?.state === 'paused' && (await world.cli(cwd, 'fleet', 'up')).code === 0) taken.up += 1
      const parked = await answer<readonly ItemJson[]>(world, cwd, 'item', 'list', '--state', 'parked').catch(() => [])
      for (const { id } of parked) if ((await world.cli(cwd, 'sling', String(id))).code === 0) taken.sling += 1
    }
  }
  const running = rounds()
  return {
    stop: async () => {
      stopping.abort()
      await running
    },
    taken: () => taken,
  }
}

/** Everything has come to an end. What doesn't is named. */
const untilSettled = async (world: ServerWorld, cwd: string): Promise<Readonly<Record<string, number>>> => {
  const deadline = performance.now() + 600_000
  for (;;) {
    const all = await answer<readonly ItemJson[]>(world, cwd, 'item', 'list', '--all')
    const left = all.filter(({ state }) => !(settledStates as readonly string[]).includes(state))
    if (left.length === 0)
      return Object.fromEntries(
        Map.groupBy(all, ({ state }) => state)
          .entries()
          .map(([state, of]) => [state, of.length]),
      )
    if (performance.now() > deadline) throw new Error(await whyUnsettled(world, cwd, left))
    await delay(1_000)
  }
}

const whyUnsettled = async (world: ServerWorld, cwd: string, left: readonly ItemJson[]): Promise<string> => {
  const logs = join(world.home, 'fleet', 'logs')
  const tails = left.map(({ id, agent }) => {
    const file = join(logs, `${agent}.log`)
    return `${id}: ${agent !== null && existsSync(file) ? readFileSync(file, 'utf8').slice(-2_000) : 'no log'}`
  })
  const { out } = await world.cli(cwd, 'fleet', 'status')
  const { out: queue } = await world.cli(cwd, 'landings', '--all')
  return ['not settled:', JSON.stringify(left, undefined, 1), out, queue, ...tails].join('\n')
}

type Repo = Awaited<ReturnType<ServerWorld['project']>>

/** Everything that the agents say they made, and the checkout that nobody may touch. */
const inventoryOf = ({ blobs, commits }: Ledger, canonical: Inventory['foreign']): Inventory => ({
  blobs,
  commits,
  branches: ['refs/heads/main'],
  environments: [],
  foreign: canonical,
})

/** G1 to G12 and G14, and that what has landed is on the remote, once. */
const problemsOf = async (
  { box, home }: ServerWorld,
  repo: Repo,
  { before, landings }: { readonly before: Inventory; readonly landings: readonly LandingJson[] },
): Promise<readonly string[]> => {
  const store = await openStore({ sqliteFile: join(home, 'coppice.db') })
  const host = readFileSync(join(home, 'host'), 'utf8').trim()
  const [codebase = expect.unreachable('the repository is no longer known')] = await store.codebases.list(host)
  const context = await makeContext(box, { host, worktreesBase: join(home, 'worktrees') }, { store })
  await using world: World = {
    box,
    repo,
    codebase,
    context,
    provider: createEnvironments(context),
    progress: [],
    [Symbol.asyncDispose]: () => store.close(),
  }
  const fleet = fleetIn(context, box.env)
  return [
    ...(await checkInvariants(world, { before })),
    ...(await checkRecoveredOnce(world)),
    ...(await checkFleet({ fleet, box })),
    ...landedOnce(repo, await store.items.list({}), landings),
  ]
}

const landedOnce = (repo: Repo, all: readonly Item[], landings: readonly LandingJson[]): string[] => {
  const origin = (...args: string[]): string => repo.git(`--git-dir=${repo.origin}`, ...args)
  const files = new Set(origin('ls-tree', '-r', '--name-only', 'main').split('\n'))
  const commits = new Set(origin('rev-list', 'main').split('\n'))
  return all.flatMap(({ id, state }) => {
    const landed = landings.filter((one) => one.item === id && one.state === 'landed')
    const missing = [1, 2, 3].filter((step) => !files.has(`work/${id}-${step}`))
    return [
      ...(state === 'landed' && landed.length !== 1 ? [`item ${id} has landed ${landed.length} times`] : []),
      ...(state === 'landed' && missing.length > 0
        ? [`item ${id} has landed without its step ${missing.join(', ')}`]
        : []),
      ...(state !== 'landed' ? [`item ${id} is ${state}`] : []),
      ...landed
        .filter(({ landedSha }) => landedSha === null || !commits.has(landedSha))
        .map(({ landedSha }) => `the remote doesn't have ${landedSha}, with which item ${id} is said to have landed`),
    ]
  })
}

/** No number is missing, and no landing was told twice or not at all. */
const toldOnce = (happened: readonly EventJson[]): string[] => {
  const landed = happened.filter(({ kind }) => kind === 'landed').map(({ item }) => item)
  return [
    ...happened.flatMap(({ number }, at) => (number === at + 1 ? [] : [`event ${number} comes after ${at}`])),
    ...(landed.length === items && new Set(landed).size === items ? [] : [`told of landing: ${landed.join(', ')}`]),
  ]
}
