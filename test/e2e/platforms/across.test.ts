import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { EnvironmentJson } from '../../helpers/cli.ts'
import { makeServerWorld, type ServerProcess, type ServerWorld } from '../../helpers/server-process.ts'
import { startDiscord } from '../../helpers/discord-double/double.ts'
import { startTelegramDouble } from '../../platforms/telegram-double.ts'
import * as github from '../../platforms/github-double.ts'
import { APP_TOKEN, BOT, BOT_TOKEN, mentionOf, type Posted, startSlackDouble } from '../../platforms/slack-double.ts'

/*
 * Begun in Slack, an issue that is linked to it, a pull request that fixes it, a merge: three threads, one tree. Through the
 * real server with both SDKs, each talking to a service on loopback.
 */

const agent = [
  'set -e',
  'message=$(cat)',
  'echo "$message" >> notes.txt',
  'cp "$COPPICE_CONTEXT" "$HOME/context-seen.txt"',
  'git add notes.txt',
  'git commit -q -m "$message"',
  'echo "Wrote it down on $COPPICE_BRANCH"',
].join('\n')

const call = `<@${BOT.user}>`
const { alice } = github
const repository = { full_name: 'acme/app', clone_url: 'https://github.com/acme/app.git' }
const common = { repository, sender: alice }

type Listed = EnvironmentJson & { readonly conversations?: string[] }
const listed = (world: ServerWorld, path: string): Promise<Listed[]> => world.json(path, 'worktree', 'list')

const tell = async (server: ServerProcess, event: string, payload: object): Promise<void> => {
  const body = JSON.stringify({ ...common, ...payload })
  const headers = github.headersFor({ event, payload }, body)
  const response = await fetch(`${server.url}/webhooks/github`, { method: 'POST', headers, body })
  expect(response.status).toBe(200)
  await server.quiet()
}

