import { expect, test } from 'vitest'
import { slackScene } from './slack-arrange.ts'
import { BOT, mentionOf, pressOf } from './slack-double.ts'

/* What a person sees, from the first word to the last, against the double: the server behind it is another test's. */

test('a mention with a screenshot is seen, worked on, asked about, allowed by a button, and answered', async () => {
  await using scene = await slackScene()
  const { slack, platform, received } = scene
  await platform.start(scene.inbox)
  const ours = () => slack.messages.filter(({ user }) => user === BOT.user)
  const system = { role: 'system', part: 1, parts: 1 } as const

  const files = [slack.upload('shot.png', 'PNG!')]
  const said = slack.say('C1', 'U1', `<@${BOT.user}> fix what you see here`, undefined, { files })
  await slack.deliver(mentionOf(said, 'Ev1'))
  const [order] = received
  expect(order).toMatchObject({ text: 'fix what you see here', details: { attachments: [{ name: 'shot.png' }] } })
  await expect.poll(() => slack.reactions).toEqual([`eyes C1 ${said.ts}`])

  const conversationId = order?.conversationId ?? ''
  platform.preview?.(conversationId, { text: '', tool: 'read src/login.ts', startedAt: Date.now() })
  await expect
    .poll(() =>
      ours()
        .map(({ text }) => text)
        .join(''),
    )
    .toContain('src/login.ts')
  expect(JSON.stringify(ours()[0]?.attachments)).toContain('"/stop"')

  const actions = [{ label: 'Allow', command: '/allow' }]
  await platform.send({ ...system, id: 'q.0', conversationId, text: 'May I push?', actions })
  const question = ours().find(({ text }) => text === 'May I push?')
  if (question === undefined) throw new Error('nothing was asked')
  await slack.deliver(pressOf(question, 'Allow', 'U2'), { type: 'interactive' })
  expect(received[1]).toMatchObject({ conversationId, text: '/allow', details: { userId: 'U2' } })
  await expect.poll(() => JSON.stringify(question.attachments)).toContain('Allow · <@U2>')

  const text = 'Fixed: see https://github.com/acme/app/pull/7'
  await platform.send({ id: 'r.0', conversationId, role: 'agent', text, part: 1, parts: 1 })
  expect(
    ours().map((one) => [one.text, one.thread_ts, JSON.stringify(one.attachments)?.includes('button') ?? false]),
  ).toEqual([
    [text, said.ts, false],
    ['May I push?', said.ts, false],
  ])
})
