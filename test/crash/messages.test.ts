import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkInvariants, checkRecoveredOnce, type Expectations } from '../helpers/invariants.ts'
import { startPostgres, type TestPostgres } from '../helpers/postgres.ts'
import { takeInventory } from './inventory.ts'
import { appears, temporaryOf } from './kill.ts'
import { absentOrHandled, checkMessages } from './messages-check.ts'
import type { Passing } from './messages-child.ts'
import { inLanes } from './messages-lanes.ts'
import { eachPartOnce, first, type MessageScenario, ofMessages, scenarios } from './messages-scenarios.ts'
import { makeMessageWorld, type MessageWorld, serveHere, serveMessages } from './messages-world.ts'
import { agentLog, message } from './messages-workplace.ts'
import { failpointsIn } from './source-failpoints.ts'
import { everyCase } from '../helpers/every-case.ts'

const timeout = 10 * 60_000
const exercised = new Set<string>()
/** Left to PostgreSQL, which takes the same ones of the same scenario. */
const onPostgres = new Set<string>()
const counts = { kills: 0, messages: 0, replies: 0, deliveries: 0, reruns: 0, lost: 0 }
const doubled = { tells: 0, 'cannot-tell': 0 }

afterAll(() => {
  const { kills, messages, replies, deliveries, reruns, lost } = counts
  console.log(
    `messages under kill -9: ${kills} kills, ${messages} messages in, ${replies} agent replies recorded, ` +
      `${reruns} run again, ${deliveries} parts shown; sent twice: ${doubled.tells} to a platform that can tell ` +
      `(shown once), ${doubled['cannot-tell']} to one that cannot; ${lost} lost`,
  )
})

type Make = (scenario: MessageScenario) => Promise<MessageWorld>
const onSqlite: Make = ({ platform, limit }) => makeMessageWorld(platform, { limit })

const prepare = async (scenario: MessageScenario, world: MessageWorld): Promise<Expectations> => {
  if (scenario.earlier !== undefined) await serveHere(world, world.context, scenario.earlier)
  const before = await takeInventory(world)
  const mayKeep = before.environments.map(({ branch }) => branch)
  return { before, mayKeep, temporary: temporaryOf(world) }
}

const hold = async (scenario: MessageScenario, world: MessageWorld, expectations: Expectations): Promise<void> => {
  const found = await checkMessages(world, [...(scenario.earlier ?? []), ...scenario.messages])
  const problems = [
    ...found.problems,
    ...(await checkInvariants(world, expectations)),
    ...((await scenario.after?.(world)) ?? []),
  ]
  counts.lost += problems.filter((problem) => /^G[17]/.test(problem)).length
  if (problems.length > 0) throw new Error(problems.join('\n  '))
  for (const name of ['messages', 'replies', 'deliveries', 'reruns'] as const) counts[name] += found[name]
  doubled[scenario.platform] += world.double.doubled()
}

/** What an unharmed server passes, each by its name and how often that came before. */
const record = async (scenario: MessageScenario, make: Make): Promise<Passing[]> => {
  await using world = await make(scenario)
  const expectations = await prepare(scenario, world)
  const passings: Passing[] = []
  const failpoint = async (name: string): Promise<void> => {
    passings.push({ name, nth: passings.filter((one) => one.name === name).length })
  }
  await serveHere(world, { ...world.context, failpoint }, scenario.messages)
  await hold(scenario, world, expectations)
  const wanted = passings.filter(({ name }) => scenario.only?.test(name) ?? true)
  if (everyCase) return wanted
  // `npm test` kills at each failpoint once, on one of the databases; `npm run test:every-case` in every scenario on both.
  const ofBoth = eachPartOnce(wanted.filter(({ name }) => ofMessages.test(name)))
  if (scenario === first) for (const { name } of ofBoth) onPostgres.add(name)
  return [...(scenario.usually?.(wanted) ?? wanted)].filter(
    ({ name }) => make !== onSqlite || !(exercised.has(name) || onPostgres.has(name)),
  )
}

