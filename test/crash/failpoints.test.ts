import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { providerNames } from '../../src/domain/provider-name.ts'
import { type Expectations, checkInvariants, checkRecoveredOnce } from '../helpers/invariants.ts'
import type { World } from '../helpers/world.ts'
import { branchesOf, takeInventory } from './inventory.ts'
import { killAt, temporaryOf } from './kill.ts'
import { operations, recover } from './operations.ts'
import { makeScenarioWorld } from './arrange.ts'
import { type Scenario, scenarios, unusedVariants } from './scenarios.ts'
import { everyCase } from '../helpers/every-case.ts'
import { failpointsIn } from './source-failpoints.ts'

/** A scenario is a dozen worlds, and the others run beside it. */
const timeout = 10 * 60_000
const exercised = new Set<string>()
const counts = { kills: 0, faults: 0, lost: 0 }
const outer = process.env['TMPDIR']
let temporary = ''

beforeAll(() => {
  temporary = mkdtempSync(join(tmpdir(), 'coppice-crash-'))
  process.env['TMPDIR'] = temporary
})

afterAll(() => {
  const left = readdirSync(temporary)
  rmSync(temporary, { recursive: true, force: true })
  if (outer === undefined) delete process.env['TMPDIR']
  else process.env['TMPDIR'] = outer
  console.log(`crash suite: ${counts.kills} kills, ${counts.faults} faults, ${counts.lost} lost`)
  expect(left).toEqual([])
})

/** The world just before the operation, and all that must survive it. */
const prepare = async (scenario: Scenario, world: World): Promise<Expectations> => {
  await scenario.arrange?.(world)
  const strangers = scenario.strangers?.(world) ?? []
  const branches = branchesOf(world)
  await scenario.interrupt?.(world)
  if (everyCase && scenario.interrupt !== undefined) counts.kills += 1
  const before = await takeInventory(world, strangers)
  // A branch that the first crash left half-made is debris, not something that was there.
  return {
    before: { ...before, branches },
    mayKeep: scenario.mayKeep ?? [],
    strangers,
    temporary: temporaryOf(world),
  }
}

const hold = async (world: World, expectations: Expectations, when: string): Promise<void> => {
  const broken = await checkInvariants(world, expectations)
  counts.lost += broken.filter((problem) => problem.startsWith('G1')).length
  if (broken.length > 0) throw new Error(`${when}:\n  ${broken.join('\n  ')}`)
}

const once = <T>(make: () => Promise<T>): (() => Promise<T>) => {
  let made: Promise<T> | undefined
  return () => (made ??= make())
}

const recorded = new Map<Scenario, Promise<string[]>>()

/** The names that the operation passes, in order. Kills and errors of a scenario share the recording. */
const record = (scenario: Scenario): Promise<string[]> => {
  const names = recorded.get(scenario) ?? recordNow(scenario)
  recorded.set(scenario, names)
  return names
}

const recordNow = async (scenario: Scenario): Promise<string[]> => {
  const names: string[] = []
  await using world = await makeScenarioWorld(scenario)
  const expectations = await prepare(scenario, world)
  const context = { ...world.context, failpoint: async (name: string) => void names.push(name) }
  await operations[scenario.operation](context, world.codebase)
  await hold(world, expectations, 'unharmed')
  await scenario.after?.(world)
  return names
}

/** A world that an operation is done in, and what recovery has to bring back. */
type Scene = {
  readonly scenario: Scenario
  readonly world: World
  readonly expectations: Expectations
  readonly subject: string
}

const arranged = async (scenario: Scenario): Promise<Scene> => {
  const world = await makeScenarioWorld(scenario)
  try {
    const expectations = await prepare(scenario, world)
    return { scenario, world, expectations, subject: await subjectOf(world) }
  } catch (error) {
    await world[Symbol.asyncDispose]()
    throw error
  }
}

/** What operations are about. If it is as it was, the operation can be done in this world as if for the first time. */
const subjectOf = async ({ context, codebase }: World): Promise<string> => {
  const { store, host } = context
  const environments = await store.environments.live(codebase.id)
  return JSON.stringify([
    environments.map(({ id, status, path }) => [id, status, path]),
    (await store.spares.list(codebase.id)).map(({ path }) => path),
    (await store.codebases.list(host)).map(({ id }) => id),
    await store.leases.all(host),
  ])
}

type Harm = (scene: Scene, at: Passing) => Promise<void>

const killed: Harm = async ({ scenario, world, expectations }, { name, index, nth }) => {
  await killAt(world, scenario.operation, nth === 0 ? name : index)
  exercised.add(name)
  counts.kills += 1
  const left = await recover(world.context, world.codebase)
  expect(left.join('\n'), `recovery after ${name}`).toBe('')
  await hold(world, expectations, `after a kill at ${name} and recovery`)
  expect((await checkRecoveredOnce(world)).join('\n'), `after a kill at ${name}`).toBe('')
}

/** No crash but an error: the operation cleans up after itself, and nobody has to recover anything. */
const failed: Harm = async ({ scenario, world, expectations }, { name, nth }) => {
  let reached = 0
  const failpoint = async (passed: string): Promise<void> => {
    if (passed === name && reached++ === nth) throw new Error(`injected at ${name}`)
  }
  counts.faults += 1
  await operations[scenario.operation]({ ...world.context, failpoint }, world.codebase).catch(() => undefined)
  if (reached <= nth) throw new Error('the failpoint was not passed')
  await hold(world, expectations, `after an error at ${name}`)
}

