import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { EnvironmentJson } from '../../helpers/cli.ts'
import { type DiscordDouble, startDiscord } from '../../helpers/discord-double/double.ts'
import { alice, mallory } from '../../helpers/discord-double/state.ts'
import { makeServerWorld, type ServerWorld, until } from '../../helpers/server-process.ts'

/* The life of one piece of work as somebody on Discord sees it, through the server process and the real SDK. */

/** Takes the message down in a file and commits it. */
const agent = [
  'set -e',
  'message=$(cat)',
  'echo "$message" >> notes.txt',
  'git add notes.txt',
  'git commit -q -m "$message"',
  'echo "Wrote it down on $COPPICE_BRANCH"',
].join('\n')

let discord: DiscordDouble
beforeEach(async () => {
  discord = await startDiscord()
})
afterEach(() => discord.close())

const makeWorld = (): ServerWorld =>
  makeServerWorld({
    env: {
      COPPICE_AGENT_COMMAND: agent,
      DISCORD_BOT_TOKEN: discord.token,
      DISCORD_ALLOWED_USERS: alice.id,
      DISCORD_API_URL: discord.apiUrl,
    },
  })

const said = (channel: string, count: number): Promise<string[]> =>
  until(`the bot has said ${count} things`, async () => {
    const all = discord.saidIn(channel).filter((text) => !text.includes('still writing'))
    return all.length >= count ? all : undefined
  })

const branchOf = (conversationId: string): string =>
  `thread-${createHash('sha256').update(conversationId).digest('hex').slice(0, 8)}`

test('a mention gets a thread and an isolated branch, the thread goes on over a crash with every reply once, and ends when it is deleted', async () => {
  await using world = makeWorld()
  const repo = await world.project()
  const checkout = repo.git('status', '--porcelain', '--branch')
  const first = await world.serve()

  discord.say('@coppice delete everything', { by: mallory })
  const { id } = discord.say('@coppice Fix the login')
  const branch = branchOf(`${discord.general.id}:${id}`)
  expect(await said(id, 2)).toEqual([
    `Working in isolated branch \`${branch}\` of \`project\``,
    `Wrote it down on ${branch}`,
  ])
  expect(discord.state.channels.get(id)).toMatchObject({ name: 'Fix the login', parent_id: discord.general.id })
  const [tree] = await world.json<EnvironmentJson[]>(repo.path, 'worktree', 'list')
  expect(tree).toMatchObject({ branch, status: 'active' })
  const path = tree?.path ?? ''

  // A reply that could not be delivered when the server was killed arrives after the next start, once.
  discord.rest.fail = ({ method, path: called }) =>
    method === 'POST' && called.endsWith('/messages') ? { how: 'lost' } : undefined
  const { id: lost } = discord.say('@coppice Fix the search')
  await until('a reply was tried', async () => discord.saidIn(lost)[0])
  await first.stop('SIGKILL')
  discord.rest.fail = () => undefined
  const second = await world.serve()
  await second.quiet()
  const lostBranch = branchOf(`${discord.general.id}:${lost}`)
  expect(discord.saidIn(lost)).toEqual([
    `Working in isolated branch \`${lostBranch}\` of \`project\``,
    `Wrote it down on ${lostBranch}`,
  ])

  // What is said while the server is dead is heard by the next one only if it is said to that one.
  discord.say('@coppice And the logout', { in: id })
  expect((await said(id, 3)).slice(2)).toEqual([`Wrote it down on ${branch}`])
  expect(readFileSync(join(path, 'notes.txt'), 'utf8')).toBe('Fix the login\nAnd the logout\n')

  discord.command('status', { in: id })
  expect((await said(id, 4))[3]).toContain(branch)
  expect(discord.state.callbacks).toMatchObject([{ content: '`/status`' }])

  // Nothing of all this is in the checkout that people work in, and nobody else was answered.
  expect(repo.git('status', '--porcelain', '--branch')).toBe(checkout)
  expect(discord.saidIn(discord.general.id)).toEqual([])

  world.box.raw(path, 'push', '-q', 'origin', `${branch}:main`)
  discord.state.channels.delete(id)
  discord.gateway.dispatch('THREAD_DELETE', { id, parent_id: discord.general.id, guild_id: '1', type: 11 })
  await until('the worktree is gone', async () => !existsSync(path) || undefined)
  await second.quiet()
  const left = await world.json<EnvironmentJson[]>(repo.path, 'worktree', 'list')
  expect(left.map((one) => one.branch)).toEqual([lostBranch])
  expect(repo.git('branch', '--format=%(refname:short)').split('\n').toSorted()).toEqual(['main', lostBranch])
  await second.stop()
})

test('with the settings in the config file, a channel that is bound by a command gives its codebase to its threads', async () => {
  await using world = makeServerWorld({ env: { COPPICE_AGENT_COMMAND: agent } })
  writeFileSync(
    join(world.home, 'config.yaml'),
    `worktrees:\n  spares: 0\nplatforms:\n  discord:\n    botToken: ${discord.token}\n    allowedUsers: ["${alice.id}"]\n    apiUrl: ${discord.apiUrl}\n`,
    { mode: 0o600 },
  )
  await world.project('first')
  const server = await world.serve()
  discord.say('hello', { in: '555555555555555555', direct: true })
  expect((await said('555555555555555555', 2))[1]).toMatch(/^Wrote it down on thread-/)

  await world.project('second')
  discord.command('codebase', { options: [{ type: 3, name: 'arguments', value: 'second' }] })
  await said(discord.general.id, 1)
  const { id } = discord.say('@coppice Fix the login')
  const branch = branchOf(`${discord.general.id}:${id}`)
  expect((await said(id, 2))[1]).toBe(`Wrote it down on ${branch}`)
  const list = await world.json<EnvironmentJson[]>(world.box.path('second'), 'worktree', 'list')
  expect(list.map((one) => one.branch)).toEqual([branch])
  await server.stop()
})
