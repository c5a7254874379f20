import { progressOf, status } from '../helpers/progress.ts'
import { webApi } from '@slack/bolt'
import { createEmulator } from 'emulate'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { slackScopes } from '../../src/platforms/slack/setup.ts'
import { SECRET, slackScene } from './slack-arrange.ts'
import { signedRequest } from './slack-double.ts'

/*
 * Against `emulate`, which nobody here wrote, with its scopes enforced: the ones that the documentation tells people to
 * give are enough. It posts no events by itself and has no Socket Mode, so the event is signed and posted here.
 */

const BOT_TOKEN = 'xoxb-emulate-1'
const PERSON = 'xoxp-emulate-1'

const emulated = async (scopes: readonly string[]) => {
  const emulator = await createEmulator({
    service: 'slack',
    port: await freePort(),
    seed: {
      slack: {
        users: [{ name: 'coppice' }, { name: 'ada' }],
        channels: [{ name: 'dev' }],
        strict_scopes: true,
        tokens: [
          { token: BOT_TOKEN, user: 'coppice', scopes, type: 'bot' },
          { token: PERSON, user: 'ada' },
        ],
      },
    },
  })
  const ada = new webApi.WebClient(PERSON, { slackApiUrl: `${emulator.url}/api/` })
  const { channels = [] } = await ada.conversations.list()
  const { user_id: adaId = '' } = await ada.auth.test()
  const channel = channels.find(({ name }) => name === 'dev')?.id ?? ''
  return { emulator, ada, adaId, channel, [Symbol.asyncDispose]: () => emulator.close() }
}

test('from a mention in a thread to the answer in it, with exactly the scopes that are asked for', async () => {
  await using there = await emulated(slackScopes)
  const { ada, adaId, channel, emulator } = there
  await using scene = await slackScene({
    settings: {
      botToken: BOT_TOKEN,
      appToken: undefined as never,
      allowedUsers: [adaId],
      apiUrl: `${emulator.url}/api`,
    },
  })
  const { platform, inbox, received } = scene
  await platform.start(inbox)
  const bot = new webApi.WebClient(BOT_TOKEN, { slackApiUrl: `${emulator.url}/api/` })
  const self = await bot.auth.test()
  const say = async (text: string, thread?: string): Promise<string> => {
    const said = { channel, text, ...(thread !== undefined && { thread_ts: thread }) }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- Slack's method, not a window's
    return (await ada.chat.postMessage(said)).ts ?? ''
  }
  const root = await say('the login is broken')
  const text = `<@${self.user_id}> can you look?`
  const asked = await say(text, root)
  const event = { type: 'app_mention', user: adaId, text, ts: asked, thread_ts: root, channel }
  const envelope = { type: 'event_callback', team_id: self.team_id, event_id: 'Ev1', event }
  expect(await platform.webhook?.(signedRequest(envelope, SECRET))).toEqual({ status: 200 })
  expect(received).toMatchObject([{ conversationId: `${channel}:${root}`, text: 'can you look?' }])
  expect(received[0]?.details.context).toContain('| the login is broken')

  const conversationId = received[0]?.conversationId ?? ''
  const thread = async (): Promise<string[]> => {
    const { messages = [] } = await ada.conversations.replies({ channel, ts: root })
    return messages.map((message) => message.text ?? '')
  }
  platform.preview?.(conversationId, progressOf('Looking'))
  await expect.poll(thread).toContain(`Looking\n\n${status} …`)
  const answer = { id: 'r.0', conversationId, role: 'agent', text: '**Fixed** it.', part: 1, parts: 1 } as const
  await platform.send(answer)
  const second = await slackScene({
    settings: { botToken: BOT_TOKEN, allowedUsers: [adaId], apiUrl: `${emulator.url}/api` },
  })
  await second.platform.send(answer)
  await second.slack[Symbol.asyncDispose]()
  expect(await thread()).toEqual(['the login is broken', text, '*Fixed* it.'])
})

test.each(['chat:write', 'channels:history'])(
  'without %s it does not work, so it is rightly asked for',
  async (scope) => {
    await using there = await emulated(slackScopes.filter((one) => one !== scope))
    const bot = new webApi.WebClient(BOT_TOKEN, { slackApiUrl: `${there.emulator.url}/api/` })
    const call =
      scope === 'chat:write'
        ? bot.apiCall('chat.postMessage', { channel: there.channel, text: 'x' })
        : bot.conversations.replies({ channel: there.channel, ts: '1.1' })
    await expect(call).rejects.toMatchObject({ data: { error: 'missing_scope' } })
  },
)

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
