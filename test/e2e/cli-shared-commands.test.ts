import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { type CliWorld, type EnvironmentJson, makeCliWorld, project } from '../helpers/cli.ts'
import { type TestRepo, writeIn } from '../helpers/repo.ts'

/* Commands that a chat and the command line share, said on the command line. */

let world: CliWorld
let repo: TestRepo

beforeEach(() => {
  world = makeCliWorld()
  repo = project(world)
})
afterEach(() => world[Symbol.dispose]())

const create = (...args: string[]): Promise<EnvironmentJson> =>
  world.json<EnvironmentJson>(repo.path, 0, 'worktree', 'create', ...args)

test('diff shows what the environment one stands in has changed, or the one that is named', async () => {
  const { path } = await create('--issue', '42')
  writeIn(path, 'README', 'hello\nagain\n')
  writeIn(path, 'new', 'x')
  expect((await world.run(path, 'diff')).out).toBe(
    'issue-42: 2 files changed since main, +1 -0\n+1  -0  README  uncommitted\n        new     untracked\n',
  )
  expect(await world.json(repo.path, 0, 'diff', 'issue-42')).toEqual({
    environment: expect.objectContaining({ branch: 'issue-42' }),
    base: 'main',
    files: [
      { path: 'README', added: 1, removed: 0, state: 'uncommitted' },
      { path: 'new', added: null, removed: null, state: 'untracked' },
    ],
  })
  const { code, err } = await world.run(repo.path, 'diff')
  expect({ code, err }).toEqual({
    code: 1,
    err: 'coppice: not inside a Coppice worktree.\nSpecify one: `coppice diff <name>`. Run `coppice worktree list` for a list.\n',
  })
})

test('the words of a chat are understood', async () => {
  const added = await world.json('/', 0, 'clone', repo.path)
  expect(await world.json('/', 0, 'codebases')).toEqual([{ ...added, environments: 0 }])
  expect((await world.run('/', 'reset')).err).toContain(
    'Send it to a conversation: coppice chat "/reset" --conversation <id>',
  )
})

test('conversations that a forced removal lets go of are told in their own threads', async () => {
  await create('--issue', '42')
  for (const conversation of ['slack:C1:1.2', 'telegram:77']) {
    await world.run(repo.path, 'worktree', 'link', 'issue-42', '--conversation', conversation)
  }
  expect((await world.run(repo.path, 'worktree', 'remove', 'issue-42')).code).toBe(3)
  expect((await world.run(repo.path, 'worktree', 'remove', 'issue-42', '--force')).code).toBe(0)
  const store = await openStore({ sqliteFile: join(world.home, 'coppice.db') })
  try {
    for (const key of [
      { platform: 'slack', conversationId: 'C1:1.2' },
      { platform: 'telegram', conversationId: '77' },
    ]) {
      expect(await store.outbox.ofConversation(key, 10)).toMatchObject([
        {
          role: 'system',
          state: 'waiting',
          text: 'Worktree `issue-42` was removed (by the command line). Restore it with `/worktree restore issue-42`.',
        },
      ])
    }
  } finally {
    await store.close()
  }
})

test('those that a cleanup lets go of are told too', async () => {
  const { path } = await create('landed')
  writeIn(path, 'landed', 'x')
  world.box.raw(path, 'add', '.')
  world.box.raw(path, 'commit', '-q', '-m', 'landed')
  repo.git('merge', '-q', '--no-ff', 'landed', '-m', 'merge')
  await world.run(repo.path, 'worktree', 'link', 'landed', '--conversation', 'slack:C1:1.2')
  const store = await openStore({ sqliteFile: join(world.home, 'coppice.db') })
  try {
    const conversation = await store.conversations.find('slack', 'C1:1.2')
    // Merged work is held for an hour after the last word.
    await store.conversations.update(conversation?.id ?? '', { lastActivityAt: Date.now() - 2 * 60 * 60 * 1000 })
    expect((await world.run(repo.path, 'worktree', 'cleanup', 'merged')).out).toContain('1 worktree removed')
    expect(await store.outbox.ofConversation({ platform: 'slack', conversationId: 'C1:1.2' }, 10)).toMatchObject([
      { text: expect.stringMatching(/^Worktree `landed` was removed \(.*main.*\)\. Restore it with/) },
    ])
  } finally {
    await store.close()
  }
})

test('pr pushes the branch of the worktree one stands in; refusals have the exit codes of every command', async () => {
  const bare = world.box.bare('origin.git')
  repo.git('remote', 'add', 'origin', bare.path)
  repo.git('push', '-q', 'origin', 'main')
  repo.git('remote', 'set-head', 'origin', 'main')
  const { path } = await create('--issue', '42')
  const refused = await world.json<{ error: object }>(path, 1, 'pr')
  expect(refused.error).toMatchObject({ code: 'no-commits', remedies: [] })
  world.box.raw(path, 'commit', '-q', '--allow-empty', '-m', 'Fix it')
  expect(await world.json(path, 0, 'pr')).toEqual({
    environment: expect.objectContaining({ branch: 'issue-42' }) as object,
    remote: 'origin',
    branch: 'issue-42',
    base: 'main',
    push: 'new',
    commits: 1,
    uncommitted: 0,
    pullRequest: null,
    compareUrl: null,
    problem: null,
  })
  expect(bare.git('rev-parse', 'issue-42')).toBe(world.box.raw(path, 'rev-parse', 'HEAD'))
  expect((await world.run(repo.path, 'pr', 'issue-42')).out).toBe(
    'issue-42 is up to date on origin: 1 commit not in main.\nNo pull request was opened: Coppice can only do that on GitHub, with a token or an app.\n',
  )
  expect((await world.run(repo.path, 'pr')).err).toContain('not inside a Coppice worktree')
  repo.git('push', '-q', 'origin', 'main:refs/pull/9/head')
  await create('--pr', '9', '--fork')
  const { error } = await world.json<{ error: { code: string } }>(repo.path, 3, 'pr', 'pr-9-review')
  expect(error.code).toBe('untrusted')
})
