import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createConversations } from '../../src/conversations/conversations.ts'
import { AppError } from '../../src/domain/errors.ts'
import type { IsolationContext } from '../../src/isolation/context.ts'
import { createLogger } from '../../src/process/log.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { startPostgres, type TestPostgres } from '../helpers/postgres.ts'
import { takeInventory } from './inventory.ts'
import { checkMessages } from './messages-check.ts'
import type { Passing } from './messages-child.ts'
import { inLanes } from './messages-lanes.ts'
import { eachNameOnce, type MessageScenario, ofMessages, scenarios } from './messages-scenarios.ts'
import { makeMessageWorld, type MessageWorld, serveHere } from './messages-world.ts'
import { everyCase } from '../helpers/every-case.ts'
import { agentLog, engineOf, message, startEngine, untilQuiet } from './messages-workplace.ts'

const timeout = 5 * 60_000
const counts = { errors: 0, outages: 0, lost: 0 }

afterAll(() => {
  console.log(
    `messages under errors: ${counts.errors} injected, ${counts.outages} outages of the store, ${counts.lost} lost`,
  )
})

const settled = async (world: MessageWorld, scenario: MessageScenario, failures: boolean): Promise<void> => {
  const { problems } = await checkMessages(world, scenario.messages, { failures })
  counts.lost += problems.filter((problem) => problem.startsWith('G7')).length
  expect(problems.join('\n')).toBe('')
}

const passed = async (scenario: MessageScenario): Promise<Passing[]> => {
  await using world = await makeMessageWorld(scenario.platform)
  if (scenario.earlier !== undefined) await serveHere(world, world.context, scenario.earlier)
  const passings: Passing[] = []
  const failpoint = async (name: string): Promise<void> => {
    passings.push({ name, nth: passings.filter((one) => one.name === name).length })
  }
  await serveHere(world, { ...world.context, failpoint }, scenario.messages)
  return passings.filter(({ name }) => ofMessages.test(name))
}

/** No start in between: the server that met the error answers, and goes on answering. */
const failed = async (scenario: MessageScenario, at: Passing): Promise<void> => {
  await using world = await makeMessageWorld(scenario.platform)
  if (scenario.earlier !== undefined) await serveHere(world, world.context, scenario.earlier)
  const before = await takeInventory(world)
  let reached = 0
  const failpoint = async (name: string): Promise<void> => {
    if (name === at.name && reached++ === at.nth) throw new Error(`injected at ${name}`)
  }
  const context = { ...world.context, failpoint }
  const { conversations } = await startEngine(context, world.double)
  counts.errors += 1
  for (const one of scenario.messages) {
    // Not acknowledged: its platform sends it again.
    await conversations.accept(one).catch(() => conversations.accept(one))
  }
  await untilQuiet(context)
  // A closed conversation would begin anew, with a place and a notice of its own.
  const next = message(scenario.messages.some(({ kind }) => kind === 'closed') ? 'b' : 'a', 'and then')
  await conversations.accept(next)
  await untilQuiet(context)
  await conversations.stop(1_000)
  await settled(world, scenario, true)
  expect((await checkMessages(world, [next])).problems.join('\n')).toBe('')
  const mayKeep = before.environments.map(({ branch }) => branch)
  expect((await checkInvariants(world, { before, mayKeep })).join('\n')).toBe('')
}

/** Nothing that can fail lies between the row of a lease and the lock that is taken back with it. */
const onlyForKills = /^lease\.recorded$/

const failing = scenarios.filter(({ name }) => !name.startsWith('two messages'))

/**
 * Where each scenario fails. `npm test` takes each failpoint once, and the scenarios take turns; `npm run test:every-case`
 * takes every passing in every scenario.
 */
