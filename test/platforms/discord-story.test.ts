import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { OutgoingMessage } from '../../src/conversations/outbox/delivery.ts'
import { createDiscordPlatform } from '../../src/platforms/discord/platform.ts'
import { isLater, snowflakeAt } from '../../src/platforms/discord/snowflake.ts'
import type { PlatformMemory, RecentConversation } from '../../src/platforms/memory.ts'
import type { Platform } from '../../src/platforms/platform.ts'
import { createLogger } from '../../src/process/log.ts'
import { type DiscordDouble, startDiscord } from '../helpers/discord-double/double.ts'
import { alice, mallory, type Message, self } from '../helpers/discord-double/state.ts'
import { inboxOf, type Received } from '../helpers/inbox.ts'
import { memoryForTest } from '../helpers/platform-memory.ts'
import { until } from '../helpers/server-process.ts'
import { makeStory } from './story.ts'

/* What a person sees: files, reactions, buttons, and answers to what was written while the server was down. */

const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })

let discord: DiscordDouble
let platform: Platform
let received: Received[]
let recent: RecentConversation[]
let memory: ReturnType<typeof memoryForTest>

const discordWith = (kept: PlatformMemory): Promise<Platform> =>
  createDiscordPlatform(
    { botToken: discord.token, allowedUsers: [alice.id], apiUrl: discord.apiUrl },
    { log, clock: Date.now, ids: randomUUID, memory: kept },
    { requestTimeoutMs: 2_000, previewEveryMs: 20, rereadMs: 50 },
  )

/** Another process, with what the one before it has kept. */
const start = async (): Promise<void> => {
  platform = await discordWith(memory)
  await platform.start(
    inboxOf(async (message) => {
      const isKnown = received.some(({ deliveryId }) => deliveryId === message.deliveryId)
      if (!isKnown) received.push(message)
      return { outcome: isKnown ? 'duplicate' : 'accepted', id: message.deliveryId }
    }),
  )
}

beforeEach(async () => {
  discord = await startDiscord()
  received = []
  recent = []
  memory = { ...memoryForTest(), recentConversations: async () => recent }
  await start()
})
afterEach(async () => {
  await platform.stop()
  await discord.close()
})

