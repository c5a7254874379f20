import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { EnvironmentJson } from '../../helpers/cli.ts'
import type { TestRepo } from '../../helpers/repo.ts'
import { makeServerWorld, onDatabase, type ServerWorld, textsOf } from '../../helpers/server-process.ts'

/*
 * The life of one piece of work as its people see it: through the server process, over HTTP, with an agent that is a
 * program, real git and a remote that others push to.
 */

/** Takes the message down in a file, commits it, and leaves an ignored file beside it. */
const agent = [
  'set -e',
  'message=$(cat)',
  'echo "$message" >> notes.txt',
  'echo "$message" >> local.log',
  'git add notes.txt',
  'git commit -q -m "$message"',
  'echo "Wrote it down on $COPPICE_BRANCH in session $COPPICE_SESSION"',
].join('\n')

type Listed = EnvironmentJson & { conversations?: string[]; merged?: { value: boolean | null } }
type Point = { environment: EnvironmentJson; dirty: boolean }

const listed = (world: ServerWorld, repo: TestRepo): Promise<Listed[]> =>
  world.json<Listed[]>(repo.path, 'worktree', 'list')

const setUp = async (world: ServerWorld): Promise<TestRepo & { origin: string }> => {
  const repo = await world.project()
  repo.commit('.gitignore', 'local.log\n', 'what is ignored')
  repo.git('push', '-q', 'origin', 'main')
  return repo
}

/**
 * What the forge does at "Squash and merge": one new commit on main with another id, in a clone of its own. Main had
 * moved on before, and moves on in the same lines afterwards, so only the patch itself shows that the work is in it.
 */
const squashMerge = (world: ServerWorld, repo: { origin: string }, branch: string): string => {
  const clone = world.box.path('forge')
  const git = (...args: string[]): string => world.box.raw(clone, ...args)
  world.box.raw(world.box.root, 'clone', '-q', repo.origin, clone)
  writeFileSync(join(clone, 'meanwhile.txt'), 'by somebody else\n')
  git('add', '.')
  git('commit', '-q', '-m', 'meanwhile')
  git('merge', '-q', '--squash', `origin/${branch}`)
  git('commit', '-q', '-m', 'Fix the login (#99)')
  const squashed = git('rev-parse', '--short=7', 'HEAD')
  writeFileSync(join(clone, 'notes.txt'), 'all of it in other words\n')
  git('commit', '-q', '-a', '-m', 'afterwards')
  git('push', '-q', 'origin', 'main')
  return squashed
}

const branches = (repo: TestRepo): string[] => repo.git('branch', '--format=%(refname:short)').split('\n')
const worktrees = (repo: TestRepo): number =>
  repo
    .git('worktree', 'list', '--porcelain')
    .split('\n')
    .filter((line) => line.startsWith('worktree ')).length

/** Nothing of all this is in the checkout that people work in. */
const checkoutOf = (repo: TestRepo): string =>
  [repo.git('status', '--porcelain', '--ignored'), repo.git('symbolic-ref', 'HEAD'), repo.sha('HEAD')].join('\n')

