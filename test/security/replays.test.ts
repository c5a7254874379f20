import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createStoreQueue } from '../../src/conversations/inbox/store-queue.ts'
import { DELIVERY_RETENTION_MS } from '../../src/domain/message.ts'
import type { Platform } from '../../src/platforms/platform.ts'
import { startPlatforms } from '../../src/platforms/start.ts'
import { createTelegramPlatform } from '../../src/platforms/telegram/platform.ts'
import { memoryForTest } from '../helpers/platform-memory.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { alice, dated, type GithubDouble, makeGithub, post, startDouble } from '../platforms/github-double.ts'
import { startTelegramDouble, TOKEN } from '../platforms/telegram-double.ts'

/*
 * A delivery is signed for ever, and whoever has recorded it can send it again whenever they like. Its id is remembered
 * for some weeks; it is refused before that is forgotten.
 */

const DAY = 24 * 60 * 60 * 1000
const start = Date.parse('2026-03-01T12:00:00Z')
let now = start
let world: World
let double: GithubDouble
let github: Platform
const queue = () => createStoreQueue({ ...world.context, endRun: async () => true })

beforeAll(async () => {
  world = await makeWorld({ context: { clock: () => now } })
  double = await startDouble()
  double.permissions.set('alice', { id: 5, permission: 'admin' })
  github = (await makeGithub({ token: 'x', bot: 'coppice', apiUrl: double.url }, {}, () => now)).platform
  await begin(github)
})
afterAll(async () => {
  await double.close()
  await world[Symbol.asyncDispose]()
})

const begin = async (platform: Platform): Promise<void> => {
  const accept = (message: Parameters<ReturnType<typeof queue>['accept']>[0]) => queue().accept(message)
  const { failed } = await startPlatforms([platform], (message) => accept({ ...message, lane: 'turn' }), world.context)
  expect(failed).toEqual([])
}

/** Everything that waits is worked on, and what is old enough is forgotten, as the scheduler does it. */
const workAndForget = async (): Promise<void> => {
  for (let message = await queue().claim('turn'); message !== undefined; message = await queue().claim('turn')) {
    await queue().finish(message, async () => undefined)
  }
  await world.context.store.inbox.deleteDone(now - DELIVERY_RETENTION_MS)
}

const repository = { full_name: 'acme/app' }
const head = { ref: 'fix', sha: 'b'.repeat(40), repo: repository }
const said = (at: string | undefined, id: number) => ({
  ...(at === undefined ? {} : dated(at)),
  id,
  number: id,
  title: 'Login',
  body: '@coppice fix it',
  user: alice,
})
const old = (id: number) => ({ ...said('2020-01-01T00:00:00Z', id), body: 'long ago' })

/** What GitHub posts, each written at `at`; the thread itself may be much older. */
const deliveries: [string, string, (at: string | undefined, id: number) => object][] = [
  ['issues', 'opened', (at, id) => ({ issue: said(at, id) })],
  ['issues', 'closed', (at, id) => ({ issue: { ...old(id), ...said(at, id) } })],
  ['issue_comment', 'created', (at, id) => ({ issue: old(id), comment: said(at, id) })],
  ['pull_request', 'opened', (at, id) => ({ pull_request: { ...said(at, id), head, base: { repo: repository } } })],
  ['pull_request', 'closed', (at, id) => ({ pull_request: { ...said(at, id), head, base: { repo: repository } } })],
  [
    'pull_request_review',
    'submitted',
    (at, id) => ({ pull_request: { ...old(id), head, base: { repo: repository } }, review: said(at, id) }),
  ],
  [
    'pull_request_review_comment',
    'created',
    (at, id) => ({ pull_request: { ...old(id), head, base: { repo: repository } }, comment: said(at, id) }),
  ],
]

describe.each(deliveries)('%s %s', (event, action, payloadOf) => {
  const id = 1_000 + deliveries.findIndex((one) => one[0] === event && one[1] === action)
  /** Each time under a new id of delivery, which is not signed. */
  const send = (at: string | undefined, number = id) =>
    post(github, { event, payload: { action, repository, sender: alice, ...payloadOf(at, number) } })

  test('is accepted once, however often and however late it is sent again', async () => {
    now = start
    const at = new Date(now).toISOString()
    expect(await send(at)).toEqual({ status: 200, body: 'accepted' })
    const answers = new Set<string>()
    for (let day = 0; day <= 40; day += 1) {
      now = start + day * DAY
      await workAndForget()
      answers.add(`${(await send(at)).status} ${(await send(at)).body ?? ''}`)
    }
    expect([...answers]).toEqual(['200 duplicate', '400 refused: too old'])
  })

  test('is refused when it does not say when it was written', async () => {
    expect(await send(undefined, id + 100)).toEqual({ status: 400, body: 'refused: too old' })
  })
})

test('Telegram: an old message is acknowledged, so that it does not come again, and nothing is done', async () => {
  now = start
  const telegram = await startTelegramDouble()
  const settings = {
    botToken: TOKEN,
    allowedUsers: ['7'],
    apiUrl: telegram.apiUrl,
    webhookUrl: 'https://example.com/webhooks/telegram',
    webhookSecret: 'secret',
  }
  const { log } = world.context
  const platform = await createTelegramPlatform(settings, { log, clock: () => now, memory: memoryForTest() })
  await begin(platform)
  const send = async (date: number): Promise<number | undefined> => {
    const body = Buffer.from(JSON.stringify(telegram.updateOf('fix it', { message: { date } })))
    return (await platform.webhook?.({ headers: { 'x-telegram-bot-api-secret-token': 'secret' }, body }))?.status
  }
  await workAndForget()
  expect([await send(start / 1000 - 30 * 86_400), await send(start / 1000)]).toEqual([200, 200])
  expect(await world.context.store.inbox.counts()).toEqual({ waiting: 1, running: 0 })
  await platform.stop()
  await telegram.close()
})
