import { expect, test } from 'vitest'
import type { OutgoingMessage } from '../../src/conversations/outbox/delivery.ts'
import { memoryForTest } from '../helpers/platform-memory.ts'
import { SECRET, slackScene, type SlackScene } from './slack-arrange.ts'
import { BOT, mentionOf, type Posted, pressOf, signedRequest, slashOf } from './slack-double.ts'

const call = `<@${BOT.user}>`
const root = '1700000000.000100'

const question = (more: Partial<OutgoingMessage> = {}): OutgoingMessage => ({
  id: 'q.0',
  conversationId: `C1:${root}`,
  role: 'system',
  text: 'May I run `npm test`?',
  part: 1,
  parts: 1,
  actions: [
    { label: 'Allow', command: '/allow', style: 'primary' },
    { label: 'Deny', command: '/deny', style: 'danger' },
  ],
  ...more,
})

const started = async (options: Parameters<typeof slackScene>[0] = {}): Promise<SlackScene> => {
  const scene = await slackScene(options)
  await scene.platform.start(scene.inbox)
  return scene
}
const asked = async ({ platform, slack }: SlackScene): Promise<Posted> => {
  await platform.send(question())
  const posted = slack.messages.find(({ user }) => user === BOT.user)
  if (posted === undefined) throw new Error('nothing was posted')
  return posted
}
const interactive = { type: 'interactive', accepts_response_payload: true }
const slash = { type: 'slash_commands', accepts_response_payload: true }
const form = (fields: Record<string, string>) => signedRequest(new URLSearchParams(fields).toString(), SECRET)

test('a reply with actions has buttons below its text', async () => {
  await using scene = await started()
  const posted = await asked(scene)
  expect(posted.text).toBe('May I run `npm test`?')
  expect(posted.attachments).toMatchObject([
    {
      fallback: 'Allow · Deny',
      blocks: [
        {
          type: 'actions',
          elements: [
            { type: 'button', text: { type: 'plain_text', text: 'Allow' }, value: '/allow', style: 'primary' },
            { type: 'button', text: { type: 'plain_text', text: 'Deny' }, value: '/deny', style: 'danger' },
          ],
        },
      ],
    },
  ])
})

test('a press is the command, from who pressed, in that thread; then the buttons are gone and its text and mark stay', async () => {
  await using scene = await started()
  const { slack, received } = scene
  const posted = await asked(scene)
  await slack.deliver(pressOf(posted, 'Allow', 'U2'), interactive)
  expect(received).toMatchObject([
    { conversationId: `C1:${root}`, kind: 'message', text: '/allow', details: { userId: 'U2', channelId: 'C1' } },
  ])
  await expect.poll(() => JSON.stringify(posted.attachments)).toContain('Allow · <@U2>')
  expect(JSON.stringify(posted.attachments)).not.toContain('button')
  expect(posted).toMatchObject({
    text: 'May I run `npm test`?',
    metadata: { event_type: 'coppice_reply', event_payload: { id: 'q.0' } },
  })
})

test('one button works once, whoever presses it and however often; the other one is another message', async () => {
  await using scene = await started()
  const { slack, received } = scene
  const posted = { ...(await asked(scene)) }
  await slack.deliver(pressOf(posted, 'Allow', 'U1'), interactive)
  await slack.deliver(pressOf(posted, 'Allow', 'U2', { trigger_id: 'another' }), interactive)
  await slack.deliver(pressOf(posted, 'Deny', 'U2'), interactive)
  const [first, second, third] = received.map(({ deliveryId }) => deliveryId)
  expect(first).toBe(second)
  expect(third).not.toBe(first)
})

