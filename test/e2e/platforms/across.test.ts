import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { EnvironmentJson } from '../../helpers/cli.ts'
import { makeServerWorld, type ServerProcess, type ServerWorld } from '../../helpers/server-process.ts'
import * as github from '../../platforms/github-double.ts'
import { APP_TOKEN, BOT, BOT_TOKEN, mentionOf, type Posted, startSlackDouble } from '../../platforms/slack-double.ts'

/*
 * Begun in Slack, an issue, a pull request that fixes it, a merge: three threads on two platforms, one tree. Through the
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

test('a thread in Slack, issue 42, the pull request that fixes it and its merge speak of one tree', async () => {
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

  // Two people talk about it; the bot is not asked yet.
  const root = slack.say('C1', 'U7', 'The login says 500 since this morning')
  const issue = {
    id: 1,
    number: 42,
    title: 'Login is broken',
    body: '@coppice fix the login',
    user: alice,
    ...github.dated(),
  }
  await tell(server, 'issues', { action: 'opened', issue })
  const [tree] = await listed(world, repo.path)
  const path = tree?.path ?? ''
  expect(tree).toMatchObject({ branch: 'issue-42', conversations: ['github:acme/app#42'] })

  await say('/worktree link issue-42', root)
  expect(inThread(root)[0]).toMatch(/^Linked this conversation to `issue-42`/)
  await say('and log the reason', root)
  expect(inThread(root).at(-1)).toBe('Wrote it down on issue-42')
  expect(readFileSync(join(world.env['HOME'] ?? '', 'context-seen.txt'), 'utf8')).toContain(
    '| The login says 500 since this morning',
  )

  // The branch is pushed, and a pull request says that it fixes the issue.
  world.box.raw(path, 'push', '-q', 'origin', 'issue-42')
  const head = { ref: 'issue-42', sha: repo.sha('issue-42'), repo: repository }
  const pull = {
    id: 2,
    number: 99,
    title: 'Fix',
    body: 'Fixes #42',
    user: alice,
    head,
    base: { repo: repository },
    ...github.dated(),
  }
  double.pulls.set('acme/app#99', pull)
  double.closing.set(99, ['acme/app#42'])
  const comment = { id: 5_000, body: '@coppice rename the variable', user: alice, ...github.dated() }
  const onPull = { ...pull, pull_request: { url: 'x' } }
  await tell(server, 'issue_comment', { action: 'created', issue: onPull, comment })
  expect(readFileSync(join(path, 'notes.txt'), 'utf8')).toBe('fix the login\nand log the reason\nrename the variable\n')
  const [shared, ...others] = await listed(world, repo.path)
  expect(others).toEqual([])
  expect(shared?.conversations?.toSorted()).toEqual(['github:acme/app#42', 'github:acme/app#99', `slack:C1:${root.ts}`])

  // Merged: GitHub closes both. Slack is still there, so the tree is too, until the thread lets go of it.
  world.box.raw(path, 'push', '-q', 'origin', 'issue-42', 'issue-42:main')
  await tell(server, 'pull_request', { action: 'closed', pull_request: { ...pull, merged: true } })
  await tell(server, 'issues', { action: 'closed', issue })
  expect(double.bodies('acme/app#42').at(-1)).toContain('a conversation on slack still uses it')
  expect(existsSync(path)).toBe(true)
  await say('/worktree remove', root)
  expect(inThread(root).at(-1)).toMatch(/^Removed `issue-42`/)
  expect(existsSync(path)).toBe(false)
  expect(await listed(world, repo.path)).toEqual([])
  expect(inThread(root)).toHaveLength(3)
  expect((await server.stop()).code).toBe(0)
})
