import { afterEach, beforeEach, expect, test } from 'vitest'
import { createGithubForge } from '../../src/platforms/github/forge/forge.ts'
import { createLogger } from '../../src/process/log.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'
import { makeChat } from '../helpers/chat.ts'
import { type During, sendTo } from '../helpers/send.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { type GithubDouble, startDouble } from '../platforms/github-double.ts'
import { inside } from './scene.ts'

/* `/pr` in a conversation, and runs that open a pull request by themselves. */

let double: GithubDouble
beforeEach(async () => {
  double = await startDouble()
})
afterEach(() => double.close())

const aWorld = async (open: 'auto' | 'on-request'): Promise<World> => {
  const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })
  const parts = { log, clock: Date.now, secrets: createSecrets() }
  const world = await makeWorld({
    remote: true,
    context: { forge: createGithubForge({ token: 'ghp_x', apiUrl: double.url }, parts, { timeoutMs: 10_000 }) },
    prepare: (repo) => void repo.commit('.coppice/config.yaml', `pullRequests:\n  open: ${open}\n`),
  })
  await world.context.store.codebases.update(world.codebase.id, { github: 'acme/app' })
  return world
}

const commits = (world: World): During => ({
  agent: async (directory) => {
    world.box.raw(directory, 'commit', '-q', '--allow-empty', '-m', 'Fix it')
  },
})

const onIssue = {
  conversationId: 'acme/app#42',
  details: { codebase: 'project', hints: { workflowType: 'issue', workflowId: '42' } },
} as const

test('on request, only /pr opens a pull request for the worktree of the conversation, with the title that is given', async () => {
  await using world = await aWorld('on-request')
  const chat = await makeChat(world)
  expect(await chat.say('/pr')).toContain('This conversation has no worktree yet.')
  await chat.say('/worktree create feature')
  const { environmentId } = await chat.conversation()
  const environment = await world.context.store.environments.get(environmentId!)
  expect(await chat.say('/pr')).toBe("`feature` has no commits that `origin/main` doesn't have.")
  inside(world, environment!).commit('a.txt', 'a\n')
  expect(await chat.say('/pr --title "A better title" --ready')).toBe(
    'Opened pull request #7: https://github.test/acme/app/pull/7',
  )
  expect(double.opened).toMatchObject([{ title: 'A better title', draft: false, head: { ref: 'feature' } }])
  expect(await chat.say('/pr --title ""')).toContain('title is empty')
  // A run publishes nothing by itself.
  expect((await sendTo(world, 'fix this', onIssue, commits(world))).said).toMatch(/\ndone$/)
  expect(double.opened).toHaveLength(1)
})

test('with `auto`, a run that committed links its pull request in the reply, and the next one updates it', async () => {
  await using world = await aWorld('auto')
  const url = 'https://github.test/acme/app/pull/7'
  const first = await sendTo(world, 'fix this', onIssue, commits(world))
  expect(first.said).toContain(`done\nOpened draft pull request #7: ${url}`)
  expect(double.opened).toMatchObject([{ title: 'Fix it', draft: true, head: { ref: 'issue-42' } }])
  expect((await sendTo(world, 'what did you do?', onIssue)).said).toBe('done')
  expect((await sendTo(world, 'and that', onIssue, commits(world))).said).toBe(
    `done\nPushed \`issue-42\` to origin; draft pull request #7 is already open: ${url}`,
  )
  // A comment on that pull request is worked on in the same worktree.
  const hints = { workflowType: 'pr', workflowId: '7', prBranch: 'issue-42', isForkPR: false } as const
  const there = await sendTo(world, 'rename it', {
    conversationId: 'acme/app#7',
    details: { codebase: 'project', hints },
  })
  expect(there.request?.directory).toBe(world.box.path('trees/project/issue-42'))
})

test("with `auto`, a stranger's run is not published, and a push that fails doesn't hide the reply", async () => {
  await using world = await aWorld('auto')
  world.repo.git('push', '-q', 'origin', 'main:refs/pull/9/head')
  const hints = { workflowType: 'pr', workflowId: '9', isForkPR: true } as const
  const stranger = { conversationId: 'acme/app#9', details: { codebase: 'project', hints } }
  const { said, request } = await sendTo(world, 'publish me', stranger, commits(world))
  expect(request?.untrusted).toBe(true)
  expect(said).not.toMatch(/pull request #|Pushed|pushed/)
  const origin = world.box.path('origin.git')
  expect(world.box.raw(origin, 'for-each-ref', '--format=%(refname)', 'refs/heads')).toBe('refs/heads/main')
  expect(double.requests).toEqual([])
  // Nor from our own worktree, if somebody linked the stranger's conversation to it.
  await sendTo(world, 'look at this', onIssue)
  const linked = await sendTo(
    world,
    'publish me',
    { ...stranger, conversationId: onIssue.conversationId },
    commits(world),
  )
  expect(linked.request).toMatchObject({ untrusted: true, directory: world.box.path('trees/project/issue-42') })
  expect(linked.said).not.toMatch(/pull request #|Pushed|pushed/)
  const gone: During = {
    agent: async (directory) => {
      await commits(world).agent?.(directory)
      world.repo.git('remote', 'set-url', 'origin', '/nowhere.git')
    },
  }
  expect((await sendTo(world, 'fix this', onIssue, gone)).said).toMatch(
    /done\n[^]*Couldn't push: .*\nNothing was changed/,
  )
})
