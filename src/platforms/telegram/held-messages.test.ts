import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { memoryForTest } from '../../../test/helpers/platform-memory.ts'
import { createLogger } from '../../process/log.ts'
import type { PlatformMemory } from '../memory.ts'
import { createHeldMessages, type HeldMessages } from './held-messages.ts'
import { joined } from './join.ts'
import { parseMessage } from './parse.ts'
import type { TelegramMessage } from './payload.ts'

const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })
const ada = { id: 7, is_bot: false, first_name: 'Ada' }
const self = { id: 99, username: 'coppice_bot', commands: new Set<string>() }
const WAIT = 1_000

let memory: PlatformMemory
let handed: (readonly TelegramMessage[])[]
let accepts: boolean
let held: HeldMessages

const start = async (): Promise<HeldMessages> => {
  const made = createHeldMessages({
    self,
    memory,
    log,
    waitMs: WAIT,
    handOver: async (parts) => {
      if (!accepts) throw new Error('the disk is full')
      handed.push(parts)
    },
  })
  await made.resume()
  return made
}

beforeEach(async () => {
  vi.useFakeTimers()
  memory = memoryForTest()
  handed = []
  accepts = true
  held = await start()
})
afterEach(() => vi.useRealTimers())

const part = (id: number, more: Partial<TelegramMessage> = {}): TelegramMessage => ({
  message_id: id,
  date: 100,
  from: ada,
  chat: { id: 7, type: 'private' },
  text: 'x'.repeat(4_096),
  ...more,
})

/** Its first character says which it is. */
const texts = (): (string | undefined)[] => handed.map((parts) => joined(parts)?.text)
const passed = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms)

test('joins a text that the client split', async () => {
  // Telegram Desktop cuts at the best place in the second half of 4,096 characters, and Telegram trims the parts.
  const parts = ['a'.repeat(4_096), `b ${'b'.repeat(2_100)}.`, 'the end']
  for (const [at, text] of parts.entries()) expect(await held.take(part(at + 1, { text }), true)).toBe(true)
  await passed(WAIT - 1)
  expect(handed).toEqual([])
  await passed(1)
  expect(texts()).toEqual([`${parts[0]}${parts[1]}\nthe end`])
})

test("doesn't hold an ordinary message", async () => {
  expect(await held.take(part(1, { text: 'fix the login' }), true)).toBe(false)
})

test.each<[string, Partial<TelegramMessage>]>([
  ['from somebody else', { from: { ...ada, id: 8 } }],
  ['in another topic', { is_topic_message: true, message_thread_id: 5 }],
  ['written later', { date: 110 }],
  ["that doesn't follow directly", { message_id: 9 }],
])("a message %s isn't joined, and is handled after the held one", async (_who, more) => {
  await held.take(part(1), true)
  expect(await held.take(part(2, { text: 'fix it', ...more }), true)).toBe(false)
  expect(handed).toHaveLength(1)
})

test('only a message for us is held, and its other parts need no mention', async () => {
  expect(await held.take(part(1), false)).toBe(false)
  expect(await held.take(part(2), true)).toBe(true)
  expect(await held.take(part(3, { text: 'the rest' }), false)).toBe(true)
})

test('an album is one message with all its pictures, whichever has the caption', async () => {
  const picture = (id: number, caption?: string): TelegramMessage => {
    const { text: _text, ...bare } = part(id)
    const photo = [{ file_id: `p${id}`, width: 1, height: 1 }]
    return { ...bare, media_group_id: 'g', photo, ...(caption !== undefined && { caption }) }
  }
  for (const one of [picture(1), picture(2, 'fix both'), picture(3)]) await held.take(one, true)
  await held.take({ ...picture(4), media_group_id: 'h' }, true)
  await passed(WAIT)
  const [parts = []] = handed
  const whole = joined(parts)
  expect(whole === undefined ? undefined : parseMessage(whole, self, parts)).toMatchObject({
    message: {
      deliveryId: '99:7:1',
      text: 'fix both',
      details: { attachments: [{ reference: 'p1' }, { reference: 'p2' }, { reference: 'p3' }] },
    },
  })
  expect(handed).toHaveLength(2)
})

test("a crash while parts are held loses nothing, and redelivered parts aren't handled twice", async () => {
  const one = part(1, { text: `1${'x'.repeat(4_095)}` })
  await held.take(one, true)
  // As if killed: its timers are gone, and nothing was handed over.
  vi.clearAllTimers()
  held = await start()
  await held.take(one, true)
  await held.take(part(2, { text: '2' }), true)
  await passed(WAIT)
  expect(texts()).toEqual([`${one.text}2`])
  expect(await held.take(part(2, { text: '2' }), true)).toBe(true)
  await passed(WAIT)
  expect(handed).toHaveLength(1)
})

test("retries a message that couldn't be handled, also after a restart", async () => {
  accepts = false
  await held.take(part(1), true)
  await passed(WAIT)
  await held.stop()
  await passed(60_000)
  expect(handed).toEqual([])
  held = await start()
  await passed(WAIT)
  accepts = true
  await passed(WAIT)
  expect(handed).toHaveLength(1)
})

test("doesn't hold a message that couldn't be stored: Telegram resends it", async () => {
  let isFull = true
  const whole = memory
  memory = {
    ...whole,
    set: (...entry) => (isFull ? Promise.reject(new Error('the disk is full')) : whole.set(...entry)),
  }
  held = await start()
  await expect(held.take(part(1), true)).rejects.toThrow('disk')
  isFull = false
  expect(await held.take(part(1), true)).toBe(true)
  await passed(WAIT)
  expect(handed).toHaveLength(1)
})

test('stopping handles the held messages', async () => {
  await held.take(part(1), true)
  await held.stop()
  expect(handed).toHaveLength(1)
  held = await start()
  await passed(WAIT)
  expect(handed).toHaveLength(1)
})