onDatabase('postgres', (database) => {
  test('issue 42 gets a tree, PR 99 shares it, the issue closes, the PR is squash-merged and closes, restore brings it back', async () => {
    await using world = makeServerWorld({ env: { COPPICE_AGENT_COMMAND: agent, ...(await database()) } })
    const repo = await setUp(world)
    const checkout = checkoutOf(repo)
    const server = await world.serve()

    const opened = await server.ask('acme/app#42', 'Fix the login', {
      hints: { workflowType: 'issue', workflowId: '42' },
    })
    expect(opened.map(({ role }) => role)).toEqual(['system', 'agent'])
    expect(opened[0]?.text).toBe('Working in isolated branch `issue-42` of `project`')
    expect(opened[1]?.text).toMatch(/^Wrote it down on issue-42 in session /)
    const [tree] = await listed(world, repo)
    expect(tree).toMatchObject({
      branch: 'issue-42',
      status: 'active',
      owned: true,
      work: { type: 'issue', id: '42' },
      conversations: ['test:acme/app#42'],
    })
    const path = tree?.path ?? ''
    expect(path.startsWith(join(world.home, 'worktrees'))).toBe(true)
    expect(readFileSync(join(path, 'notes.txt'), 'utf8')).toBe('Fix the login\n')

    // The pull request is of the branch that the agent pushed.
    world.box.raw(path, 'push', '-q', 'origin', 'issue-42')
    const review = await server.ask('acme/app#99', 'Rename the variable', {
      hints: {
        workflowType: 'pr',
        workflowId: '99',
        prBranch: 'issue-42',
        prSha: repo.sha('issue-42'),
        linkedIssues: [42],
      },
    })
    expect(textsOf(review)[0]?.split('\n\n')).toEqual([
      'Working in isolated branch `issue-42` of `project`',
      'Reusing worktree from issue #42',
      expect.stringMatching(/^Reviewing PR at commit `[0-9a-f]{7}` \(branch: `issue-42`\)$/),
    ])
    expect(readFileSync(join(path, 'notes.txt'), 'utf8')).toBe('Fix the login\nRename the variable\n')
    const [shared, ...more] = await listed(world, repo)
    expect(more).toEqual([])
    expect(shared?.conversations?.toSorted()).toEqual(['test:acme/app#42', 'test:acme/app#99'])

    expect(textsOf(await server.close('acme/app#42'))).toEqual([
      'Worktree `issue-42` was kept: test:acme/app#99 still uses it.',
    ])
    expect(existsSync(join(path, 'notes.txt'))).toBe(true)
    expect((await listed(world, repo))[0]?.conversations).toEqual(['test:acme/app#99'])

    const tip = repo.sha('issue-42')
    world.box.raw(path, 'push', '-q', 'origin', 'issue-42')
    const squashed = squashMerge(world, repo, 'issue-42')
    expect(textsOf(await server.close('acme/app#99'))).toEqual([
      `Worktree \`issue-42\` was removed (closed). Restore it with \`/worktree restore issue-42\`. Branch deleted: merged: squash of ${squashed} on origin/main.`,
    ])
    expect(existsSync(path)).toBe(false)
    expect(branches(repo)).toEqual(['main'])
    expect(worktrees(repo)).toBe(1)
    expect(await listed(world, repo)).toEqual([])
    const [point] = await world.json<Point[]>(repo.path, 'worktree', 'restore', '--list')
    expect(point?.environment).toMatchObject({ branch: 'issue-42', work: { type: 'issue', id: '42' } })
    // What is on the remote is nobody's to delete.
    expect(world.box.raw(repo.origin, 'rev-parse', 'issue-42')).toBe(tip)

    expect(textsOf(await server.ask('acme/app#99', '/worktree restore issue-42'))).toEqual([
      expect.stringMatching(/Restored.*`issue-42` for issue #42\nThis conversation now works there\.$/),
    ])
    const [back] = await listed(world, repo)
    expect(back).toMatchObject({ branch: 'issue-42', status: 'active', conversations: ['test:acme/app#99'] })
    expect(repo.sha('issue-42')).toBe(tip)
    for (const file of ['notes.txt', 'local.log']) {
      expect(readFileSync(join(back?.path ?? '', file), 'utf8')).toBe('Fix the login\nRename the variable\n')
    }
    expect(world.box.raw(back?.path ?? '', 'status', '--porcelain')).toBe('')
    expect(checkoutOf(repo)).toBe(checkout)
    expect((await server.stop()).code).toBe(0)
  })
})

onDatabase('sqlite', (database) => {
  test('a chat thread linked in by /worktree link shares the tree of issue 42 until the end', async () => {
    await using world = makeServerWorld({ env: { COPPICE_AGENT_COMMAND: agent, ...(await database()) } })
    const repo = await setUp(world)
    const checkout = checkoutOf(repo)
    const server = await world.serve()

    await server.ask('acme/app#42', 'Fix the login', { hints: { workflowType: 'issue', workflowId: '42' } })
    const [tree] = await listed(world, repo)
    const path = tree?.path ?? ''
    expect(textsOf(await server.ask('C123:1712.34', '/worktree link issue-42'))).toEqual([
      [
        'Linked this conversation to `issue-42` of `project`. It now works there.',
        'Shared by test:acme/app#42, test:C123:1712.34.',
      ].join('\n'),
    ])
    const spoken = await server.ask('C123:1712.34', 'Say why')
    expect(spoken.map(({ role }) => role)).toEqual(['agent'])
    expect(spoken[0]?.text).toMatch(/^Wrote it down on issue-42/)
    expect(readFileSync(join(path, 'notes.txt'), 'utf8')).toBe('Fix the login\nSay why\n')

    expect(textsOf(await server.close('acme/app#42'))).toEqual([
      'Worktree `issue-42` was kept: test:C123:1712.34 still uses it.',
    ])
    world.box.raw(path, 'push', '-q', 'origin', 'issue-42')
    const squashed = squashMerge(world, repo, 'issue-42')
    const [gone] = textsOf(await server.close('C123:1712.34'))
    expect(gone).toContain(`Branch deleted: merged: squash of ${squashed} on origin/main.`)
    expect(existsSync(path)).toBe(false)
    expect(branches(repo)).toEqual(['main'])

    const restored = await world.json<EnvironmentJson>(repo.path, 'worktree', 'restore', 'issue-42')
    expect(restored).toMatchObject({ branch: 'issue-42', status: 'active' })
    expect(readFileSync(join(restored.path, 'notes.txt'), 'utf8')).toBe('Fix the login\nSay why\n')
    expect(checkoutOf(repo)).toBe(checkout)
  })
})
