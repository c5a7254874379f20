import { expect, test } from 'vitest'
import { createLogger } from '../../src/process/log.ts'
import type { RecentConversation } from '../../src/platforms/memory.ts'
import { createCatchUp } from '../../src/platforms/slack/catch-up.ts'
import { createSlackClient } from '../../src/platforms/slack/client.ts'
import { identify } from '../../src/platforms/slack/identify.ts'
import type { SlackMessage } from '../../src/platforms/slack/message/parse.ts'
import { memoryForTest } from '../helpers/platform-memory.ts'
import { slackScene } from './slack-arrange.ts'
import { BOT, BOT_TOKEN, mentionOf, startSlackDouble } from './slack-double.ts'

const call = `<@${BOT.user}>`
const HOUR = 3_600
const DAY = 24 * HOUR

/** A workspace, a server that stopped at `since`, and the time now; both in Slack's seconds. */
const outage = async (options: { readonly since?: number; readonly recent?: readonly string[] } = {}) => {
  const slack = await startSlackDouble()
  const log: string[] = []
  const recent: RecentConversation[] = []
  const memory = memoryForTest(recent)
  const handled: SlackMessage[] = []
  const pauses: number[] = []
  const stopping = new AbortController()
  const logger = createLogger({
    write: (line) => log.push(line),
    level: 'info',
    clock: Date.now,
    redact: (text) => text,
  })
  const client = createSlackClient(BOT_TOKEN, logger, slack.apiUrl)
  const first = Number(slack.say('C0', 'U9', 'before').ts)
  const time = { now: (first + HOUR) * 1000, failures: 0 }
  if (options.since !== undefined) await memory.set('seen:workspace', String(first + options.since))
  const catchUp = createCatchUp({
    client,
    memory,
    clock: () => time.now,
    log: logger,
    pause: async (ms) => void pauses.push(ms),
    handle: async (parsed) => {
      if (time.failures > 0) {
        time.failures -= 1
        throw new Error('the disk is full')
      }
      if ('message' in parsed) handled.push(parsed.message)
      const { onHandled } = world
      world.onHandled = undefined
      onHandled?.()
      return true
    },
  })
  const self = await identify(client)
  const world = {
    slack,
    log,
    /** Called once. */
    onHandled: undefined as (() => void) | undefined,
    recent,
    memory,
    handled,
    pauses,
    time,
    catchUp,
    run: () => catchUp.run(self, stopping.signal),
    texts: () => handled.map(({ text }) => text),
    called: (method: string) => slack.calls.filter((one) => one.method === method).length,
    [Symbol.asyncDispose]: () => slack[Symbol.asyncDispose](),
  }
  return world
}

test('nothing is read on the very first start, and from then on what comes later is', async () => {
  await using world = await outage()
  world.slack.say('C1', 'U1', `${call} long before`)
  await world.run()
  expect(world.called('conversations.history')).toBe(0)
  world.time.now += HOUR * 1000
  world.slack.say('D1', 'U1', 'missed', undefined, { ts: `${Math.floor(world.time.now / 1000) - 60}.000100` })
  await world.run()
  expect(world.texts()).toEqual(['missed'])
})

test('what was missed is found: direct messages, mentions, and both in threads; each as the live event would have been', async () => {
  await using world = await outage({ since: 0 })
  const { slack, handled, recent, time } = world
  const direct = slack.say('D1', 'U1', 'fix the login')
  slack.say('D1', 'U1', 'and the test', direct.ts)
  slack.say('C1', 'U1', 'nothing for the bot')
  const mention = slack.say('C1', 'U1', `${call} fix the logout`)
  slack.say('C1', 'U2', `${call} hurry`, mention.ts)
  // A thread older than the outage, in which we take part.
  const old = slack.say('C2', 'U1', `${call} handled long ago`, undefined, { ts: '1712000000.000100' }).ts
  recent.push({ conversationId: `C2:${old}`, lastActivityAt: time.now - DAY * 1000 })
  slack.say('C2', 'U1', `${call} continue`, old)
  slack.say('C1', BOT.user, `${call} our own`, undefined)
  slack.say('C1', 'U7', `${call} from a bot`, undefined, { bot_id: 'B7' })
  await world.run()
  expect(world.texts().toSorted()).toEqual(['and the test', 'continue', 'fix the login', 'fix the logout', 'hurry'])
  expect(handled.find(({ text }) => text === 'fix the logout')).toMatchObject({
    deliveryId: `C1:${mention.ts}`,
    threadTs: mention.ts,
  })
  expect(handled.find(({ text }) => text === 'continue')?.threadTs).toBe(old)
  // Root before reply.
  expect(world.texts().indexOf('fix the login')).toBeLessThan(world.texts().indexOf('and the test'))
  expect(world.log.join('')).toContain('caught up with Slack')
})