test('the same by signed HTTP; unsigned and unknown ones do nothing', async () => {
  await using scene = await started()
  const { platform, received } = scene
  const posted = await asked(scene)
  const payload = JSON.stringify(pressOf(posted, 'Deny', 'U1'))
  const request = form({ payload })
  expect(await platform.webhook?.({ ...request, headers: {} })).toMatchObject({ status: 401 })
  expect(received).toEqual([])
  for (const other of ['{}', '[]', 'no JSON', '{"type":"view_submission"}']) {
    expect(await platform.webhook?.(form({ payload: other }))).toEqual({ status: 200 })
  }
  const foreign = { ...(pressOf(posted, 'Deny', 'U1') as object), actions: [{ action_id: 'other', value: '/stop' }] }
  expect(await platform.webhook?.(form({ payload: JSON.stringify(foreign) }))).toEqual({ status: 200 })
  expect(received).toEqual([])
  expect(await platform.webhook?.(request)).toEqual({ status: 200 })
  expect(received.map(({ text }) => text)).toEqual(['/deny'])
})

test('a stranger’s press is refused, told to them alone, once a day; the buttons stay', async () => {
  await using scene = await started()
  const { slack, received } = scene
  const posted = await asked(scene)
  await slack.deliver(pressOf(posted, 'Allow', 'U9'), interactive)
  await slack.deliver(pressOf(posted, 'Allow', 'U9'), interactive)
  await slack.deliver(pressOf(posted, 'Allow', 'U1', { user: { id: 'U1', team_id: 'T0OTHER' } }), interactive)
  await expect.poll(() => slack.whispers.length).toBe(2)
  expect(received).toEqual([])
  expect(slack.whispers[0]).toMatchObject({ channel: 'C1', user: 'U9', thread_ts: root })
  expect(slack.whispers[0]?.['text']).toContain('U9')
  expect(JSON.stringify(posted.attachments)).toContain('button')
})

test('a press on a preview leaves its text alone: by then it may be the answer', async () => {
  await using scene = await started()
  const { slack, platform, received } = scene
  const conversationId = `C1:${root}`
  platform.preview?.(conversationId, { text: 'Looking', tool: undefined, startedAt: Date.now() })
  await expect.poll(() => slack.messages.length).toBe(1)
  const preview = { ...(slack.messages[0] as Posted) }
  await platform.send(question({ id: 'r.0', role: 'agent', text: 'Done.', actions: [] }))
  await slack.deliver(pressOf(preview, 'Stop', 'U1'), interactive)
  expect(received.map(({ text }) => text)).toEqual(['/stop'])
  await platform.send(question({ id: 's.0', text: 'Nothing is running.', actions: [] }))
  expect(slack.messages.map(({ text }) => text)).toEqual(['Done.', 'Nothing is running.'])
  // The edit into the answer took the button away.
  expect(slack.messages[0]?.attachments).toBeUndefined()
})

test('a button press that cannot be stored is not acknowledged', async () => {
  await using scene = await started({ accept: () => Promise.reject(new Error('the disk is full')) })
  const posted = await asked(scene)
  const payload = JSON.stringify(pressOf(posted, 'Allow', 'U1'))
  expect(await scene.platform.webhook?.(form({ payload }))).toMatchObject({ status: 503 })
  expect(JSON.stringify(posted.attachments)).toContain('button')
})

test('in a direct message the client keeps /stop to itself; the bare word and !stop arrive as the command', async () => {
  await using scene = await started()
  const { slack, received } = scene
  const first = slack.say('D1', 'U1', 'fix the login')
  expect(slack.type('D1', 'U1', '/stop', first.ts)).toBeUndefined()
  const typed = ['stop', '!stop', 'stop using tabs', '!worktree list'].flatMap(
    (text) => slack.type('D1', 'U1', text, first.ts) ?? [],
  )
  for (const said of typed) await slack.deliver(mentionOf(said, `Ev${said.ts}`))
  expect(received.map(({ text }) => text)).toEqual(['/stop', '/stop', 'stop using tabs', '/worktree list'])
  const mention = slack.say('C1', 'U1', `${call} stop`, root)
  await slack.deliver(mentionOf(mention, 'Ev9'))
  expect(received.at(-1)).toMatchObject({ conversationId: `C1:${root}`, text: '/stop' })
})