test('a thread in Slack, issue 42 linked to its tree, the pull request that fixes it: cleaned when GitHub says that it is merged', async () => {
  await using slack = await startSlackDouble()
  const double = await github.startDouble()
  await using hub = { ...double, [Symbol.asyncDispose]: () => double.close() }
  hub.permissions.set('alice', { id: 5, permission: 'admin' })
  await using world = makeServerWorld({
    env: {
      COPPICE_AGENT_COMMAND: agent,
      SLACK_BOT_TOKEN: BOT_TOKEN,
      SLACK_APP_TOKEN: APP_TOKEN,
      SLACK_ALLOWED_USERS: 'U1',
      SLACK_API_URL: slack.apiUrl,
      GITHUB_TOKEN: 'ghp_0123456789abcdef0123',
      GITHUB_WEBHOOK_SECRET: github.SECRET,
      GITHUB_BOT: 'coppice',
      GITHUB_API_URL: double.url,
    },
  })
  const repo = await world.project()
  await world.json(repo.path, 'codebase', 'add', repo.path, '--github', 'acme/app')
  writeFileSync(join(world.home, 'config.yaml'), 'cleanup:\n  holdMergedHours: 0\n')
  const server = await world.serve()
  let events = 0
  const say = async (text: string, root?: Posted): Promise<Posted> => {
    const said = slack.say('C1', 'U1', `${call} ${text}`, root?.ts)
    await slack.deliver(mentionOf(said, `Ev${(events += 1)}`))
    await server.quiet()
    return said
  }
  const inThread = (root: Posted): string[] =>
    slack.messages.filter(({ user, thread_ts }) => user === BOT.user && thread_ts === root.ts).map(({ text }) => text)

  // Two people talk about it before the bot is asked.
  const root = slack.say('C1', 'U7', 'The login says 500 since this morning')
  await say('fix the login', root)
  expect(readFileSync(join(world.env['HOME'] ?? '', 'context-seen.txt'), 'utf8')).toContain(
    '| The login says 500 since this morning',
  )
  const [tree] = await listed(world, repo.path)
  const [path, branch] = [tree?.path ?? '', tree?.branch ?? '']
  expect(tree).toMatchObject({ work: { type: 'thread' }, conversations: [`slack:C1:${root.ts}`] })

  // Somebody opens an issue, which gets a tree of its own until it is linked.
  const issue = { id: 1, number: 42, title: 'Login is broken', body: '@coppice look', user: alice, ...github.dated() }
  await tell(server, 'issues', { action: 'opened', issue })
  const order = { id: 4_000, body: `@coppice /worktree link ${branch}`, user: alice, ...github.dated() }
  await tell(server, 'issue_comment', { action: 'created', issue, comment: order })
  expect(double.bodies('acme/app#42').at(-1)).toContain(
    `Issue #42 now uses \`${branch}\`, on every platform. Its previous worktree \`issue-42\` keeps its files`,
  )

  // The branch is pushed, and a pull request says that it fixes the issue.
  world.box.raw(path, 'push', '-q', 'origin', branch)
  const tip = (): string => world.box.raw(path, 'rev-parse', 'HEAD')
  const pull = {
    id: 2,
    number: 99,
    title: 'Fix',
    body: 'Fixes #42',
    user: alice,
    head: { ref: branch, sha: tip(), repo: repository },
    base: { ref: 'main', repo: repository },
    ...github.dated(),
  }
  double.pulls.set('acme/app#99', pull)
  double.closing.set(99, ['acme/app#42'])
  const comment = { id: 5_000, body: '@coppice rename the variable', user: alice, ...github.dated() }
  const onPull = { ...pull, pull_request: { url: 'x' } }
  await tell(server, 'issue_comment', { action: 'created', issue: onPull, comment })
  expect(readFileSync(join(path, 'notes.txt'), 'utf8')).toBe('fix the login\nrename the variable\n')
  const shared = (await listed(world, repo.path)).find(({ id }) => id === tree?.id)
  expect(shared?.conversations?.toSorted()).toEqual(['github:acme/app#42', 'github:acme/app#99', `slack:C1:${root.ts}`])

  // Squashed with an edit on the way: git has no proof, and GitHub does. So is the issue's first attempt, unheard.
  world.box.raw(path, 'push', '-q', 'origin', branch)
  const squashed = (number: number): object => {
    repo.commit('notes.txt', `edited ${number}\n`, `Fix (#${number})`)
    repo.git('push', '-q', 'origin', 'main')
    return { merged: true, merge_commit_sha: repo.sha('main') }
  }
  const merged = { ...pull, head: { ...pull.head, sha: tip() }, ...squashed(99) }
  double.pulls.set('acme/app#99', merged)
  const attempt = { ...pull.head, ref: 'issue-42', sha: repo.sha('issue-42') }
  double.pulls.set('acme/app#100', { ...pull, id: 3, number: 100, head: attempt, ...squashed(100) })
  await tell(server, 'issues', { action: 'closed', issue })
  expect(existsSync(path)).toBe(true)
  await tell(server, 'pull_request', { action: 'closed', pull_request: merged })
  expect(double.bodies('acme/app#99').at(-1)).toContain('a conversation on slack still uses it')
  expect((await listed(world, repo.path)).find(({ id }) => id === tree?.id)).toMatchObject({
    merged: { value: true, proof: 'forge', pullRequest: 99 },
  })
  // The next sweep, once the thread has been idle for a while.
  const asked = double.queries.length
  const { removed } = await world.json<{ removed: Listed[] }>(repo.path, 'cleanup')
  expect(removed.map((one) => one.branch).toSorted()).toEqual(['issue-42', branch])
  expect(double.queries, 'one query for all that git leaves open').toHaveLength(asked + 1)
  await server.quiet()
  expect(inThread(root).at(-1)).toMatch(/^Worktree `thread-\w+` was removed \(merged: PR #99 on GitHub/)
  expect([existsSync(path), await listed(world, repo.path)]).toEqual([false, []])
  expect(repo.git('branch', '--list', branch, 'issue-42')).toBe('')
  await world.json(repo.path, 'worktree', 'restore', branch)
  expect(repo.git('show', `${branch}:notes.txt`)).toBe('fix the login\nrename the variable')
  expect((await server.stop()).code).toBe(0)
})

test('a platform with a bad token, or without anybody who may speak, is off in one sentence, and the rest runs', async () => {
  await using doubles = new AsyncDisposableStack()
  const started = async <T extends { close(): unknown }>(starting: Promise<T>): Promise<T> =>
    doubles.adopt(await starting, async (double) => {
      await double.close()
    })
  const discord = await started(startDiscord())
  const telegram = await started(startTelegramDouble())
  const hub = await started(github.startDouble())
  hub.trouble = () => ({ status: 401, body: { message: 'Bad credentials' } })
  await using world = makeServerWorld({
    env: {
      DISCORD_BOT_TOKEN: 'another.token',
      DISCORD_ALLOWED_USERS: '1',
      DISCORD_API_URL: discord.apiUrl,
      TELEGRAM_BOT_TOKEN: '1:another-token',
      TELEGRAM_ALLOWED_USERS: '1',
      TELEGRAM_API_URL: telegram.apiUrl,
      GITHUB_TOKEN: 'ghp_0123456789abcdef0123',
      GITHUB_WEBHOOK_SECRET: github.SECRET,
      GITHUB_BOT: 'coppice',
      GITHUB_API_URL: hub.url,
    },
  })
  await world.project()
  const server = await world.serve()
  expect((await server.call('/healthz')).status).toBe(200)
  const platforms = JSON.stringify(await (await server.call('/api/platforms')).json())
  expect(platforms).toContain('GitHub rejected the credentials')
  expect((await server.ask('c', '/help')).length).toBe(1)
  const refused = await server.stop()
  const printed = refused.out + refused.err
  expect(printed).toContain('discord is off: Discord rejected the bot token; create a new one')
  expect(printed).toContain('telegram is off: Telegram rejected the bot token: Unauthorized; write /token')
  expect(printed).not.toMatch(/another.token/)

  const nobody = await world.serve({ env: { DISCORD_ALLOWED_USERS: '', TELEGRAM_ALLOWED_USERS: '' } })
  const ended = await nobody.stop()
  for (const name of ['discord', 'telegram']) {
    expect(ended.out + ended.err).toContain(`${name} is off: no allowed users configured`)
  }
})