test('it reads at a pace, waits as long as Slack asks, and goes on', async () => {
  await using world = await outage({ since: 0 })
  const { slack, pauses } = world
  slack.say('C1', 'U1', `${call} go`)
  slack.fail('conversations.history', [{ status: 429, retryAfter: 30 }])
  await world.run()
  expect(world.texts()).toEqual(['go'])
  expect(pauses).toContain(30_000)
  expect(pauses.filter((ms) => ms >= 1_000).length).toBeGreaterThanOrEqual(world.called('conversations.history'))
})

test('when it fails midway nothing is skipped: it begins again, and a live message does not move the mark', async () => {
  await using world = await outage({ since: 0 })
  const { slack, time, catchUp, memory } = world
  slack.say('C1', 'U1', `${call} one`)
  slack.say('C2', 'U1', `${call} two`)
  time.failures = 1
  const before = await memory.get('seen:workspace')
  const running = world.run()
  await catchUp.onAccepted('1999999999.000100')
  expect(await memory.get('seen:workspace')).toBe(before)
  await running
  expect(world.texts()).toEqual(['one', 'two'])
  expect(await memory.get('seen:workspace')).toBe((time.now / 1000).toFixed(6))
})

test('it goes back three days at most, and says so', async () => {
  await using world = await outage({ since: 0 })
  const { slack, time } = world
  slack.say('C1', 'U1', `${call} too old`)
  time.now += 4 * DAY * 1000
  slack.say('C1', 'U1', `${call} recent`, undefined, { ts: `${Math.floor(time.now / 1000) - HOUR}.000100` })
  await world.run()
  expect(world.texts()).toEqual(['recent'])
  expect(world.log.join('')).toMatch(/not caught up on.*older than three days/)
})

test('it handles no more than 200 messages, and says so', async () => {
  await using world = await outage({ since: 0 })
  for (let n = 0; n < 203; n++) world.slack.say('D1', 'U1', `message ${n}`)
  await world.run()
  expect(world.handled).toHaveLength(200)
  expect(world.log.join('')).toMatch(/not caught up on.*too many messages/)
})

test('without the scopes to list channels it reads those of its conversations; a channel it may not read costs only itself', async () => {
  await using world = await outage({ since: 0 })
  const { slack, recent, time } = world
  slack.scopes.delete('im:read')
  slack.scopes.delete('groups:history')
  for (const channel of ['C1', 'G1']) {
    recent.push({ conversationId: `${channel}:1712000000.000100`, lastActivityAt: time.now - 1 })
    slack.say(channel, 'U1', `${call} in ${channel}`)
  }
  slack.say('C3', 'U1', `${call} unknown channel`)
  await world.run()
  expect(world.texts()).toEqual(['in C1'])
  expect(world.log.join('')).toMatch(/could not be listed.*missing_scope/)
})

test(
  'a platform that starts again finds what was written meanwhile, with the ID of the live event',
  { timeout: 15_000 },
  async () => {
    const memory = memoryForTest()
    await using first = await slackScene({ memory })
    const { slack } = first
    await first.platform.start(first.inbox)
    await expect.poll(() => memory.get('seen:workspace')).toBeDefined()
    await first.platform.stop()
    const missed = slack.say('D1', 'U1', 'are you there?', undefined, { ts: `${Math.floor(Date.now() / 1000)}.000100` })
    await using second = await slackScene({ memory, slack })
    await second.platform.start(second.inbox)
    await expect.poll(() => second.received.length, { timeout: 10_000 }).toBe(1)
    await slack.deliver(mentionOf(missed, 'Ev1'))
    expect(new Set(second.received.map(({ deliveryId }) => deliveryId))).toEqual(new Set([`D1:${missed.ts}`]))
  },
)

