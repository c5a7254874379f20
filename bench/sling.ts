import { type ChildProcess, fork } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import type { FleetContext } from '../src/fleet/context.ts'
import { sling } from '../src/fleet/sling/sling.ts'
import { fleetStatus } from '../src/fleet/status.ts'
import { keepSpares } from '../src/isolation/providers/worktree/spare.ts'
import { addItems, endAgents, fleetOf, fleetSettings, workerCommand } from './fleet-world.ts'
import { installed } from './installed.ts'
import { interleaved, ratioRow, type Row } from './measure.ts'
import { processChannels } from './process-channels.ts'
import type { Bench, Stage, World } from './stage.ts'

const agents = 50
const atOnce = 30

export const slings: Bench = {
  name: 'sling',
  title: 'an agent at work',
  description: `*Sling*: an item is slung, from the call until the agent’s program runs, in a warm process: the hook, the environment, the lease, the agent’s file, a tmux session with its wrapper and log, and the look whether the program itself has started. Baseline: \`git worktree add\` and \`tmux new-session\` with the same program by hand, on a tmux server that runs already, as ours does. Both sides keep their trees and sessions. *${atOnce} at once*: ${atOnce} items are slung at the same moment by one process, and ${atOnce} by two processes that both sling all of them. Checked afterwards: no failure but “somebody else has just taken it”, and each item with one agent and a session of its own. *Status*: \`fleet status\` with ${agents} agents at work; every process started in that time is counted. *Built CLI*: \`coppice sling\` and \`coppice fleet status\` from start to exit as an installed package runs them, without a server and without a spare; most of the difference to the warm process is Node’s own start.`,
  measure: async (stage) => [
    ...(await slingRows(stage, 0, 1.5)),
    ...(await slingRows(stage, 1, 0.6)),
    ...(await installedRows(stage)),
    await together(stage, 1),
    await together(stage, 2),
    await statusRow(stage),
  ],
}

const slingRows = async (stage: Stage, spares: number, atMost: number): Promise<Row[]> => {
  await using world = await stage.world(3_000, { ...fleetSettings, spares })
  const fleet = fleetOf(world, stage.box.env)
  await using cleanup = new AsyncDisposableStack()
  cleanup.defer(() => endAgents(fleet))
  const byHand = tmuxByHand(stage, world)
  cleanup.defer(byHand.end)
  let item = 0
  const samples = await interleaved(
    {
      ours: {
        prepare: async () => {
          if (spares > 0) await keepSpares(fleet.isolation, world.codebase)
          ;[item = 0] = await addItems(fleet, world.codebase, 1)
        },
        run: async () => {
          const { outcome } = await sling(fleet, { item, by: 'bench' })
          if (outcome !== 'started') throw new Error('the item was not slung')
        },
        after: async () => {
          const left = await fleet.isolation.store.spares.list(world.codebase.id)
          if (spares > 0 && left.length > 0) throw new Error('the spare was not used')
        },
      },
      raw: { run: (round) => byHand.start(round) },
    },
    { rounds: 7, settle: stage.settle },
  )
  const how = spares > 0 ? ', with a warm spare' : ''
  return [ratioRow(`sling until the program runs, 3,000 files${how}`, samples, atMost)]
}

/** What a person who types the commands waits for. */
const installedRows = async (stage: Stage): Promise<Row[]> => {
  const root = stage.copy(3_000)
  const checkout = join(root, 'project')
  const home = join(root, 'home')
  mkdirSync(home)
  const config = {
    worktrees: { spares: 0 },
    limits: { worktreesPerCodebase: 1_000 },
    fleet: { session: 'tmux', maxAgents: 100, pools: { workers: { command: workerCommand, max: 100 } } },
  }
  // JSON is YAML.
  writeFileSync(join(home, 'config.yaml'), JSON.stringify(config), { mode: 0o600 })
  const coppice = installed(stage, { cwd: checkout, home })
  await using cleanup = new AsyncDisposableStack()
  cleanup.defer(async () => void (await coppice('fleet', 'down', '--grace', '0')))
  const byHand = tmuxByHand(stage, { root, checkout })
  cleanup.defer(byHand.end)
  let item = 0
  const samples = await interleaved(
    {
      ours: {
        prepare: async () => void ({ id: item } = JSON.parse(await coppice('item', 'add', 'Fix login', '--json'))),
        run: async () => void (await coppice('sling', String(item), '--json')),
      },
      raw: { run: (round) => byHand.start(round) },
    },
    { rounds: 7, settle: stage.settle },
  )
  const status = await interleaved(
    {
      ours: { run: async () => void (await coppice('fleet', 'status', '--json')) },
      raw: {
        run: async () =>
          void (await stage.start({ program: process.execPath, args: ['-e', '0'], cwd: checkout, env: {} })),
      },
    },
    { rounds: 11 },
  )
  return [
    ratioRow('`sling` of the built CLI, 3,000 files', samples),
    ratioRow('`fleet status` of the built CLI with 8 agents, against `node -e 0`', status),
  ]
}

