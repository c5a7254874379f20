import { existsSync, readFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { keepSpares } from '../../../src/isolation/providers/worktree/spare.ts'
import { reconcile } from '../../../src/isolation/reconcile.ts'
import { type Expectations, checkInvariants, checkRecoveredOnce } from '../../helpers/invariants.ts'
import type { World, WorldOptions } from '../../helpers/world.ts'
import { takeInventory } from '../inventory.ts'
import { gitWrapper, startChild, temporaryOf } from '../kill.ts'
import { type OperationName, operations } from '../operations.ts'
import { makeDirty, makeScenarioWorld } from '../arrange.ts'
import { said } from '../../helpers/words.ts'

/** Every call with which git changes something; each is a moment at which it can die. */
const mutating = [
  'mkdir,mkdirat,rmdir,unlink,unlinkat,rename,renameat,renameat2,link,linkat,symlink,symlinkat',
  'write,pwrite64,ftruncate,fsync,fdatasync,chmod,fchmod,fchmodat,openat',
].join(',')

type Sweep = {
  readonly command: string
  readonly operation: OperationName
  readonly options?: WorldOptions
  readonly arrange?: (world: World) => Promise<unknown>
  readonly mayKeep?: readonly string[]
}

const fromSpare: Omit<Sweep, 'command'> = {
  operation: 'create-fresh',
  options: { settings: { spares: 1 } },
  arrange: (world) => keepSpares(world.context, world.codebase),
}

const sweeps: readonly Sweep[] = [
  { command: 'worktree add', operation: 'create-fresh' },
  { command: 'reset', operation: 'create-fresh' },
  { command: 'update-ref', ...fromSpare },
  { command: 'symbolic-ref', ...fromSpare },
  { command: 'worktree remove', operation: 'remove-forced', arrange: makeDirty, mayKeep: ['issue-5'] },
]

const counts = { runs: 0, lost: 0 }
afterAll(() => console.log(`system calls: ${counts.runs} kills, ${counts.lost} lost`))

/** The n-th call of that name in any one process of the command. */
type Moment = { readonly call: string; readonly n: number }

const traced = (world: World, command: string, inject: string): { bin: string; log: () => string } => {
  const file = world.box.path('strace.log')
  const bin = gitWrapper(
    world,
    // Only the first time: undoing what git left half done may take the same command.
    `case " $* " in *" ${command} "*) [ -e '${file}' ] || exec strace -f -q -o '${file}' -e trace=${mutating} ${inject} "$REAL" "$@";; esac
exec "$REAL" "$@"`,
  )
  return { bin, log: () => (existsSync(file) ? readFileSync(file, 'utf8') : '') }
}

/** A git that dies at that moment of this command; whoever started it lives on. */
const dyingGit = (world: World, command: string, { call, n }: Moment): { bin: string; died: () => boolean } => {
  const { bin, log } = traced(world, command, `-e inject=${call}:signal=KILL:when=${n}`)
  return { bin, died: () => log().includes('+++ killed by SIGKILL +++') }
}

/** The moments of an unharmed run. strace counts each call by its name and for each process from one. */
const moments = async (sweep: Sweep): Promise<Moment[]> => {
  await using world = await arranged(sweep)
  const { bin, log } = traced(world, sweep.command, '')
  world.box.env['PATH'] = `${bin}:${world.box.env['PATH']}`
  await operations[sweep.operation](world.context, world.codebase)
  const seen = new Map<string, number>()
  const found = new Map<string, Moment>()
  for (const [, pid, call = '', rest = ''] of log().matchAll(/^(\d+)\s+(\w+)\((.*)$/gm)) {
    const n = (seen.get(`${pid} ${call}`) ?? 0) + 1
    seen.set(`${pid} ${call}`, n)
    if (call !== 'openat' || rest.includes('O_CREAT')) found.set(`${call} ${n}`, { call, n })
  }
  return [...found.values()]
}

const arranged = async (sweep: Sweep): Promise<World> => {
  const world = await makeScenarioWorld(sweep)
  await sweep.arrange?.(world)
  return world
}

const expectationsOf = async (world: World, { mayKeep = [] }: Sweep): Promise<Expectations> => ({
  before: await takeInventory(world),
  mayKeep,
  temporary: temporaryOf(world),
})

const hold = async (world: World, expectations: Expectations, when: string): Promise<void> => {
  const broken = await checkInvariants(world, expectations)
  counts.lost += broken.filter((problem) => problem.startsWith('G1')).length
  if (broken.length > 0) throw new Error(`${when}:\n  ${broken.join('\n  ')}`)
}

/** Git dies under us and we live: the operation takes back what was half done, or goes another way. */
const weLive = async (sweep: Sweep, moment: Moment): Promise<void> => {
  await using world = await arranged(sweep)
  const expectations = await expectationsOf(world, sweep)
  const path = world.box.env['PATH'] ?? ''
  const { bin, died } = dyingGit(world, sweep.command, moment)
  world.box.env['PATH'] = `${bin}:${path}`
  await operations[sweep.operation](world.context, world.codebase).catch(() => undefined)
  world.box.env['PATH'] = path
  if (!died()) throw new Error(`git did not die at ${name(moment)}`)
  await hold(world, expectations, `git died at ${name(moment)}`)
  await operations[sweep.operation](world.context, world.codebase)
  await hold(world, expectations, `git died at ${name(moment)}, done again`)
}

/** Git dies, and so do we as soon as it is seen: whatever of git is left goes on without us. */
const weDie = async (sweep: Sweep, moment: Moment): Promise<void> => {
  await using world = await arranged(sweep)
  const expectations = await expectationsOf(world, sweep)
  const { bin, died } = dyingGit(world, sweep.command, moment)
  const { child, ended } = startChild(world, { operation: sweep.operation, killAt: undefined }, bin)
  const watching = stopWhen(died, () => child.kill('SIGKILL'))
  await ended
  watching.end()
  if (!died()) throw new Error(`git did not die at ${name(moment)}`)
  const { left } = await reconcile(world.context, world.codebase)
  if (left.length > 0) throw new Error(`git died at ${name(moment)}, and so did we: left ${said(left).join('; ')}`)
  await hold(world, expectations, `git died at ${name(moment)}, and so did we`)
  const again = await checkRecoveredOnce(world)
  if (again.length > 0) throw new Error(`git died at ${name(moment)}, and so did we:\n  ${again.join('\n  ')}`)
  await operations[sweep.operation](world.context, world.codebase)
  await hold(world, expectations, `git died at ${name(moment)}, and so did we; done again`)
}

const stopWhen = (condition: () => boolean, stop: () => void): { end: () => void } => {
  const timer = setInterval(() => {
    if (condition()) stop()
  }, 1)
  return { end: () => clearInterval(timer) }
}

const name = ({ call, n }: Moment): string => `${call} ${n}`

/** All failures of a series in one report: the pattern says more than the first of them. */
const sweepAll = async (sweep: Sweep, one: (sweep: Sweep, moment: Moment) => Promise<void>): Promise<void> => {
  const problems: string[] = []
  const all = await moments(sweep)
  expect(all.length).toBeGreaterThan(1)
  const queue = all.values()
  const work = async (): Promise<void> => {
    for (const moment of queue) {
      counts.runs += 1
      await one(sweep, moment).catch((error: unknown) => {
        problems.push(error instanceof Error ? error.message : String(error))
      })
    }
  }
  await Promise.all([work(), work()])
  expect(problems.join('\n\n')).toBe('')
}

describe.each(sweeps.map((sweep) => [sweep.command, sweep] as const))(
  'git %s killed at every changing call',
  (_name, sweep) => {
    test('we live and clean up', () => sweepAll(sweep, weLive))
    test('we die with it and recover', () => sweepAll(sweep, weDie))
  },
)