const again = async ({ scenario, world, expectations }: Scene, name: string): Promise<void> => {
  await operations[scenario.operation](world.context, world.codebase)
  await hold(world, expectations, `after ${name} and doing it again`)
  await scenario.after?.(world)
}

const isWanted = ({ only = /^/, usually = /^/ }: Scenario, name: string): boolean =>
  only.test(name) && (everyCase || usually.test(name))

/** The first scenario of each kind of environment and each operation that passes a failpoint. */
const owners = once(async () => {
  const lanes = [0, 1, 2].map(async (lane) => {
    for (let at = lane; at < scenarios.length; at += 3) await record(scenarios[at]!).catch(() => [])
  })
  await Promise.all(lanes)
  const found = new Map<string, Scenario>()
  for (const scenario of scenarios) {
    for (const name of await record(scenario).catch(() => [])) {
      const key = keyOf(scenario, name)
      if (isWanted(scenario, name) && !found.has(key)) found.set(key, scenario)
    }
  }
  return found
})

const keyOf = ({ operation, options }: Scenario, name: string): string =>
  `${options?.settings?.isolationProvider ?? 'worktree'} ${operation === 'reconcile' ? 'recovering' : ''} ${name}`

/** `npm test` kills at each failpoint once per kind of environment; `npm run test:every-case` in every scenario. */
const killedIn = async (scenario: Scenario, names: readonly string[]): Promise<ReadonlySet<string>> => {
  if (everyCase) return new Set(names)
  const first = await owners()
  return new Set(names.filter((name) => first.get(keyOf(scenario, name)) === scenario))
}

type Passing = { readonly name: string; readonly index: number; readonly nth: number }

/**
 * Harms the operation at each place and does it again. In `npm test` doing it again is being harmed one place later,
 * where recovery has put everything back; `npm run test:every-case` does it again to its end each time, in a new world.
 * Every failure of a scenario is in one report: the pattern says more than the first of them.
 */
const harmAtEach = async (scenario: Scenario, places: readonly Passing[], harm: Harm): Promise<void> => {
  const problems: string[] = []
  let scene: Scene | undefined
  const end = async (): Promise<void> => {
    await scene?.world[Symbol.asyncDispose]()
    scene = undefined
  }
  for (const place of places) {
    try {
      scene ??= await arranged(scenario)
      await harm(scene, place)
      const isLast = everyCase || scenario.interrupt !== undefined || place === places.at(-1)
      if (!isLast && (await subjectOf(scene.world)) === scene.subject) continue
      await again(scene, place.name)
    } catch (error) {
      problems.push(`${place.name}: ${error instanceof Error ? error.message : String(error)}`)
    }
    await end()
  }
  expect(problems.join('\n\n')).toBe('')
}

const placesIn = (scenario: Scenario, names: readonly string[]): Passing[] =>
  names
    .map((name, index) => ({ name, index, nth: names.slice(0, index).filter((other) => other === name).length }))
    .filter(({ name }) => isWanted(scenario, name))

describe.concurrent('a process killed at every failpoint', { timeout }, () => {
  test.each(scenarios.map((scenario) => [scenario.name, scenario] as const))('of %s', async (_name, scenario) => {
    const names = await record(scenario)
    const here = await killedIn(scenario, names)
    const places = placesIn(scenario, names).filter(({ name }) => here.has(name))
    await harmAtEach(scenario, places, killed)
  })
})

/** Nothing that can fail lies between the intent and what it is the intent of, or between the record and its answer. */
const onlyForKills = /\.intent$|^remove\.recorded$/
const failing = scenarios.filter(({ errors = false }) => errors !== false)

describe.concurrent('an error at every failpoint', { timeout }, () => {
  test.each(failing.map((scenario) => [scenario.name, scenario] as const))('of %s', async (_name, scenario) => {
    const { errors, usually } = scenario
    const names = await record(scenario)
    const where = errors instanceof RegExp ? errors : usually
    const places = placesIn({ ...scenario, ...(where && { usually: where }) }, names)
    await harmAtEach(
      scenario,
      places.filter(({ name }) => !onlyForKills.test(name)),
      failed,
    )
  })
})

/** What only a message passes is swept in messages.test.ts, which looks for its own in the same way. */
test('no failpoint in the source was left out', () => {
  const names = failpointsIn('others').flatMap((name) => (name.includes('${') ? ofBothKinds(name) : [name]))
  expect(names.length).toBeGreaterThan(30)
  expect(names.filter((name) => !exercised.has(name))).toEqual([])
})

test('every provider has scenarios', () => {
  const providers = scenarios.map(({ options }) => options?.settings?.isolationProvider ?? 'worktree')
  expect(providerNames.filter((name) => !providers.includes(name))).toEqual([])
  expect(unusedVariants).toEqual([])
})

/** `${kind}.x` stands for a creation and a restore; a restore never takes a spare. */
const ofBothKinds = (name: string): string[] =>
  (name.includes('.spare-') ? ['create'] : ['create', 'restore']).map((kind) => name.replace(/^\$\{[^}]+\}/, kind))
