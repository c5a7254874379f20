import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { FleetContext } from '../src/fleet/context.ts'
import { land } from '../src/fleet/landing/land.ts'
import { workQueue } from '../src/fleet/landing/queue.ts'
import type { Codebase } from '../src/domain/environment.ts'
import { toSha } from '../src/domain/names.ts'
import { bringOnto } from '../src/isolation/codebases/landing/bring-onto.ts'
import { fleetOf } from './fleet-world.ts'
import { interleaved, ratioRow, type Row } from './measure.ts'
import type { Bench, Stage, World } from './stage.ts'

const branches = 20
const red = [4, 13]
const batch = 8

export const landings: Bench = {
  name: 'landing',
  title: 'landing what is finished',
  description: `*Gate runs*: ${branches} branches, of which ${red.length} fail their gate, are queued in a repository with a bare remote and worked off, with \`batch: ${batch}\` and one by one; each run of the gate is counted where it happens. Checked afterwards: the same branches have landed, and the remote has exactly those. *Speculative merge*: one diverged branch is brought onto its base with \`git merge-tree\` and a commit, without a checkout, against \`git merge --no-ff\` in a checkout that is reset to the base before each round.`,
  measure: async (stage) => [await gateRuns(stage), ...(await merges(stage, 3_000)), ...(await merges(stage, 30_000))],
}

const gateRuns = async (stage: Stage): Promise<Row> => {
  const together = await workedOff(stage, batch)
  const alone = await workedOff(stage, 1)
  const ratio = together / alone
  return {
    figure: `${branches} branches of which ${red.length} are red: gate runs with batch ${batch}, and one by one`,
    unit: 'runs',
    ours: [together],
    raw: [alone],
    result: `${ratio.toFixed(2)}×`,
    toReach: '≤ 0.6×',
    reached: ratio <= 0.6,
  }
}

/** How often the gate ran. */
const workedOff = async (stage: Stage, size: number): Promise<number> => {
  await using world = await stage.world(100)
  const { root, codebase: known, context } = world
  const counted = join(root, 'runs')
  const gate = `echo run >> ${counted}; ! ls | grep -q ^red-`
  writeFileSync(counted, '')
  world.raw('init', '-q', '--bare', join(root, 'origin.git'))
  commitFile(world, '.coppice/config.yaml', JSON.stringify({ landing: { gates: [gate], batch: size } }))
  world.raw('remote', 'add', 'origin', join(root, 'origin.git'))
  world.raw('push', '-q', 'origin', 'main')
  world.raw('remote', 'set-head', 'origin', 'main')
  const codebase: Codebase = { ...known, remote: 'origin' }
  await context.store.codebases.update(known.id, { remote: 'origin' })
  const fleet: FleetContext = fleetOf({ context: { ...context, approve: async () => true } }, stage.box.env)
  for (let i = 0; i < branches; i += 1) {
    world.raw('checkout', '-q', '-b', `b${i}`, 'main')
    commitFile(world, red.includes(i) ? `red-${i}` : `file-${i}`, `${i}\n`)
    const { outcome } = await land(fleet, codebase, { what: { branch: `b${i}` }, by: 'bench' })
    if (outcome !== 'queued') throw new Error(`b${i} was not queued`)
  }
  world.raw('checkout', '-q', 'main')
  const { outcome } = await workQueue(fleet, codebase)
  if (outcome !== 'done') throw new Error(`the queue was not worked off: ${outcome}`)
  const landed = world.raw('ls-tree', '--name-only', 'refs/remotes/origin/main').split('\n')
  if (landed.filter((name) => /^file-\d/.test(name)).length !== branches - red.length) throw new Error('not all landed')
  if (landed.some((name) => name.startsWith('red-'))) throw new Error('a red one landed')
  return readFileSync(counted, 'utf8').split('\n').length - 1
}

const commitFile = (world: World, path: string, content: string): void => {
  const file = join(world.checkout, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
  world.raw('add', '--', path)
  world.raw('commit', '-q', '-m', path)
}

const merges = async (stage: Stage, files: number): Promise<Row[]> => {
  await using world = await stage.world(files)
  const { checkout, context, codebase } = world
  const base = world.raw('rev-parse', 'main').trim()
  world.raw('checkout', '-q', '-b', 'work', 'main')
  appendFileSync(join(checkout, 'README'), 'mine\n')
  world.raw('add', '-A')
  world.raw('commit', '-q', '-m', 'work')
  const tip = world.raw('rev-parse', 'work').trim()
  world.raw('checkout', '-q', '--detach', base)
  writeFileSync(join(checkout, 'new-on-base'), 'theirs\n')
  world.raw('add', '-A')
  world.raw('commit', '-q', '-m', 'theirs')
  const onto = world.raw('rev-parse', 'HEAD').trim()
  const bring = { onto: toSha(onto), tip: toSha(tip), branch: 'work', strategy: 'merge', title: undefined } as const
  const samples = await interleaved(
    {
      ours: {
        run: async () => {
          if ((await bringOnto(context, codebase, bring)).outcome !== 'brought') throw new Error('not brought')
        },
      },
      raw: {
        prepare: () => void world.raw('reset', '-q', '--hard', onto),
        run: () => world.byHand('merge', '-q', '--no-ff', '--no-edit', tip).then(() => undefined),
      },
    },
    { rounds: 9, settle: stage.settle },
  )
  return [ratioRow(`a speculative merge, ${files.toLocaleString('en')} files`, samples)]
}