/** As a person would type it. */
const tmuxByHand = (stage: Stage, world: Pick<World, 'root' | 'checkout'>) => {
  const directory = join(world.root, 'by-hand')
  mkdirSync(directory)
  const tmux = `tmux -S ${join(directory, 'tmux')} -f /dev/null`
  const script = `git worktree add --no-track -q -b "$1" "$2" main && ${tmux} new-session -d -s "$1" -c "$2" ${JSON.stringify(workerCommand)}`
  return {
    start: async (round: number): Promise<void> => {
      const name = `raw-${round}`
      await stage.byHand(world.checkout, 'sh', '-c', script, 'sh', name, join(directory, name))
    },
    end: async (): Promise<void> => void (await stage.byHand('/', 'sh', '-c', `${tmux} kill-server || true`)),
  }
}

const together = async (stage: Stage, processes: number): Promise<Row> => {
  const root = stage.copy(3_000)
  const slingers: ChildProcess[] = []
  const script = fileURLToPath(new URL('slinger.ts', import.meta.url))
  for (let i = 0; i < processes; i += 1) {
    const slinger = fork(script, [root, String(i === 0 ? atOnce : 0)], { serialization: 'advanced' })
    slingers.push(slinger)
    await once(slinger, 'message')
  }
  const began = performance.now()
  const answers = slingers.map(async (one) => ((await once(one, 'message')) as [string[]])[0])
  for (const one of slingers) one.send('begin')
  const failures = (await Promise.all(answers)).flat()
  const took = performance.now() - began
  const [first] = slingers
  const checked = first && once(first, 'message')
  first?.send('check')
  const problems = [...failures, ...(((await checked) as [string[]] | undefined)?.[0] ?? ['nothing was checked'])]
  for (const problem of new Set(problems)) stage.log(`  ${problem}`)
  for (const one of slingers) {
    const ended = once(one, 'exit')
    one.send('end')
    await ended
  }
  return {
    figure: `${atOnce} items slung at once by ${processes === 1 ? 'one process' : 'each of two processes'}`,
    ours: [took],
    raw: undefined,
    result: `${problems.length} failures, each item with one agent`,
    toReach: 'no failure, each item hooked once',
    reached: problems.length === 0,
  }
}

const statusRow = async (stage: Stage): Promise<Row> => {
  await using world = await stage.world(3_000, { ...fleetSettings, spares: 0 })
  const fleet = fleetOf(world, stage.box.env)
  await using cleanup = new AsyncDisposableStack()
  cleanup.defer(() => endAgents(fleet))
  for (const item of await addItems(fleet, world.codebase, agents)) await sling(fleet, { item, by: 'bench' })
  const samples: number[] = []
  let most = 0
  for (let round = 0; round < 11; round += 1) {
    const { ms, processes } = await counted(fleet)
    samples.push(ms)
    most = Math.max(most, processes)
  }
  return {
    figure: `\`fleet status\` with ${agents} agents`,
    ours: samples,
    raw: undefined,
    result: `${most} processes`,
    toReach: 'at most 3 processes',
    reached: most <= 3,
  }
}

const counted = async (fleet: FleetContext): Promise<{ readonly ms: number; readonly processes: number }> => {
  let processes = 0
  const count = (): void => void (processes += 1)
  for (const name of processChannels) subscribe(name, count)
  const began = performance.now()
  const { agents: seen } = await fleetStatus(fleet)
  const ms = performance.now() - began
  for (const name of processChannels) unsubscribe(name, count)
  if (seen.length !== agents) throw new Error(`${seen.length} agents are shown instead of ${agents}`)
  return { ms, processes }
}
