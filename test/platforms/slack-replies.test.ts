import { progressOf, status } from '../helpers/progress.ts'
import { expect, test } from 'vitest'
import { DeliveryError, type OutgoingMessage } from '../../src/conversations/outbox/delivery.ts'
import { slackScene, type SlackScene } from './slack-arrange.ts'
import { BOT, type Fault, mentionOf, type Posted } from './slack-double.ts'

const root = '1700000000.000100'
const conversationId = `C1:${root}`

const reply = (id: string, text: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage => ({
  id,
  conversationId,
  role: 'agent',
  text,
  part: 1,
  parts: 1,
  ...more,
})

const ours = ({ slack }: SlackScene): Posted[] => slack.messages.filter(({ user }) => user === BOT.user)
const texts = (scene: SlackScene): string[] => ours(scene).map(({ text }) => text)
const called = ({ slack }: SlackScene, method: string): number =>
  slack.calls.filter((call) => call.method === method).length

test('a reply stands in its thread, in Slack’s dialect, with its id beside it', async () => {
  await using scene = await slackScene()
  await scene.platform.send(reply('r.0', '**Done**: see [the diff](https://x.org) & <more>'))
  expect(ours(scene)).toEqual([
    {
      channel: 'C1',
      ts: expect.any(String) as string,
      thread_ts: root,
      user: BOT.user,
      text: '*Done*: see <https://x.org|the diff> &amp; &lt;more&gt;',
      metadata: { event_type: 'coppice_reply', event_payload: { id: 'r.0' } },
    },
  ])
})

test('the answer to a message that came in is in the thread of that message', async () => {
  await using scene = await slackScene()
  const { slack, platform, inbox, received } = scene
  await platform.start(inbox)
  const said = slack.say('C1', 'U1', `<@${BOT.user}> go`)
  await slack.deliver(mentionOf(said, 'Ev1'))
  await platform.send(reply('r.0', 'Done.', { conversationId: received[0]?.conversationId ?? '' }))
  expect(ours(scene)).toMatchObject([{ channel: 'C1', thread_ts: said.ts }])
  // The thread began with that message: there was nothing to look for.
  expect(called(scene, 'conversations.replies')).toBe(0)
})

test('an answer whose acknowledgement was lost is not said twice', async () => {
  await using scene = await slackScene()
  scene.slack.fail('chat.postMessage', ['lose'])
  await expect(scene.platform.send(reply('r.0', 'Done.'))).rejects.toMatchObject({ kind: 'unreachable' })
  await scene.platform.send(reply('r.0', 'Done.'))
  await scene.platform.send(reply('r.1', 'More.', { part: 2, parts: 2 }))
  expect(texts(scene)).toEqual(['Done.', 'More.'])
})

test('after a crash another process knows what the first one said', async () => {
  await using first = await slackScene()
  await first.platform.send(reply('r.0', 'Done.'))
  const second = await slackScene({ slack: first.slack })
  await second.platform.send(reply('r.0', 'Done.'))
  await second.platform.send(reply('r.1', 'More.', { part: 2, parts: 2 }))
  await second.platform.send(reply('r.2', 'Even more.', { part: 3, parts: 3 }))
  expect(texts(first)).toEqual(['Done.', 'More.', 'Even more.'])
  // Once for each process.
  expect(called(first, 'conversations.replies')).toBe(2)
})

test('a long thread is read to its end', async () => {
  await using scene = await slackScene()
  for (let n = 0; n < 2_500; n++) scene.slack.say('C1', 'U1', 'x', root)
  await scene.platform.send(reply('r.0', 'Done.'))
  const second = await slackScene({ slack: scene.slack })
  await second.platform.send(reply('r.0', 'Done.'))
  expect(texts(scene)).toEqual(['Done.'])
})

test('without the right to read the thread an answer still arrives', async () => {
  await using scene = await slackScene()
  scene.slack.fail('conversations.replies', [{ error: 'missing_scope' }], true)
  await scene.platform.send(reply('r.0', 'Done.'))
  expect(texts(scene)).toEqual(['Done.'])
  expect(scene.log.join('')).toContain('could not be looked for')
})

const failing: readonly [string, Fault, DeliveryError['kind'], number | undefined][] = [
  ['channel_not_found', { error: 'channel_not_found' }, 'refused', undefined],
  ['is_archived', { error: 'is_archived' }, 'refused', undefined],
  ['not_in_channel', { error: 'not_in_channel' }, 'refused', undefined],
  ['invalid_auth', { error: 'invalid_auth' }, 'unreachable', 60_000],
  ['token_expired', { error: 'token_expired' }, 'unreachable', 60_000],
  ['account_inactive', { error: 'account_inactive' }, 'unreachable', 60_000],
  ['not_authed', { error: 'not_authed' }, 'unreachable', 60_000],
  ['missing_scope', { error: 'missing_scope' }, 'unreachable', 60_000],
  ['internal_error', { error: 'internal_error' }, 'unreachable', undefined],
  ['500', { status: 500 }, 'unreachable', undefined],
  ['429', { status: 429, retryAfter: 7 }, 'unreachable', 7_000],
  ['429 with less than nothing', { status: 429, retryAfter: -5 }, 'unreachable', 0],
  ['429 with a century', { status: 429, retryAfter: 3e9 }, 'unreachable', 3_600_000],
  ['429 without a time', { status: 429 }, 'unreachable', undefined],
  ['a page of somebody else', { page: '<html>login</html>' }, 'unreachable', undefined],
  ['a lost answer', 'lose', 'unreachable', undefined],
]
test.each(failing)('%s', async (_what, fault, kind, retryAfterMs) => {
  await using scene = await slackScene()
  scene.slack.fail('chat.postMessage', [fault])
  const failure: unknown = await scene.platform.send(reply('r.0', 'Done.')).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(DeliveryError)
  expect(failure).toMatchObject({ kind, retryAfterMs })
  if (kind === 'refused') return
  scene.time.offset += retryAfterMs ?? 0
  await scene.platform.send(reply('r.0', 'Done.'))
  expect(texts(scene)).toEqual(['Done.'])
})

test('a conversation that is none of Slack’s is refused', async () => {
  await using scene = await slackScene()
  const nowhere = reply('r.0', 'x', { conversationId: 'acme/app#42' })
  await expect(scene.platform.send(nowhere)).rejects.toMatchObject({ kind: 'refused' })
  expect(scene.slack.calls).toEqual([])
})

test('what is said of the channel itself is answered below the message that said it', async () => {
  await using scene = await slackScene()
  const { slack, platform, inbox, received } = scene
  await platform.start(inbox)
  for (const [n, name] of ['one', 'two'].entries()) {
    const said = slack.say('C1', 'U1', `<@${BOT.user}> /codebase ${name}`)
    await slack.deliver(mentionOf(said, `Ev${n}`))
    expect(received.at(-1)).toMatchObject({ conversationId: 'C1', details: { channelId: 'C1' } })
    await platform.send(reply(`r${n}.0`, name, { conversationId: 'C1', role: 'system' }))
    expect(ours(scene).at(-1)).toMatchObject({ text: name, thread_ts: said.ts })
  }
  // After a restart nobody knows where it was said.
  const second = await slackScene({ slack })
  await second.platform.send(reply('r9.0', 'late', { conversationId: 'C1', role: 'system' }))
  expect(ours(scene).at(-1)).toMatchObject({ text: 'late', thread_ts: undefined })
})

test('a preview is one message that is edited, and becomes the answer', async () => {
  await using scene = await slackScene()
  const { platform } = scene
  platform.preview?.(conversationId, progressOf('Look'))
  platform.preview?.(conversationId, progressOf('Looking **now**'))
  await expect.poll(() => texts(scene).length).toBe(1)
  expect(texts(scene)).toEqual([`Looking *now*\n\n${status} …`])
  platform.preview?.(conversationId, progressOf('Looking **now**. Found it.'))
  await expect.poll(() => texts(scene)[0]).toBe(`Looking *now*. Found it.\n\n${status} …`)
  await platform.send(reply('r.0', 'Looking now. Found it. Fixed.'))
  expect(texts(scene)).toEqual(['Looking now. Found it. Fixed.'])
  expect(ours(scene)[0]?.metadata).toEqual({ event_type: 'coppice_reply', event_payload: { id: 'r.0' } })
  await platform.send(reply('r.0', 'Looking now. Found it. Fixed.'))
  await platform.send(reply('s.0', 'A notice.', { role: 'system' }))
  expect(texts(scene)).toEqual(['Looking now. Found it. Fixed.', 'A notice.'])
})

test('a short answer needs no preview, and none comes after it', async () => {
  await using scene = await slackScene()
  const { platform } = scene
  platform.preview?.(conversationId, progressOf('Do'))
  await platform.send(reply('r.0', 'Done.'))
  // Another thread's preview is shown later than this one's would have been.
  platform.preview?.('C1:1700000001.000100', progressOf('Elsewhere'))
  await expect.poll(() => texts(scene)).toContain(`Elsewhere\n\n${status} …`)
  expect(texts(scene)).toEqual(['Done.', `Elsewhere\n\n${status} …`])
})

test('when somebody spoke below the preview, the answer goes further down and the preview away', async () => {
  await using scene = await slackScene()
  const { slack, platform, inbox } = scene
  await platform.start(inbox)
  platform.preview?.(conversationId, progressOf('Looking'))
  await expect.poll(() => texts(scene).length).toBe(1)
  await slack.deliver(mentionOf(slack.say('C1', 'U1', `<@${BOT.user}> and hurry`, root), 'Ev1'))
  await platform.send(reply('r.0', 'Done.'))
  expect(slack.messages.map(({ text }) => text)).toEqual([`<@${BOT.user}> and hurry`, 'Done.'])
})

test('an answer that is too long for an edit is posted, and the preview goes away', async () => {
  await using scene = await slackScene()
  const { platform } = scene
  platform.preview?.(conversationId, progressOf('<'))
  await expect.poll(() => texts(scene).length).toBe(1)
  await platform.send(reply('r.0', '<'.repeat(platform.limit ?? 0)))
  expect(texts(scene)).toEqual(['&lt;'.repeat(3_000)])
})

test('what a run that was killed had shown is taken away by the next life', async () => {
  await using first = await slackScene()
  first.platform.preview?.(conversationId, progressOf('Half a sen'))
  await expect.poll(() => texts(first).length).toBe(1)
  const second = await slackScene({ slack: first.slack })
  await second.platform.send(reply('r.0', 'A whole sentence.'))
  expect(texts(first)).toEqual(['A whole sentence.'])
})

test('another run’s preview does not continue the one of a run that was stopped', async () => {
  await using scene = await slackScene()
  const { platform } = scene
  platform.preview?.(conversationId, progressOf('First run'))
  await expect.poll(() => texts(scene).length).toBe(1)
  await platform.send(reply('s.0', 'Stopped.', { role: 'system' }))
  platform.preview?.(conversationId, progressOf('Second', { startedAt: 10 ** 14 + 1 }))
  await expect.poll(() => texts(scene)).toContain(`Second\n\n${status} …`)
  expect(texts(scene)).toEqual(['Stopped.', `Second\n\n${status} …`])
})

test('when Slack limits a channel, its threads wait without asking, other channels go on, and the answer arrives', async () => {
  await using scene = await slackScene()
  const { slack, platform, time } = scene
  slack.fail('chat.postMessage', [{ status: 429, retryAfter: 60 }])
  platform.preview?.(conversationId, progressOf('Looking'))
  await expect.poll(() => called(scene, 'chat.postMessage')).toBe(1)
  for (const waiting of [conversationId, 'C1:1700000001.000100']) {
    const held = platform.send(reply('r.0', 'Done.', { conversationId: waiting }))
    await expect(held).rejects.toMatchObject({ kind: 'unreachable', retryAfterMs: expect.any(Number) as number })
  }
  expect(called(scene, 'chat.postMessage')).toBe(1)
  await platform.send(reply('r.1', 'Elsewhere.', { conversationId: 'C2:1700000001.000100' }))
  time.offset += 60_000
  await platform.send(reply('r.0', 'Done.'))
  expect(texts(scene)).toEqual(['Elsewhere.', 'Done.'])
})

test('when the edit to the answer fails in a way that passes, the same message becomes it later', async () => {
  await using scene = await slackScene()
  const { slack, platform } = scene
  platform.preview?.(conversationId, progressOf('Looking'))
  await expect.poll(() => texts(scene).length).toBe(1)
  slack.fail('chat.update', [{ status: 502 }, 'lose'])
  await expect(platform.send(reply('r.0', 'Done.'))).rejects.toMatchObject({ kind: 'unreachable' })
  await expect(platform.send(reply('r.0', 'Done.'))).rejects.toMatchObject({ kind: 'unreachable' })
  await platform.send(reply('r.0', 'Done.'))
  expect(texts(scene)).toEqual(['Done.'])
  slack.fail('chat.update', [{ error: 'message_not_found' }])
  platform.preview?.(conversationId, progressOf('Again'))
  await expect.poll(() => texts(scene).length).toBe(2)
  await platform.send(reply('r.1', 'Done again.'))
  expect(texts(scene)).toEqual(['Done.', 'Done again.'])
})
