import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeSandbox, markerProgram, type Sandbox, type TestRepo, writeIn } from '../../test/helpers/repo.ts'
import { toSha } from '../domain/names.ts'
import { changesBetween, changesOfPairs, type Pair } from './changes.ts'
import { diffStat, forkPoint } from './diff-stat.ts'
import type { Tree } from './door.ts'
import { listFolder } from './list-folder.ts'

let box: Sandbox
let repo: TestRepo
let tree: Tree

beforeEach(() => {
  box = makeSandbox()
  repo = box.repo()
  tree = repo.worktree('tree', '-b', 'work')
})
afterEach(() => box[Symbol.dispose]())

test('counts what is committed, staged and only in the files, one row each', async () => {
  const from = repo.sha()
  writeIn(tree.path, 'committed', 'a\nb\n')
  box.raw(tree.path, 'add', '.')
  box.raw(tree.path, 'commit', '-qm', 'work')
  writeIn(tree.path, 'staged', 'a\n')
  box.raw(tree.path, 'add', '.')
  writeIn(tree.path, 'README', 'other\nlines\n')
  writeIn(tree.path, 'odd\tname\nhere', Buffer.from([0, 1]))
  box.raw(tree.path, 'add', '-N', '.')
  expect(await diffStat(box.git(), tree, from)).toEqual([
    { path: 'README', added: 2, removed: 1 },
    { path: 'committed', added: 2, removed: 0 },
    { path: 'odd\tname\nhere', added: undefined, removed: undefined },
    { path: 'staged', added: 1, removed: 0 },
  ])
})

test('a rename is two rows, whatever the configuration says', async () => {
  box.raw(tree.path, 'config', 'diff.renames', 'copies')
  box.raw(tree.path, 'mv', 'README', 'READ')
  const paths = (await diffStat(box.git(), tree, repo.sha())).map(({ path }) => path)
  expect(paths).toEqual(['READ', 'README'])
})

test("runs none of the repository's own programs", async () => {
  const marker = box.path('ran')
  const program = markerProgram(box.path('program'), marker)
  for (const key of ['diff.external', 'diff.x.textconv', 'diff.x.command', 'filter.x.clean', 'core.fsmonitor']) {
    box.raw(tree.path, 'config', key, program)
  }
  writeIn(tree.path, '.gitattributes', '* diff=x filter=x\n')
  writeFileSync(join(tree.path, 'README'), 'changed\n')
  const stats = await diffStat(box.git(), tree, repo.sha())
  expect(stats).toEqual([{ path: 'README', added: 1, removed: 1 }])
  expect(existsSync(marker)).toBe(false)
})

test('where a worktree left base, and that it may have nothing in common with it', async () => {
  const start = repo.sha()
  const base = repo.commit('later', 'x')
  writeIn(tree.path, 'own', 'x')
  box.raw(tree.path, 'add', '.')
  box.raw(tree.path, 'commit', '-qm', 'own')
  expect(await forkPoint(box.git(), tree, base)).toBe(start)
  repo.git('switch', '-q', '--orphan', 'alone')
  const alone = repo.commit('alone', 'x')
  expect(await forkPoint(box.git(), tree, alone)).toBeUndefined()
})

test('a folder of a commit is listed, not what is below it, and one that is not there is empty', async () => {
  const first = repo.sha()
  repo.commit('folder/a.md', 'abc')
  const commit = repo.commit('folder/deep/b.md', 'x')
  expect(await listFolder(box.git(), repo, commit, 'folder')).toEqual([
    { name: 'a.md', mode: '100644', sha: expect.any(String), size: 3 },
    { name: 'deep', mode: '040000', sha: expect.any(String), size: undefined },
  ])
  expect(await listFolder(box.git(), repo, first, 'folder')).toEqual([])
})

test('many pairs are compared in one process, also those without changes; one that git skips fails them all', async () => {
  const first = repo.sha()
  const second = repo.commit('a/:odd name', 'x')
  const third = repo.commit('later', 'x')
  const git = box.git({ now: () => 0 })
  await git.config(repo)
  const ask = (pairs: readonly Pair[], maxBytes = 10_000) => changesOfPairs(git, repo, pairs, { maxBytes })
  const pairs = [
    { from: first, to: third },
    { from: third, to: third },
    { from: third, to: second },
  ]
  const before = git.spawned()
  const found = await ask(pairs)
  expect(git.spawned() - before).toBe(1)
  expect(found?.map((changes) => changes.map(({ path }) => path))).toEqual([['a/:odd name', 'later'], [], ['later']])
  expect(found?.[0]).toEqual(await changesBetween(git, repo, first, third, { maxBytes: 10_000 }))
  expect(await ask(pairs, 50)).toBeUndefined()
  await expect(ask([...pairs, { from: first, to: toSha('1'.repeat(40)) }])).rejects.toThrow('left out')
})