test('what is missed while it is still catching up is caught up on too', async () => {
  await using world = await outage({ since: 0 })
  const { slack, time, catchUp } = world
  slack.say('D1', 'U1', 'one')
  let again: Promise<void> | undefined
  world.onHandled = () => {
    // The connection was lost for a while, and is back before this is over.
    const ts = `${Math.floor(time.now / 1000) + 100}.000100`
    slack.say('D1', 'U1', 'two', undefined, { ts })
    time.now += HOUR * 1000
    again = world.run()
  }
  await world.run()
  await again
  await catchUp.onAccepted(`${Math.floor(time.now / 1000)}.000100`)
  expect([...new Set(world.texts())]).toEqual(['one', 'two'])
})

test('pages may come in any order: messages are handled oldest first', async () => {
  await using world = await outage({ since: 0 })
  const { slack, time } = world
  const at = (minute: number) => ({ ts: `${Math.floor(time.now / 1000) - 3_000 + minute * 60}.000100` })
  for (const minute of [3, 1, 2]) slack.say('D1', 'U1', `message ${minute}`, undefined, at(minute))
  await world.run()
  expect(world.texts()).toEqual(['message 1', 'message 2', 'message 3'])
})

test('a mark from a clock that was ahead hides nothing, and a live message corrects it', async () => {
  await using world = await outage({ since: 2 * DAY })
  world.slack.say('D1', 'U1', 'missed')
  await world.run()
  expect(world.texts()).toEqual(['missed'])
  const live = `${Math.floor(world.time.now / 1000)}.000100`
  await world.catchUp.onAccepted(live)
  expect(await world.memory.get('seen:workspace')).toBe(live)
})

test.each([1e9, -5])('a request to wait %d s is followed for an hour at most', async (retryAfter) => {
  await using world = await outage({ since: 0 })
  world.slack.say('D1', 'U1', 'go')
  world.slack.fail('conversations.history', [{ status: 429, retryAfter }])
  await world.run()
  expect(world.texts()).toEqual(['go'])
  expect(Math.min(...world.pauses)).toBeGreaterThanOrEqual(0)
  expect(Math.max(...world.pauses)).toBeLessThanOrEqual(HOUR * 1000)
})

test("messages of people who aren't allowed leave the limit to those who are", { timeout: 30_000 }, async () => {
  const memory = memoryForTest()
  await using scene = await slackScene({ memory })
  const now = Math.floor(Date.now() / 1000)
  await memory.set('seen:workspace', String(now - HOUR))
  const at = (n: number) => ({ ts: `${now - 1_000 + n}.000100` })
  for (let n = 0; n < 250; n++) scene.slack.say('C1', 'U9', `${call} message ${n}`, undefined, at(n))
  scene.slack.say('C1', 'U1', `${call} fix the login`, undefined, at(250))
  await scene.platform.start(scene.inbox)
  await expect.poll(() => scene.received.map(({ text }) => text), { timeout: 20_000 }).toEqual(['fix the login'])
})

test('an interruption during which the clock was set back is caught up on', { timeout: 30_000 }, async () => {
  const memory = memoryForTest()
  await using scene = await slackScene({ memory })
  await scene.platform.start(scene.inbox)
  await expect.poll(() => memory.get('seen:workspace')).toBeDefined()
  const histories = (): number => scene.slack.calls.filter(({ method }) => method === 'users.conversations').length
  expect(histories()).toBe(0)
  scene.slack.fail('apps.connections.open', [{ status: 500 }], true)
  scene.slack.drop()
  await expect.poll(() => scene.platform.status?.().state).toBe('connecting')
  scene.time.offset = -HOUR * 1000
  scene.slack.heal()
  await expect.poll(() => scene.platform.status?.().state, { timeout: 10_000 }).toBe('connected')
  await expect.poll(histories, { timeout: 10_000 }).toBe(1)
})
