import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { EnvironmentJson } from '../../helpers/cli.ts'
import { makeServerWorld, type ServerWorld, until } from '../../helpers/server-process.ts'
import {
  APP_TOKEN,
  BOT,
  BOT_TOKEN,
  mentionOf,
  type Posted,
  signedRequest,
  type SlackDouble,
  slashOf,
  startSlackDouble,
} from '../../platforms/slack-double.ts'

/*
 * The whole way as people in Slack see it: the real server process with the real SDK, over HTTP and a WebSocket to a
 * Slack on loopback, real git, and an agent that is a program.
 */

const agent = [
  'set -e',
  'message=$(cat)',
  'echo "$message" >> notes.txt',
  'git add notes.txt',
  'git commit -q -m "$message"',
  'echo "**Wrote** it down on \\`$COPPICE_BRANCH\\`"',
].join('\n')

const SECRET = 'slack-signing-secret'
const call = `<@${BOT.user}>`

const slackEnv = (slack: SlackDouble): Record<string, string> => ({
  SLACK_BOT_TOKEN: BOT_TOKEN,
  SLACK_APP_TOKEN: APP_TOKEN,
  SLACK_SIGNING_SECRET: SECRET,
  SLACK_ALLOWED_USERS: 'U1,U2',
  SLACK_API_URL: slack.apiUrl,
})

const worldWith = (slack: SlackDouble, env: Record<string, string> = {}): ServerWorld =>
  makeServerWorld({ env: { COPPICE_AGENT_COMMAND: agent, ...slackEnv(slack), ...env } })

/** What the bot has said in a thread, once it is this much. */
const answers = async (slack: SlackDouble, root: Posted, count: number): Promise<string[]> => {
  const said = (): string[] =>
    slack.messages.filter(({ user, thread_ts }) => user === BOT.user && thread_ts === root.ts).map(({ text }) => text)
  await until(`there are ${count} answers`, async () => (said().length >= count ? true : undefined))
  return said()
}

const trees = (world: ServerWorld, cwd: string): Promise<(EnvironmentJson & { conversations?: string[] })[]> =>
  world.json(cwd, 'worktree', 'list')