const placesOf = async (scenario: MessageScenario): Promise<readonly Passing[]> => {
  const passings = await Promise.all(failing.map((one) => (passedBy[one.name] ??= passed(one))))
  const wanted = passings.map((all) => all.filter(({ name }) => !onlyForKills.test(name)))
  const mine = wanted[failing.indexOf(scenario)] ?? []
  if (everyCase) return mine
  const names = [...new Set(wanted.flat().map(({ name }) => name))]
  const turn = (name: string): MessageScenario | undefined => {
    const passing = failing.filter((_one, i) => wanted[i]?.some((other) => other.name === name))
    return passing[names.indexOf(name) % passing.length]
  }
  return eachNameOnce(mine).filter(({ name }) => turn(name) === scenario)
}

const passedBy: Record<string, Promise<Passing[]>> = {}

describe('an error at every failpoint of a message', { timeout }, () => {
  test.each(failing.map((scenario) => [scenario.name, scenario] as const))('%s', async (_name, scenario) => {
    const problems: string[] = []
    const places = await placesOf(scenario)
    await inLanes(places, async (at) => {
      await failed(scenario, at).catch((error: unknown) => {
        problems.push(`${at.name} (${at.nth + 1}): ${error instanceof Error ? error.message : String(error)}`)
      })
    })
    expect(problems.join('\n\n')).toBe('')
    expect(places.length).toBeGreaterThan(2)
  })
})

const one: MessageScenario = { name: 'one', platform: 'cannot-tell', messages: [message('a', 'one')] }

/** Calls `away` at the failpoint, once `when` is true, and `back` when two tries to record something have failed. */
const outage = (
  context: IsolationContext,
  at: string,
  when: () => boolean,
  { away, back }: { readonly away: () => Promise<void> | void; readonly back: () => void },
): { context: IsolationContext; tried: () => number } => {
  let [tried, gone] = [0, false]
  const write = (line: string): void => {
    if (!line.includes("couldn't write to the store yet")) return
    tried += 1
    if (tried === 2) back()
  }
  const failpoint = async (name: string): Promise<void> => {
    if (name !== at || gone || !when()) return
    gone = true
    counts.outages += 1
    await away()
  }
  const log = createLogger({ write, level: 'warn', clock: Date.now, redact: (text) => text })
  return { context: { ...context, failpoint, log }, tried: () => tried }
}

const hasRun = ({ box }: MessageWorld): boolean => agentLog(box).some(({ what }) => what === 'end')

describe('a store that is away for a moment', { timeout }, () => {
  test.each(['run.ended', 'message.worked', 'reply.sent'])(
    'since %s: nothing is lost, run again or said twice',
    async (at) => {
      await using world = await makeMessageWorld('cannot-tell')
      if (!('sqliteFile' in world.target)) throw new Error('this is about SQLite')
      // The other one holds it for as long as it likes; ours gives up after a tenth of a second.
      const store = await openStore(world.target, { busy: 100 })
      using other = new DatabaseSync(world.target.sqliteFile)
      const { context, tried } = outage({ ...world.context, store }, at, () => hasRun(world), {
        away: () => other.exec('begin immediate'),
        back: () => other.exec('rollback'),
      })
      await serveHere(world, context, one.messages)
      await store.close()
      expect(tried()).toBeGreaterThanOrEqual(2)
      await settled(world, one, false)
      expect(world.double.doubled()).toBe(0)
      expect(agentLog(world.box).map(({ what, attempt }) => `${what} ${attempt}`)).toEqual(['start 1', 'end 1'])
    },
  )

  test('while the end is being recorded, and for good: it is put back and run again without a restart', async () => {
    await using world = await makeMessageWorld('tells')
    let refused = 0
    const store: Store = {
      ...world.context.store,
      transaction: (work) =>
        world.context.store.transaction(async (inside) => {
          const result = await work(inside)
          // The end of the message, and then the sentence about that.
          const ends = (await inside.inbox.running()).length === 0 && (await inside.inbox.counts()).waiting === 0
          if (ends && hasRun(world) && refused++ < 2) {
            throw new AppError('unexpected', 'the store is away for longer than anybody waits')
          }
          return result
        }),
    }
    await withTick(world, { ...world.context, store })
    counts.outages += 1
    await settled(world, one, false)
    expect(refused).toBeGreaterThanOrEqual(2)
    expect(agentLog(world.box).map(({ what, attempt }) => `${what} ${attempt}`)).toEqual([
      'start 1',
      'end 1',
      'start 2',
      'end 2',
    ])
  })

  test('while a message is being claimed: one that is ours without our knowing is put back', async () => {
    await using world = await makeMessageWorld('tells')
    const { store } = world.context
    let lost = 0
    const inbox: Store['inbox'] = {
      ...store.inbox,
      claim: async (request) => {
        const claimed = await store.inbox.claim(request)
        if (claimed === undefined || lost > 0) return claimed
        lost += 1
        throw new Error('the connection broke after the commit')
      },
    }
    await withTick(world, { ...world.context, store: { ...store, inbox } })
    counts.outages += 1
    expect(lost).toBe(1)
    await settled(world, one, false)
  })
})