const reply = (conversationId: string, text: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage => ({
  id: `${randomUUID()}.0`,
  conversationId,
  role: 'system',
  text,
  part: 1,
  parts: 1,
  ...more,
})

const allow = [
  { label: 'Allow', command: '/allow', style: 'primary' },
  { label: 'Deny', command: '/deny', style: 'danger' },
] as const

const heard = (count: number): Promise<unknown> =>
  until(`${count} were heard`, async () => received.length >= count || undefined)
const texts = (): string[] => received.map(({ text }) => text)
const threadOf = (id: string): string => `${discord.general.id}:${id}`
const buttons = (channel: string) =>
  discord.state.of(channel).flatMap(({ components = [] }) => components.flatMap((row) => row.components))
const labelsOf = ({ components = [] }: Message): string[] =>
  components.flatMap((row) => row.components.map(({ label }) => label))

test('mention with a file, permission by button, draft pull request, merge, cleanup, restore', async () => {
  await platform.stop()
  await using story = await makeStory()
  platform = await discordWith(story.memory('discord'))
  await story.start(platform)
  const file = discord.attach('trace.log', 'Error: no cookie')
  const { id, reactions } = discord.say('@coppice fix this', { message: { attachments: [file] } })
  await until('it is seen', async () => reactions?.includes('👀') || undefined)

  // In a thread of its own, with a preview of what the agent does and a way to stop it.
  const shown = (part: string): Promise<Message> =>
    until(`"${part}" is shown`, async () => discord.state.of(id).find(({ content }) => content.includes(part)))
  const preview = await shown('`read src/login.ts`')
  expect(discord.state.channels.get(id)).toMatchObject({ parent_id: discord.general.id, name: 'fix this' })
  expect(labelsOf(preview)).toEqual(['Stop'])
  expect(story.asked).toEqual([{ prompt: 'fix this', files: ['Error: no cookie'] }])
  const { branch, path } = await story.environment()
  expect(discord.saidIn(id)[0]).toBe(`Working in isolated branch \`${branch}\` of \`project\``)

  story.seen()
  const question = await shown('`demo` asks for permission: edit login.ts')
  expect(labelsOf(question)).toEqual(['Allow once', 'Deny'])
  const press = discord.press('Allow once', { in: id })
  const link = await shown('pull request #7')
  expect(discord.state.callbacks).toEqual([{ id: press, type: 6, content: undefined }])
  expect(link.content).toContain('Opened draft pull request #7: https://github.test/acme/app/pull/7')
  expect(discord.saidIn(id)).toContain('The cookie is set now.')
  await expect.poll(() => buttons(id).every(({ disabled }) => disabled)).toBe(true)
  expect(story.github.opened).toMatchObject([{ title: 'Set the cookie', draft: true, head: { ref: branch } }])
  expect(story.world.box.raw(story.origin, 'show', `${branch}:login.ts`)).toBe('export const cookie = true')

  story.merge()
  expect(await story.cleanUpLater()).toMatchObject({ outcome: 'done', failed: [] })
  const removed = await shown(`Worktree \`${branch}\` was removed (merged`)
  expect(existsSync(path)).toBe(false)
  const { store } = story.world.context
  expect(await store.restorePoints.list(story.world.codebase.id)).toMatchObject([
    { contents: { environment: { branch } } },
  ])
  expect(labelsOf(removed)).toEqual(['Restore'])
  discord.press('Restore', { in: id })
  await shown(`Restored \`${branch}\``)
  expect(readFileSync(join((await story.environment()).path, 'login.ts'), 'utf8')).toBe('export const cookie = true\n')
})

describe('a button', () => {
  test('pressed by a stranger does nothing, tells only them, and still works for others', async () => {
    const channel = discord.general.id
    await platform.send(reply(channel, 'May I?', { actions: allow }))
    discord.press('Allow', { in: channel, by: mallory })
    await until('they are told', async () => discord.state.callbacks[0])
    expect(discord.state.callbacks).toMatchObject([{ type: 4, whispered: true }])
    expect(received).toEqual([])
    expect(buttons(channel).some(({ disabled }) => disabled)).toBe(false)
  })

  test('clicked twice is one delivery', async () => {
    const channel = discord.general.id
    await platform.send(reply(channel, 'May I?', { actions: allow }))
    discord.press('Allow', { in: channel })
    discord.press('Allow', { in: channel })
    await until('both are acknowledged', async () => discord.state.callbacks[1])
    await until('the button is used up', async () =>
      buttons(channel).every(({ disabled }) => disabled) ? true : undefined,
    )
    expect(received).toHaveLength(1)
  })

  test("can have a command over Discord's limit, and says so if its command is unknown", async () => {
    const channel = discord.general.id
    const command = `/worktree restore ${'feature/'.repeat(20)}x`
    await platform.send(reply(channel, 'Removed.', { actions: [{ label: 'Restore', command }] }))
    discord.press('Restore', { in: channel })
    await heard(1)
    expect(texts()).toEqual([command])
    const components = [{ type: 1 as const, components: [{ label: 'Old', custom_id: '#gone' }] }]
    Object.assign(discord.state.of(channel)[0] ?? {}, { components })
    discord.press('Old', { in: channel })
    await until('it says so', async () => discord.state.callbacks.find(({ content }) => content?.includes('too old')))
  })
})

test('a long paste is the message, and other files are attachments', async () => {
  const pasted = discord.attach('message.txt', 'a\u200B long story')
  const large = discord.attach('message.txt', 'x'.repeat(100_001))
  discord.say('@coppice fix this:', { message: { attachments: [pasted, discord.attach('a.txt', 'x')] } })
  discord.say('', { in: '555555555555555555', direct: true, message: { attachments: [pasted] } })
  discord.say('', { in: '555555555555555555', direct: true, message: { attachments: [large] } })
  await heard(3)
  expect(texts().toSorted()).toEqual(['See the attached file.', 'a long story', 'fix this:\n\na long story'])
  const mention = received.find(({ text }) => text.startsWith('fix'))
  expect(mention?.details.attachments?.map(({ name }) => name)).toEqual(['a.txt'])
})

test('a paste that is too long, or longer than Discord says, is an attachment', async () => {
  const long = 'x'.repeat(100_001)
  const truthful = discord.attach('message.txt', long)
  const lying = { ...discord.attach('message.txt', long), size: 10 }
  discord.say('@coppice read this', { message: { attachments: [truthful] } })
  await heard(1)
  expect(discord.downloads).toEqual([])
  discord.say('@coppice and this', { message: { attachments: [lying] } })
  await heard(2)
  expect(received.map(({ text, details }) => [text, details.attachments?.length])).toEqual([
    ['read this', 1],
    ['and this', 1],
  ])
})

test('a file that was removed from its message is reported as missing', async () => {
  const { id } = discord.say('@coppice look', { message: { attachments: [discord.attach('a.txt', 'x')] } })
  await heard(1)
  const [attachment] = received[0]?.details.attachments ?? []
  if (attachment === undefined) throw new Error('no attachment')
  const { general, state } = discord
  const without = state.of(general.id).map((one) => (one.id === id ? { ...one, attachments: [] } : one))
  state.messages.set(general.id, without)
  await expect(platform.fetchAttachment?.(attachment, new AbortController().signal)).rejects.toMatchObject({
    code: 'not-found',
  })
})

test("doesn't fetch a file from another host", async () => {
  const file = { ...discord.attach('a.txt', 'x'), url: 'http://169.254.169.254/latest/meta-data' }
  discord.say('@coppice look', { message: { attachments: [file] } })
  await heard(1)
  const [attachment] = received[0]?.details.attachments ?? []
  if (attachment === undefined) throw new Error('no attachment')
  const fetching = platform.fetchAttachment?.(attachment, new AbortController().signal)
  await expect(fetching).rejects.toThrow("files from 169.254.169.254 aren't fetched")
})

test('without permission to create threads or react, the conversation takes place in the channel', async () => {
  discord.state.denied.add('threads').add('reactions')
  const { general } = discord
  const { id } = discord.say('@coppice fix this')
  await heard(1)
  await platform.send(reply(threadOf(id), 'May I?', { actions: allow }))
  expect(discord.state.of(general.id).at(-1)).toMatchObject({
    content: 'May I?',
    message_reference: { message_id: id },
  })
  discord.press('Deny', { in: general.id })
  await heard(2)
  const answer = discord.state.of(general.id).at(-1)
  if (answer === undefined) throw new Error('no answer')
  discord.say('@coppice go on', { message: { type: 19, referenced_message: answer } })
  await heard(3)
  expect(received.map(({ conversationId }) => conversationId)).toEqual([threadOf(id), threadOf(id), threadOf(id)])
})

test('without access to threads, the answer is in the channel too', async () => {
  // "JSON error codes": missing access.
  discord.rest.fail = ({ path }) =>
    path.endsWith('/threads') ? { how: 'refused', status: 403, code: 50_001 } : undefined
  const { id } = discord.say('@coppice fix this')
  await heard(1)
  await platform.send(reply(threadOf(id), 'Done.'))
  expect(discord.state.of(discord.general.id).at(-1)).toMatchObject({
    content: 'Done.',
    message_reference: { message_id: id },
  })
})

describe('a message written while the server is down', () => {
  const direct = '555555555555555555'
  const begun = async (): Promise<string> => {
    const { id } = discord.say('@coppice one')
    await heard(1)
    discord.say('hello', { in: direct, direct: true })
    await heard(2)
    await until('the thread is there', async () => discord.state.channels.get(id))
    recent = [threadOf(id), direct].map((conversationId) => ({ conversationId, lastActivityAt: Date.now() }))
    return id
  }

  test('is delivered when the session is resumed after a restart', async () => {
    await begun()
    await platform.stop()
    discord.say('@coppice meanwhile')
    await start()
    await heard(3)
    expect(texts()).toEqual(['one', 'hello', 'meanwhile'])
    expect(discord.gateway.identified).toHaveLength(1)
    expect(discord.gateway.resumed.count).toBe(1)
    discord.say('@coppice and now')
    await heard(4)
    expect(platform.status?.().state).toBe('connected')
  })

  test('is read if the session has expired: in threads, direct messages and their channels, each once', async () => {
    const thread = await begun()
    await platform.stop()
    discord.gateway.expire()
    for (let at = 0; at < 120; at++) discord.say(`among people ${at}`, { quietly: true })
    discord.say('@coppice in the channel', { quietly: true })
    discord.say('@coppice from a stranger', { quietly: true, by: mallory })
    discord.say('@coppice in the thread', { quietly: true, in: thread })
    discord.say('not for us', { quietly: true, in: thread })
    discord.say('in private', { quietly: true, in: direct, direct: true })
    await start()
    await heard(5)
    expect(texts().slice(2).toSorted()).toEqual(['in private', 'in the channel', 'in the thread'])
    await platform.stop()
    discord.gateway.expire()
    await start()
    discord.say('@coppice the end')
    await heard(6)
    expect(received).toHaveLength(6)
  })

  test("is read again after a failure, and isn't skipped until then", async () => {
    await begun()
    await platform.stop()
    discord.gateway.expire()
    discord.say('in private', { quietly: true, in: direct, direct: true })
    discord.rest.fail = ({ method, path }) =>
      method === 'GET' && path === `/channels/${direct}/messages` ? { how: 'error', status: 500 } : undefined
    await start()
    await until('it was tried', async () => platform.status?.().lastError)
    discord.say('@coppice live')
    await heard(3)
    // Another process, which begins where the first one was.
    await platform.stop()
    discord.gateway.expire()
    discord.rest.fail = () => undefined
    await start()
    await heard(4)
    expect(texts()).toEqual(['one', 'hello', 'live', 'in private'])
  })

  test('is read again no earlier than Discord asks', async () => {
    await begun()
    await platform.stop()
    discord.gateway.expire()
    discord.say('in private', { quietly: true, in: direct, direct: true })
    const asked: number[] = []
    discord.rest.fail = ({ method, path }) => {
      if (method !== 'GET' || path !== `/channels/${direct}/messages`) return undefined
      return asked.push(Date.now()) === 1 ? { how: 'limited', seconds: 3 } : undefined
    }
    await start()
    await heard(3)
    expect((asked[1] ?? 0) - (asked[0] ?? 0)).toBeGreaterThanOrEqual(3_000)
  })

  test('is found in a busy channel, behind messages that are not for us', async () => {
    await begun()
    await platform.stop()
    discord.gateway.expire()
    for (let at = 0; at < 1_200; at++) discord.say(`among people ${at}`, { quietly: true })
    for (let at = 0; at < 250; at++) discord.say(`<@${self.id}> spam ${at}`, { quietly: true, by: mallory })
    discord.say('@coppice in the channel', { quietly: true })
    await start()
    await heard(3)
    expect(texts()).toEqual(['one', 'hello', 'in the channel'])
  })

  test('is found even if the clock was ahead before, and a live message corrects the position', async () => {
    await begun()
    await platform.stop()
    const ahead = snowflakeAt(Date.now() + 24 * 60 * 60_000)
    await memory.set('seen:gateway', ahead)
    discord.gateway.expire()
    discord.say('in private', { quietly: true, in: direct, direct: true })
    await start()
    await heard(3)
    discord.say('@coppice live')
    await heard(4)
    await platform.stop()
    expect(isLater(ahead, (await memory.get('seen:gateway')) ?? '')).toBe(true)
  })
})
