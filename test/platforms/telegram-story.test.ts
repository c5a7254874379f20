import { existsSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { OutgoingMessage } from '../../src/conversations/outbox/delivery.ts'
import { jpegOf } from '../helpers/images.ts'
import { progressOf } from '../helpers/progress.ts'
import { until } from '../helpers/server-process.ts'
import { makeStory } from './story.ts'
import { telegramScene, type TelegramScene } from './telegram-arrange.ts'
import { ada, group, mallory, type Message, TOKEN } from './telegram-double.ts'

/* What a person sees: pictures, reactions, buttons, long messages. By the real SDK over real HTTP. */

let scene: TelegramScene
beforeEach(async () => {
  scene = await telegramScene()
  await scene.platform.start(scene.inbox)
})
afterEach(() => scene[Symbol.asyncDispose]())

const reply = (text: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage => ({
  id: `${text}.0`,
  conversationId: String(group.id),
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
  until(`${count} were heard`, async () => scene.received.length >= count || undefined)
const buttons = (chat: number): string[] =>
  scene.telegram.messages.filter((one) => one.chat === chat).flatMap((one) => one.buttons.map(({ text }) => text))
const read = async (file: AsyncIterable<Uint8Array> | undefined): Promise<string> => {
  let text = ''
  if (file !== undefined) for await (const chunk of file) text += Buffer.from(chunk).toString()
  return text
}

test('picture with a mention, permission by button, draft pull request, merge, cleanup on request', async () => {
  await using story = await makeStory()
  await using told = await telegramScene({ memory: story.memory('telegram') })
  const { telegram } = told
  await story.start(told.platform)
  telegram.files.set('large', { path: 'photos/file_1.jpg', bytes: JPEG })
  const photo = [
    { file_id: 'small', width: 90, height: 60 },
    { file_id: 'large', width: 900, height: 600, file_size: JPEG.length },
  ]
  const caption = '@coppice_bot fix this page'
  const entities = [{ type: 'mention', offset: 0, length: 12 }]
  const message = { text: undefined, entities: undefined, caption, caption_entities: entities, photo }
  telegram.say('', { chat: group, message })
  await until('it is seen', async () => [...telegram.reactions.values()].includes('👀') || undefined)

  const shown = (part: string): Promise<Message> =>
    until(`"${part}" is shown`, async () => telegram.messages.find(({ text }) => text.includes(part)))
  const labels = (one: Message): string[] => one.buttons.map(({ text }) => text)
  const preview = await shown('read src/login.ts')
  expect(labels(preview)).toEqual(['Stop'])
  expect(story.asked).toEqual([{ prompt: 'fix this page', files: [JPEG.toString('utf8')] }])
  const { branch, path } = await story.environment()
  expect(telegram.said(group.id)[0]).toBe(`Working in isolated branch ${branch} of project`)

  story.seen()
  const question = await shown('demo asks for permission: edit login.ts')
  expect(labels(question)).toEqual(['Allow once', 'Deny'])
  const press = telegram.press('Allow once', { chat: group })
  const link = await shown('pull request #7')
  // A press is answered without words, and a button works once.
  expect(telegram.answered.has(press)).toBe(true)
  expect(telegram.answered.get(press)).toBeUndefined()
  await expect.poll(() => telegram.messages.flatMap(labels)).toEqual([])
  expect(link.text).toContain('Opened draft pull request #7: https://github.test/acme/app/pull/7')
  expect(telegram.said(group.id)).toContain('The cookie is set now.')
  expect(story.github.opened).toMatchObject([{ title: 'Set the cookie', draft: true, head: { ref: branch } }])
  expect(story.world.box.raw(story.origin, 'show', `${branch}:login.ts`)).toBe('export const cookie = true')

  story.merge()
  expect(await story.cleanUpLater()).toMatchObject({ outcome: 'done', failed: [] })
  // A chat is its users' own for good: only their command removes its worktree.
  expect(existsSync(path)).toBe(true)
  telegram.say('@coppice_bot /worktree cleanup merged', { chat: group })
  await until('the worktree is gone', async () => !existsSync(path) || undefined, 20_000)
  await until(
    'the chat is told',
    async () => telegram.said(group.id).find((text) => text.includes(`removed  ${branch}  merged`)),
    5_000,
  )
  const { store } = story.world.context
  const points = await store.restorePoints.list(story.world.codebase.id)
  expect(points).toMatchObject([{ contents: { environment: { branch } } }])
})

const JPEG = jpegOf(640, 480)

describe('a button', () => {
  test('pressed by a stranger does nothing, tells them, and still works for others', async () => {
    const { telegram, platform, received } = scene
    await platform.send(reply('May I?', { actions: allow }))
    const press = telegram.press('Allow', { chat: group, from: mallory })
    const told = await until('they are told', async () => telegram.answered.get(press))
    expect(told).toContain(`user ID, ${mallory.id}`)
    // Once a day; but the client waits for an answer each time.
    const again = telegram.press('Allow', { chat: group, from: mallory })
    await until('it is answered', async () => telegram.answered.has(again) || undefined)
    expect(telegram.answered.get(again)).toBeUndefined()
    expect(buttons(group.id)).toEqual(['Allow', 'Deny'])
    expect(received).toEqual([])
  })

  test("can have a command over Telegram's limit", async () => {
    const { telegram, platform, received } = scene
    const command = `/worktree restore ${'feature/'.repeat(12)}x`
    const conversationId = `${group.id}:5`
    await platform.send(reply('Removed.', { conversationId, actions: [{ label: 'Restore', command }] }))
    telegram.press('Restore', { chat: group })
    await heard(1)
    expect(received[0]).toMatchObject({ conversationId, text: command, details: { channelId: String(group.id) } })
  })

  test('clicked twice has one delivery ID, and buttons of two messages have two', async () => {
    const { telegram, platform, received } = scene
    await platform.send(reply('May I?', { actions: allow }))
    telegram.press('Allow', { chat: group })
    telegram.press('Allow', { chat: group })
    await heard(2)
    await platform.send(reply('And this?', { id: 'another.0', actions: allow }))
    telegram.press('Allow', { chat: group })
    await heard(3)
    const [first, second, third] = received.map(({ deliveryId }) => deliveryId)
    expect(second).toBe(first)
    expect(third).not.toBe(first)
  })

  test('shares a row with others only if all labels are short', async () => {
    const { telegram, platform } = scene
    await platform.send(reply('May I?', { actions: allow }))
    const choices = ['1. SQLite', '2. A database on a server of its own'].map((label) => ({ label, command: label }))
    await platform.send(reply('Which?', { id: 'another.0', actions: choices }))
    expect(telegram.messages.map(({ buttons: all }) => all.map(({ row }) => row))).toEqual([
      [0, 0],
      [0, 1],
    ])
  })

  test('says so if its command is no longer known', async () => {
    const { telegram, platform, received } = scene
    await platform.send(reply('May I?', { actions: allow }))
    const [shown] = telegram.messages
    if (shown === undefined) throw new Error('no message')
    shown.buttons = [{ text: 'Old', callback_data: '#gone' }]
    const press = telegram.press('Old', { chat: group })
    expect(await until('it is said', async () => telegram.answered.get(press))).toContain('too old')
    expect(received).toEqual([])
  })

  test('disappears when its message is edited without it', async () => {
    const { telegram, platform } = scene
    const conversationId = String(ada.id)
    platform.preview?.(conversationId, progressOf('Let me'))
    await until('it shows', async () => telegram.said(ada.id)[0])
    await platform.send(reply('Pick one', { conversationId, role: 'agent', actions: allow }))
    expect(buttons(ada.id)).toEqual(['Allow', 'Deny'])
  })
})

test('a long text and an album are one message each, though the client splits them', async () => {
  const { telegram, received } = scene
  telegram.say(`@coppice_bot ${'a'.repeat(4_083)}${'b'.repeat(10)}`, { chat: group })
  await heard(1)
  expect(received[0]?.text).toBe('a'.repeat(4_083) + 'b'.repeat(10))
  const picture = (id: string) => ({
    message: { text: undefined, media_group_id: 'g', photo: [{ file_id: id, width: 1, height: 1 }] },
  })
  telegram.say('', picture('p1'))
  telegram.say('', picture('p2'))
  await heard(2)
  expect(received[1]?.details.attachments?.map(({ reference }) => reference)).toEqual(['p1', 'p2'])
  expect(received).toHaveLength(2)
})

test("a file that can't be fetched has a reason, which never contains the token", async () => {
  const { platform, telegram } = scene
  const { signal } = new AbortController()
  const fetched = async (reference: string, bytes?: number): Promise<string> => {
    const attachment = { name: 'x', reference, ...(bytes !== undefined && { bytes }) }
    try {
      return await read(await platform.fetchAttachment?.(attachment, signal))
    } catch (error) {
      return String(error)
    }
  }
  telegram.files.set('big', { path: 'a/b', bytes: Buffer.alloc(0), size: 30_000_000 })
  telegram.files.set('local', { path: '/var/lib/telegram/x', bytes: Buffer.alloc(0) })
  telegram.files.set('text', { path: 'documents/x.txt', bytes: Buffer.from('hello') })
  expect(await fetched('text')).toBe('hello')
  const failures = [await fetched('big', 30_000_000), await fetched('big'), await fetched('local')]
  telegram.files.set('text', { path: 'documents/gone#x', bytes: Buffer.alloc(0) })
  failures.push(await fetched('text'))
  expect(failures).toEqual([
    expect.stringContaining('up to 20 MB'),
    expect.stringContaining('file is too big'),
    expect.stringContaining("doesn't offer the file"),
    expect.stringContaining('status 404'),
  ])
  expect(failures.join('')).not.toContain(TOKEN)
})
