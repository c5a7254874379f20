import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { EnvironmentJson } from '../../helpers/cli.ts'
import { makeServerWorld, type ServerWorld, until } from '../../helpers/server-process.ts'
import {
  ada,
  group,
  mallory,
  startTelegramDouble,
  type TelegramDouble,
  TOKEN,
} from '../../platforms/telegram-double.ts'

/* The life of one piece of work as somebody on Telegram sees it, through the server process and the real SDK. */

/** Takes the message down in a file and commits it. */
const agent = [
  'set -e',
  'message=$(cat)',
  'echo "$message" >> notes.txt',
  'git add notes.txt',
  'git commit -q -m "$message"',
  'echo "Wrote it down on $COPPICE_BRANCH"',
].join('\n')

let telegram: TelegramDouble
beforeEach(async () => {
  telegram = await startTelegramDouble()
})
afterEach(() => telegram.close())

const makeWorld = (more: Record<string, string> = {}): ServerWorld =>
  makeServerWorld({
    // Nothing is held because somebody spoke of late.
    config: 'worktrees:\n  spares: 0\ncleanup:\n  holdMergedHours: 0\n',
    env: {
      COPPICE_AGENT_COMMAND: agent,
      TELEGRAM_BOT_TOKEN: TOKEN,
      TELEGRAM_ALLOWED_USERS: String(ada.id),
      TELEGRAM_API_URL: telegram.apiUrl,
      ...more,
    },
  })

const said = (chat: number, count: number, thread?: number): Promise<string[]> =>
  until(`the bot has said ${count} things`, async () => {
    const all = telegram.said(chat, thread).filter((text) => !text.endsWith('…'))
    return all.length >= count ? all : undefined
  })

const branchOf = (conversationId: string): string =>
  `thread-${createHash('sha256').update(conversationId).digest('hex').slice(0, 8)}`

test('a chat has an isolated branch, goes on over a crash, and hears what was said while nobody listened', async () => {
  await using world = makeWorld()
  const repo = await world.project()
  const checkout = repo.git('status', '--porcelain', '--branch')
  const first = await world.serve()

  telegram.say('delete everything', { from: mallory, chat: { id: mallory.id, type: 'private' } })
  telegram.say('Fix the login')
  const branch = branchOf(String(ada.id))
  expect(await said(ada.id, 2)).toEqual([
    `Working in isolated branch ${branch} of project`,
    `Wrote it down on ${branch}`,
  ])
  const [tree] = await world.json<EnvironmentJson[]>(repo.path, 'worktree', 'list')
  expect(tree).toMatchObject({ branch, status: 'active' })
  const path = tree?.path ?? ''

  await first.stop('SIGKILL')
  telegram.say('And the logout')
  const second = await world.serve()
  expect((await said(ada.id, 3)).slice(2)).toEqual([`Wrote it down on ${branch}`])
  await second.quiet()
  expect(readFileSync(join(path, 'notes.txt'), 'utf8')).toBe('Fix the login\nAnd the logout\n')

  telegram.say('/status@coppice_bot')
  expect((await said(ada.id, 4))[3]).toContain(branch)
  await until('all is confirmed', async () => telegram.waiting.length === 0 || undefined)
  const shown = await world.cli(repo.path, 'platforms')
  expect(shown.out).toMatch(/telegram\s+connected/)

  // Nothing of all this is in the checkout that people work in, and a stranger was only told that they are one.
  expect(repo.git('status', '--porcelain', '--branch')).toBe(checkout)
  expect(telegram.said(mallory.id)).toEqual([expect.stringContaining("aren't an allowed user")])

  // Merged or not, no cleaning up takes the environment of a persistent chat away.
  world.box.raw(path, 'push', '-q', 'origin', `${branch}:main`)
  const swept = await world.cli(repo.path, 'worktree', 'cleanup', 'merged')
  expect(swept.out).toContain(`telegram:${ada.id} is using it`)
  expect(existsSync(path)).toBe(true)
  await second.stop()
})

test('by webhook, with the secret only, and in a topic of a group', async () => {
  const secret = 'a-secret_of-ours'
  await using world = makeWorld({
    TELEGRAM_WEBHOOK_URL: 'https://coppice.example/webhooks/telegram',
    TELEGRAM_WEBHOOK_SECRET: secret,
  })
  await world.project()
  const server = await world.serve()
  expect(telegram.webhook).toMatchObject({ url: 'https://coppice.example/webhooks/telegram', secret_token: secret })
  const topic = { is_topic_message: true, message_thread_id: 5 }
  const body = JSON.stringify(telegram.updateOf('@coppice_bot Fix the login', { chat: group, message: topic }))
  const post = async (given: string): Promise<number> => {
    const headers = { 'content-type': 'application/json', 'x-telegram-bot-api-secret-token': given }
    return (await fetch(`${server.url}/webhooks/telegram`, { method: 'POST', headers, body })).status
  }
  expect(await post('another')).toBe(401)
  expect(await post(secret)).toBe(200)
  expect(await post(secret)).toBe(200)
  const branch = branchOf(`${group.id}:5`)
  expect(await said(group.id, 2, 5)).toEqual([
    `Working in isolated branch ${branch} of project`,
    `Wrote it down on ${branch}`,
  ])
  await server.quiet()
  expect(telegram.said(group.id, 5)).toHaveLength(2)
})