test('a mention gets an isolated branch and an answer in its thread; the thread goes on there; it is put away', async () => {
  await using slack = await startSlackDouble()
  await using world = worldWith(slack)
  const repo = await world.project()
  const server = await world.serve()
  await slack.opened(1)

  const root = slack.say('C1', 'U1', `${call} Fix the login`)
  await slack.deliver(mentionOf(root, 'Ev1'))
  const first = await answers(slack, root, 2)
  expect(first[0]).toMatch(/^Working in isolated branch `thread-[0-9a-f]{8}` of `project`$/)
  expect(first[1]).toMatch(/^\*Wrote\* it down on `thread-/)
  const [tree, ...none] = await trees(world, repo.path)
  expect(none).toEqual([])
  expect(tree?.conversations).toEqual([`slack:C1:${root.ts}`])
  const notes = join(tree?.path ?? '', 'notes.txt')
  expect(readFileSync(notes, 'utf8')).toBe('Fix the login\n')

  // Others talk in the thread; only who calls the bot gives it an order.
  slack.say('C1', 'U2', 'sounds good', root.ts)
  const again = slack.say('C1', 'U2', `${call} and add a test`, root.ts)
  await slack.deliver(mentionOf(again, 'Ev2'))
  await slack.deliver(mentionOf(again, 'Ev2'), { retry_attempt: 1, retry_reason: 'timeout' })
  await answers(slack, root, 3)
  expect(slack.reactions).toEqual([`eyes C1 ${root.ts}`, `eyes C1 ${again.ts}`])
  // A slash command knows no thread: it is about the latest one of who uses it.
  await slack.deliver(slashOf('C1', 'U1', 'status'), { type: 'slash_commands' })
  const third = await answers(slack, root, 4)
  expect(third[3]).toContain(tree?.branch)
  expect(readFileSync(notes, 'utf8')).toBe('Fix the login\nand add a test\n')

  // Another thread is another tree.
  const other = slack.say('C1', 'U2', `${call} Fix the logout`)
  await slack.deliver(mentionOf(other, 'Ev4'))
  await answers(slack, other, 2)
  expect(await trees(world, repo.path)).toHaveLength(2)

  world.box.raw(tree?.path ?? '', 'push', '-q', 'origin', 'HEAD')
  const done = slack.say('C1', 'U1', `${call} /worktree remove`, root.ts)
  await slack.deliver(mentionOf(done, 'Ev5'))
  expect((await answers(slack, root, 5))[4]).toMatch(/removed|Removed/)
  expect(existsSync(notes)).toBe(false)
  await server.quiet()
  expect(slack.messages.filter(({ user }) => user === BOT.user)).toHaveLength(7)
  expect((await server.stop()).code).toBe(0)
  await until('the connection is closed', async () => slack.open() === 0 || undefined)
})

test('events that Slack posts: signed ones are taken once, whatever comes twice or out of order; others are refused', async () => {
  await using slack = await startSlackDouble()
  await using world = worldWith(slack, { SLACK_APP_TOKEN: '' })
  await world.project()
  const server = await world.serve()
  const post = async (payload: unknown, secret = SECRET): Promise<number> => {
    const { headers, body } = signedRequest(payload, secret)
    return (await fetch(`${server.url}/webhooks/slack`, { method: 'POST', headers, body })).status
  }
  expect(await post({ type: 'url_verification', challenge: 'abc' })).toBe(200)
  const roots = Array.from({ length: 20 }, (_, n) => slack.say('C1', 'U1', `${call} /help ${n}`))
  const deliveries = roots.flatMap((root, n) =>
    Array.from({ length: n % 4 === 0 ? 3 : 1 }, () => mentionOf(root, `Ev${n}`)),
  )
  expect(await post(deliveries[0], 'guess')).toBe(401)
  const statuses = await Promise.all(deliveries.toReversed().map((payload) => post(payload)))
  expect(new Set(statuses)).toEqual(new Set([200]))
  for (const root of roots) await answers(slack, root, 1)
  await server.quiet()
  expect(slack.messages.filter(({ user }) => user === BOT.user)).toHaveLength(20)
})

test('Slack fails for a while and the server is killed: every reply arrives, in order, once', async () => {
  await using slack = await startSlackDouble()
  await using world = worldWith(slack)
  await world.project()
  const server = await world.serve()
  slack.fail('chat.postMessage', ['lose', { status: 500 }, { status: 429, retryAfter: 1 }, { page: '<html>' }])
  const root = slack.say('D1', 'U1', 'Fix the login')
  await slack.deliver(mentionOf(root, 'Ev1'))
  await slack.deliver(mentionOf(slack.say('D1', 'U1', 'and add a test', root.ts), 'Ev2'))
  // The first reply is out, and the server does not know.
  await answers(slack, root, 1)
  await server.stop('SIGKILL')
  slack.heal()
  const next = await world.serve()
  await next.quiet()
  const said = await answers(slack, root, 3)
  expect(said[0]).toMatch(/^Working in isolated branch/)
  expect(said.slice(1).every((text) => text.startsWith('*Wrote*'))).toBe(true)
  expect(said).toHaveLength(3)
})

test('a platform that cannot start is off with one sentence, the others run, and coppice platforms says so; a channel is told once which codebase it is about', async () => {
  await using slack = await startSlackDouble()
  await using world = worldWith(slack, { TELEGRAM_BOT_TOKEN: '1:not-to-be-seen' })
  await world.project('one')
  const two = await world.project('two')
  const before = await world.json<{ server: null; platforms: Shown[] }>(world.box.root, 'platforms')
  expect(before.server).toBeNull()
  expect(before.platforms.find(({ platform }) => platform === 'slack')?.state).toBe('not running')
  const setup = await world.json<{ ready: boolean; checks: { passed: boolean }[] }>(
    world.box.root,
    'platforms',
    'setup',
    'slack',
  )
  expect(setup.checks.map(({ passed }) => passed)).toEqual([true, true, true, true, true])

  const server = await world.serve({ env: { SLACK_ALLOWED_USERS: '' } })
  const off = await world.json<{ server: string; platforms: Shown[] }>(world.box.root, 'platforms')
  expect(off.server).toBe(server.url)
  expect(off.platforms.find(({ platform }) => platform === 'slack')).toMatchObject({
    state: 'off',
    lastError: expect.stringMatching(/^no allowed users configured; list their user IDs/) as string,
  })
  expect((await server.ask('c', '/help')).length).toBeGreaterThan(0)
  const { out } = await server.stop()
  expect(out).toMatch(/note: slack is off: no allowed users configured/)

  const on = await world.serve()
  const root = slack.say('C1', 'U1', `${call} /help`)
  await slack.deliver(mentionOf(root, 'Ev1'))
  await answers(slack, root, 1)
  const shown = await world.cli(world.box.root, 'platforms')
  expect(shown.out).toMatch(/slack\s+connected\s+just now\s+just now/)
  expect(shown.out + shown.err).not.toContain('not-to-be-seen')

  const unbound = slack.say('C1', 'U1', `${call} Fix the login`)
  await slack.deliver(mentionOf(unbound, 'Ev2'))
  expect((await answers(slack, unbound, 1))[0]).toContain('/codebase')
  const binding = slack.say('C1', 'U1', `${call} /codebase two`)
  await slack.deliver(mentionOf(binding, 'Ev3'))
  expect((await answers(slack, binding, 1))[0]).toContain('`two`')
  const bound = slack.say('C1', 'U1', `${call} Fix the login`)
  await slack.deliver(mentionOf(bound, 'Ev4'))
  await answers(slack, bound, 2)
  expect((await trees(world, two.path)).map(({ conversations }) => conversations)).toEqual([[`slack:C1:${bound.ts}`]])
  await on.stop()
})

type Shown = { readonly platform: string; readonly state: string; readonly lastError: string | null }
