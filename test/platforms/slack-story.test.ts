import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { until } from '../helpers/server-process.ts'
import { slackScene } from './slack-arrange.ts'
import { BOT, mentionOf, type Posted, pressOf } from './slack-double.ts'
import { makeStory } from './story.ts'

/* What a person sees in the thread, from the first word to the last. */

test('a mention with a file is worked on, allowed by a button, linked as a draft, merged, cleaned up and restored', async () => {
  await using story = await makeStory()
  await using told = await slackScene({ memory: story.memory('slack') })
  const { slack } = told
  await story.start(told.platform)
  const files = [slack.upload('app.log', 'GET /login 500')]
  const said = slack.say('C1', 'U1', `<@${BOT.user}> fix the login`, undefined, { files })
  await slack.deliver(mentionOf(said, 'Ev1'))
  await expect.poll(() => slack.reactions).toEqual([`eyes C1 ${said.ts}`])

  const ours = (): Posted[] => slack.messages.filter((one) => one.user === BOT.user && one.thread_ts === said.ts)
  const shown = (part: string): Promise<Posted> =>
    until(`"${part}" is shown`, async () => ours().find(({ text }) => text.includes(part)), 15_000)
  const preview = await shown('read src/login.ts')
  expect(labelsOf(preview)).toEqual(['Stop'])
  expect(story.asked).toEqual([{ prompt: 'fix the login', files: ['GET /login 500'] }])
  const { branch, path } = await story.environment()
  expect(ours()[0]?.text).toContain(`isolated branch \`${branch}\``)

  story.seen()
  const question = await shown('`demo` asks for permission: edit login.ts')
  expect(labelsOf(question)).toEqual(['Allow once', 'Deny'])
  await slack.deliver(pressOf(question, 'Allow once', 'U2'), { type: 'interactive' })
  const link = await shown('pull request #7')
  expect(link.text).toContain('Opened draft pull request #7: https://github.test/acme/app/pull/7')
  // The preview became the answer, and a button works once.
  expect(preview.text).toBe('The cookie is set now.')
  await expect.poll(() => JSON.stringify(question.attachments)).toContain('Allow once · <@U2>')
  await expect.poll(() => ours().flatMap(labelsOf)).toEqual([])
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
  await slack.deliver(pressOf(removed, 'Restore', 'U1'), { type: 'interactive' })
  await shown(`Restored \`${branch}\``)
  expect(readFileSync(join((await story.environment()).path, 'login.ts'), 'utf8')).toBe('export const cookie = true\n')
})

type Shown = { readonly blocks?: readonly { readonly type: string; readonly elements: readonly Button[] }[] }
type Button = { readonly text: { readonly text: string } }

/** What can be pressed under a message. */
const labelsOf = ({ attachments = [] }: Posted): string[] =>
  (attachments as readonly Shown[])
    .flatMap(({ blocks = [] }) => blocks)
    .filter(({ type }) => type === 'actions')
    .flatMap(({ elements }) => elements.map(({ text }) => text.text))
