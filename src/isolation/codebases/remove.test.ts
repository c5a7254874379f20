import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type TestRepo, writeIn } from '../../../test/helpers/repo.ts'
import { makeWorld, type World } from '../../../test/helpers/world.ts'
import { removeCodebase } from './remove.ts'
import { addCodebase } from './codebases.ts'

type Scene = {
  readonly world: World
  readonly origin: TestRepo
  /** Plain git in our bare clone. */
  readonly clone: (...args: string[]) => string
  /** A commit on top of main that only the clone has. */
  readonly commit: (message?: string) => string
}

const commit1 = '1 commit that the remote does not have'

/** What the remote and the clone went through, and why the clone must stay; nothing: it goes. */
const stories: [string, (scene: Scene) => void, (string | RegExp)[]][] = [
  ['nothing of its own', () => undefined, []],
  [
    'a branch that the remote has deleted since it was pushed',
    ({ origin, clone, commit }) => {
      clone('update-ref', 'refs/heads/b1', commit())
      clone('push', '-q', 'origin', 'b1')
      clone('fetch', '-q', 'origin')
      origin.git('branch', '-D', 'b1')
    },
    [commit1],
  ],
  [
    'a tracking ref that is the last to hold a commit',
    ({ clone, commit }) => {
      clone('update-ref', 'refs/remotes/origin/gone', commit())
    },
    [commit1],
  ],
  [
    'a branch that was rewritten on the remote',
    ({ origin, clone, commit }) => {
      clone('update-ref', 'refs/heads/b1', commit())
      clone('push', '-q', 'origin', 'b1')
      origin.git('branch', '-f', 'b1', 'main')
    },
    [commit1],
  ],
  [
    'a branch of that name on the remote with another commit',
    ({ origin, clone, commit }) => {
      clone('update-ref', 'refs/heads/b1', commit())
      origin.git('branch', 'b1')
    },
    [commit1],
  ],
  [
    'the head of a pull request that is gone',
    ({ clone, commit }) => {
      clone('update-ref', 'refs/coppice/pr/5', commit())
    },
    [commit1],
  ],
  [
    'a tag of its own on a commit of its own',
    ({ clone, commit }) => {
      clone('tag', 'v9', commit())
    },
    [commit1, '1 tag that the remote does not have'],
  ],
  [
    'a detached HEAD',
    ({ clone, commit }) => {
      clone('update-ref', '--no-deref', 'HEAD', commit())
    },
    [commit1],
  ],
  [
    'a worktree on a detached HEAD',
    ({ world, clone, commit }) => {
      clone('worktree', 'add', '-q', '--detach', world.box.path('detached'), commit())
    },
    [commit1, /^a worktree at .*detached$/],
  ],
  [
    'a restore point',
    ({ clone }) => {
      clone('update-ref', 'refs/coppice/restore/1', 'refs/heads/kept')
    },
    ['1 restore point'],
  ],
  ...(
    [
      ['lfs/objects/ab/cd/abcd'],
      ['annex/objects/x'],
      ['NOTES.txt'],
      ['hooks/post-commit'],
      ['info/attributes'],
      ['lfs'],
      ['a', 'b', 'c', 'd', 'e'],
    ] as const
  ).map((files): (typeof stories)[number] => [
    `files of its own (${files.join(' ')})`,
    ({ clone }) => {
      for (const file of files) writeIn(clone('rev-parse', '--absolute-git-dir'), file, 'only here')
    },
    [`files that only it has: ${files[0] === 'a' ? 'a, b, c and 2 more' : files[0].replace(/^annex.*/, 'annex')}`],
  ]),
  [
    'what git and git-lfs leave behind',
    ({ clone }) => {
      for (const file of ['gc.log', 'packed-refs.lock', 'hooks/x.sample', 'info/refs', 'lfs/tmp/x', 'FETCH_HEAD'])
        writeIn(clone('rev-parse', '--absolute-git-dir'), file, '')
    },
    [],
  ],
  [
    'a remote that is another repository now',
    ({ world, origin }) => {
      rmSync(origin.path, { recursive: true })
      world.box.repo('origin').git('commit', '-q', '--amend', '--allow-empty', '-m', 'another history')
    },
    [commit1],
  ],
  [
    'a remote without any branch',
    ({ world, origin }) => {
      rmSync(origin.path, { recursive: true })
      world.box.raw(world.box.root, 'init', '-q', origin.path)
    },
    [commit1],
  ],
  [
    'a remote that cannot be reached',
    ({ origin }) => rmSync(origin.path, { recursive: true }),
    [/^couldn't find out what only it has: couldn't reach origin: /],
  ],
  [
    'no remote at all',
    ({ clone }) => {
      clone('remote', 'remove', 'origin')
      clone('update-ref', 'refs/remotes/origin/main', 'refs/heads/kept')
    },
    [/^couldn't find out what only it has: /],
  ],
  [
    'a branch that was merged on the remote by a commit that was never fetched',
    ({ origin, clone, commit }) => {
      clone('update-ref', 'refs/heads/b1', commit())
      clone('push', '-q', 'origin', 'b1')
      origin.git('merge', '-q', '--no-ff', '-m', 'merge', 'b1')
      origin.git('branch', '-D', 'b1')
    },
    [],
  ],
  [
    'a commit that the remote has under another name only',
    ({ origin, clone, commit }) => {
      clone('update-ref', 'refs/heads/b1', commit())
      clone('push', '-q', 'origin', 'b1:refs/pull/5/head')
      expect(origin.git('branch')).not.toContain('b1')
    },
    [],
  ],
]

const matching = (reason: string | RegExp): unknown =>
  reason instanceof RegExp ? expect.stringMatching(reason) : reason

test.for(stories)('a clone with %s', async ([, happen, reasons]) => {
  await using world = await makeWorld()
  const origin = world.box.repo('origin')
  const { codebase } = await addCodebase(world.context, `file://${origin.path}`, '/')
  const clone = (...args: string[]): string => world.box.raw(codebase.repoPath, ...args)
  clone('update-ref', 'refs/heads/kept', 'refs/remotes/origin/main')
  const commit = (message = 'only here'): string =>
    clone('commit-tree', '-p', 'refs/remotes/origin/main', '-m', message, 'refs/remotes/origin/main^{tree}')
  happen({ world, origin, clone, commit })
  const { cloneKept, cloneDeleted } = await removeCodebase(world.context, codebase)
  expect(cloneKept).toEqual(reasons.map(matching))
  expect([cloneDeleted, existsSync(codebase.repoPath)]).toEqual(reasons.length === 0 ? [true, false] : [false, true])
})

test.each([
  { what: 'a repository of the user among the clones', place: 'repos/mine.git', cloned: false },
  { what: 'a clone that the user moved elsewhere', place: '../mine.git', cloned: true },
])('$what is not deleted', async ({ place, cloned }) => {
  await using world = await makeWorld()
  const origin = world.box.repo('origin')
  const { codebase } = await addCodebase(world.context, `file://${origin.path}`, '/')
  const repoPath = join(world.context.home, place)
  renameSync(codebase.repoPath, repoPath)
  await removeCodebase(world.context, { ...codebase, repoPath, cloned })
  expect(existsSync(join(repoPath, 'HEAD'))).toBe(true)
})