test('a command outside the threads of a direct message is about the latest one; other words begin a new one', async () => {
  await using scene = await started()
  const { slack, received } = scene
  const first = slack.say('D1', 'U1', 'fix the login')
  await slack.deliver(mentionOf(first, 'Ev1'))
  const typed = ['help', 'stop', 'and the logout'].map((text) => slack.say('D1', 'U1', text))
  for (const said of typed) await slack.deliver(mentionOf(said, `Ev ${said.ts}`))
  expect(received.slice(1).map(({ text, conversationId }) => [text, conversationId])).toEqual([
    ['/help', `D1:${typed[0]?.ts}`],
    ['/stop', `D1:${first.ts}`],
    ['and the logout', `D1:${typed[2]?.ts}`],
  ])
  // The answer goes where the command went.
  await scene.platform.send(question({ id: 'a.0', conversationId: `D1:${first.ts}`, text: 'Stopped.', actions: [] }))
  expect(slack.messages.at(-1)).toMatchObject({ text: 'Stopped.', thread_ts: first.ts })
})

test('/coppice acts on the latest thread of who uses it, in that channel, also after a restart', async () => {
  const memory = memoryForTest()
  await using first = await started({ memory })
  const { slack } = first
  const mine = slack.say('C1', 'U1', `${call} fix the login`)
  await slack.deliver(mentionOf(mine, 'Ev1'))
  await slack.deliver(mentionOf(slack.say('C1', 'U2', `${call} something else`), 'Ev2'))
  const answer = await slack.deliver(slashOf('C1', 'U1', 'stop'), slash)
  expect(first.received.at(-1)).toMatchObject({
    conversationId: `C1:${mine.ts}`,
    text: '/stop',
    details: { userId: 'U1', channelId: 'C1' },
  })
  expect(answer).toEqual({
    response_type: 'ephemeral',
    text: `\`/stop\` goes to <https://team.slack.com/archives/C1/p${mine.ts.replace('.', '')}|your latest thread here>.`,
  })
  await first.platform.stop()
  await using second = await started({ memory, slack })
  await slack.deliver(slashOf('C1', 'U1', '/status'), slash)
  expect(second.received).toMatchObject([{ conversationId: `C1:${mine.ts}`, text: '/status' }])
})

test.each([
  ['', '/help'],
  ['codebase two', '/codebase two'],
  ['stop', '/stop'],
])('/coppice %s without a thread there is about the channel', async (typed, text) => {
  await using scene = await started()
  const answer = await scene.platform.webhook?.(form(slashOf('C1', 'U1', typed)))
  expect(scene.received).toMatchObject([{ conversationId: 'C1', text }])
  expect(answer).toMatchObject({ status: 200, headers: { 'content-type': 'application/json' } })
  expect(JSON.parse(answer?.body ?? '')).toMatchObject({ response_type: 'ephemeral' })
})

test('a stranger’s /coppice is refused to their face, and one that cannot be stored says so', async () => {
  await using scene = await started({ accept: () => Promise.reject(new Error('the disk is full')) })
  const { slack, received } = scene
  const refused = await slack.deliver(slashOf('C1', 'U9', 'stop'), slash)
  expect(refused).toMatchObject({ response_type: 'ephemeral', text: expect.stringContaining('U9') as string })
  const foreign = slashOf('C1', 'U1', 'stop', { team_id: 'T0OTHER' })
  expect(await slack.deliver(foreign, slash)).toMatchObject({ text: expect.stringContaining('T0OTHER/U1') as string })
  expect(received).toEqual([])
  expect(await slack.deliver(slashOf('C1', 'U1', 'stop'), slash)).toMatchObject({
    text: expect.stringContaining('Try again') as string,
  })
})