/** As `serveHere`, looking around every 50 ms instead of every 20 s. */
const withTick = async (world: MessageWorld, context: IsolationContext): Promise<void> => {
  const { context: parts, outbox } = engineOf(context, world.double)
  const conversations = createConversations(parts, { outbox, tickMs: 50 })
  await conversations.start()
  try {
    for (const each of one.messages) await conversations.accept(each)
    await untilQuiet(context)
  } finally {
    await conversations.stop(1_000)
  }
}

describe('PostgreSQL', { timeout }, () => {
  let server: TestPostgres | undefined
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server?.stop())

  const terminateAll = async (url: string): Promise<void> => {
    const client = new Client(url)
    await client.connect()
    // With a time: a busy machine ends them later than it answers, and then in the middle of what comes next.
    await client.query(
      'select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    )
    await client.end()
  }

  /** Read through connections that nobody has ended. */
  const settledAfterOutage = async (world: MessageWorld, failures: boolean): Promise<void> => {
    const store = await openStore(world.target)
    try {
      await settled({ ...world, context: { ...world.context, store } }, one, failures)
    } finally {
      await store.close()
    }
  }

  const before = ['inbox.accepted', 'message.claimed', 'run.session', 'run.began'] as const
  const after = ['run.ended', 'message.worked', 'message.finished', 'reply.sent'] as const
  test.each([...before.map((at) => [at, false] as const), ...after.map((at) => [at, true] as const)])(
    'ends all connections at %s: nothing is lost or said twice',
    async (at, ran) => {
      const databaseUrl = (await server?.freshDatabase()) ?? ''
      await using world = await makeMessageWorld('cannot-tell', { databaseUrl })
      const { context } = outage(world.context, at, () => hasRun(world) === ran, {
        away: () => terminateAll(databaseUrl),
        back: () => undefined,
      })
      await serveHere(world, context, one.messages)
      // Before the agent has done anything a sentence about it is an answer; afterwards its reply is the only one.
      await settledAfterOutage(world, !ran)
      expect(world.double.doubled()).toBe(0)
      expect(agentLog(world.box).filter(({ what }) => what === 'end').length).toBeLessThanOrEqual(1)
    },
  )

  test('ends the connection before the end of a message is committed: it is recorded once', async () => {
    const databaseUrl = (await server?.freshDatabase()) ?? ''
    await using world = await makeMessageWorld('cannot-tell', { databaseUrl })
    let ended = 0
    const store: Store = {
      ...world.context.store,
      transaction: (work) =>
        world.context.store.transaction(async (inside) => {
          const result = await work(inside)
          if (hasRun(world) && ended++ === 0) await terminateAll(databaseUrl)
          return result
        }),
    }
    await serveHere(world, { ...world.context, store }, one.messages)
    counts.outages += 1
    expect(ended).toBeGreaterThan(1)
    await settledAfterOutage(world, false)
    expect(agentLog(world.box).map(({ what, attempt }) => `${what} ${attempt}`)).toEqual(['start 1', 'end 1'])
  })
})
