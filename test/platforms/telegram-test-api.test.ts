import { progressOf } from '../helpers/progress.ts'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { TelegramServer } from 'telegram-test-api/lib/telegramServer.js'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Platform } from '../../src/platforms/platform.ts'
import { inboxOf, type Received } from '../helpers/inbox.ts'
import { until } from '../helpers/server-process.ts'
import { telegramOver } from './telegram-arrange.ts'
import { ada, TOKEN } from './telegram-double.ts'

/* The same over a Telegram that others have written. It knows no long polls, no secrets and no confirmation. */

let server: TelegramServer
let platform: Platform
let received: Received[]
beforeEach(async () => {
  server = new TelegramServer({ port: await freePort(), host: '127.0.0.1', storeTimeout: 600 })
  await server.start()
  received = []
  platform = await telegramOver({ apiUrl: server.config.apiURL })
})
afterEach(async () => {
  await platform.stop()
  await server.stop()
})

const begin = (): Promise<void> =>
  platform.start(
    inboxOf(async (message) => {
      received.push(message)
      return { outcome: 'accepted', id: `${received.length}` }
    }),
  )

const client = (options: { readonly chatId?: number; readonly type?: 'private' | 'group' } = {}) =>
  server.getClient(TOKEN, { userId: ada.id, chatId: ada.id, ...options })

const said = (): string[] => server.storage.botMessages.map(({ message }) => String(message.text))

test('messages from before and after the start arrive and are answered', async () => {
  const { makeMessage, sendMessage } = bound(client())
  await sendMessage(makeMessage('said while we were down'))
  await begin()
  await until('it was heard', async () => received[0])
  await sendMessage(makeMessage('and this'))
  await until('that too', async () => received[1])
  expect(received.map(({ conversationId, text }) => [conversationId, text])).toEqual([
    ['7', 'said while we were down'],
    ['7', 'and this'],
  ])
  await platform.send({ id: '1', conversationId: '7', role: 'agent', text: '**Done**', part: 1, parts: 1 })
  expect(said()).toEqual(['<b>Done</b>'])
})

test('only messages for the bot arrive from a group', async () => {
  await begin()
  const { makeMessage, makeCommand, sendMessage, sendCommand } = bound(client({ chatId: -55, type: 'group' }))
  await sendMessage(makeMessage('people among themselves'))
  await sendCommand(makeCommand('/status@other_bot'))
  await sendCommand(makeCommand('/stop'))
  await sendCommand(makeCommand('/status@TestNameBot'))
  await until('both were heard', async () => received[1])
  expect(received.map(({ conversationId, text }) => [conversationId, text])).toEqual([
    ['-55', '/stop'],
    ['-55', '/status'],
  ])
})

test('a preview grows while the agent writes', async () => {
  await begin()
  platform.preview?.('7', progressOf('Let me'))
  await until('it shows', async () => said()[0])
  await platform.send({ id: '1', conversationId: '7', role: 'agent', text: 'Done.', part: 1, parts: 1 })
  expect(said()).toEqual(['Done.'])
})

const bound = (one: ReturnType<typeof client>) => ({
  makeMessage: one.makeMessage.bind(one),
  makeCommand: one.makeCommand.bind(one),
  sendMessage: one.sendMessage.bind(one),
  sendCommand: one.sendCommand.bind(one),
})

/** The server takes a port that it is told, and 0 for none. */
const freePort = (): Promise<number> =>
  new Promise((found) => {
    const probe = createServer()
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => found(port))
    })
  })