const killed = async (scenario: MessageScenario, make: Make, killAt: Passing): Promise<void> => {
  await using world = await make(scenario)
  const expectations = await prepare(scenario, world)
  const served = await serveMessages(world, scenario.messages, killAt)
  if (!served.killed) throw new Error(`it was not killed: ${served.output}`)
  counts.kills += 1
  await recovers(scenario, world, expectations, served.acknowledged)
}

/** The next start finds everything; what was not acknowledged is sent again by its platform; a third start has nothing to do. */
const recovers = async (
  scenario: MessageScenario,
  world: MessageWorld,
  expectations: Expectations,
  acknowledged: ReadonlySet<string>,
): Promise<void> => {
  await serveHere(world, world.context)
  const unheard = scenario.messages.filter(({ deliveryId }) => !acknowledged.has(deliveryId))
  for (const one of unheard) expect(await absentOrHandled(world, one)).toEqual([])
  if (unheard.length > 0) await serveHere(world, world.context, unheard)
  await hold(scenario, world, expectations)
  const shown = world.double.shown.length
  expect(await checkRecoveredOnce(world)).toEqual([])
  await serveHere(world, world.context, scenario.messages)
  expect(world.double.shown.length - shown, 'said at a third start').toBe(0)
}

const sweep = async (scenario: MessageScenario, make: Make): Promise<void> => {
  const problems: string[] = []
  await inLanes(await record(scenario, make), async (passing) => {
    const at = `${passing.name} (${passing.nth + 1})`
    exercised.add(passing.name)
    await killed(scenario, make, passing).catch((error: unknown) => {
      problems.push(`killed at ${at}: ${error instanceof Error ? error.message : String(error)}`)
    })
  })
  expect(problems.join('\n\n')).toBe('')
}

describe('a server killed at every failpoint from accept to delivered', { timeout }, () => {
  test.each(scenarios.map((scenario) => [scenario.name, scenario] as const))('%s', (_name, scenario) =>
    sweep(scenario, onSqlite),
  )

  describe('on PostgreSQL', () => {
    let server: TestPostgres | undefined
    beforeAll(async () => {
      server = await startPostgres()
    })
    afterAll(() => server?.stop())

    test('the first message of a thread, there', () =>
      sweep({ ...first, only: ofMessages, usually: eachPartOnce }, async ({ platform }) =>
        makeMessageWorld(platform, { databaseUrl: await server?.freshDatabase() }),
      ))
  })
})

test(
  'an agent that outlived its server is dead before the next one starts, with what it started',
  { timeout },
  async () => {
    const slow: MessageScenario = { name: 'slow', platform: 'tells', messages: [message('a', 'slow')] }
    await using world = await onSqlite(slow)
    const expectations = await prepare(slow, world)
    const served = await serveMessages(world, slow.messages, undefined, async (pid) => {
      await appears(world.box.path('agent-runs'))
      process.kill(pid, 'SIGKILL')
    })
    expect(served.killed).toBe(true)
    counts.kills += 1
    const grandchild = readFileSync(world.box.path('grandchild'), 'utf8').trim()
    // It outlives the server. Before it is `sleep`, it is called `setsid`.
    await expect.poll(() => stateOf(grandchild)).toBe('sleep')
    await recovers(slow, world, expectations, served.acknowledged)
    expect(stateOf(grandchild)).not.toBe('sleep')
    expect(agentLog(world.box).map(({ what, attempt }) => `${what} ${attempt}`)).toEqual([
      'start 1',
      'start 2',
      'end 2',
    ])
  },
)

/** The command of a process that lives; a zombie has none. */
const stateOf = (pid: string): string => {
  try {
    const [state, command] = execFileSync('ps', ['-o', 'stat=,comm=', '-p', pid], { encoding: 'utf8' })
      .trim()
      .split(/\s+/)
    return state?.startsWith('Z') === true ? '' : (command ?? '')
  } catch {
    return ''
  }
}

test('no failpoint on the way of a message was left out', () => {
  const names = failpointsIn('of messages')
  expect(names.length).toBeGreaterThan(10)
  expect(names.filter((name) => !exercised.has(name))).toEqual([])
})
