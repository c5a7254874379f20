import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeSandbox, markerProgram, type Sandbox, type TestRepo, writeIn } from '../../test/helpers/repo.ts'
import { commitFile, type FileCommit, readTrailers, settleIndexEntry } from './commit-file.ts'
import type { Tree } from './door.ts'

let box: Sandbox
let repo: TestRepo
let tree: Tree
beforeEach(() => {
  box = makeSandbox()
  repo = box.repo()
  tree = repo.worktree('environment', '-b', 'work')
})
afterEach(() => box[Symbol.dispose]())

const raw = (...args: string[]): string => box.raw(tree.path, ...args)

const note: FileCommit = {
  path: 'notes.md',
  next: (before) => Buffer.from(`${before?.toString() ?? ''}line\n`),
  message: 'note: a line\n\nWord: one\n',
  by: { name: 'Demo', email: 'demo@example.org', at: 1_700_000_000_000 },
}

test('a commit changes the one file, under the given name, and leaves what others have staged or edited', async () => {
  writeIn(tree.path, 'staged', 'staged\n')
  raw('add', 'staged')
  writeIn(tree.path, 'README', 'edited\n')
  const before = repo.sha('work')
  const made = await commitFile(box.git(), tree, note)
  expect(made).toEqual({ commit: repo.sha('work'), branch: 'work', made: true })
  expect(await settleIndexEntry(box.git(), tree, made.commit, 'notes.md')).toBe(true)
  expect(raw('show', '--format=%P|%an <%ae>|%cn|%s', '--name-status', 'work')).toBe(
    `${before}|Demo <demo@example.org>|Demo|note: a line\n\nA\tnotes.md`,
  )
  writeIn(tree.path, 'notes.md', 'line\n')
  expect(raw('status', '--porcelain').split('\n')).toEqual([' M README', 'A  staged'])
  expect(raw('config', '--list', '--local')).not.toContain('user.')
})

test('a second one goes on from the first', async () => {
  await commitFile(box.git(), tree, note)
  const { commit } = await commitFile(box.git(), tree, note)
  expect(raw('show', `${commit}:notes.md`)).toBe('line\nline')
  expect(raw('rev-list', '--count', 'work')).toBe('3')
})

test('no hook, filter or signing program of the repository runs', async () => {
  const marker = box.path('ran')
  for (const hook of ['pre-commit', 'post-commit', 'commit-msg', 'reference-transaction', 'post-index-change']) {
    markerProgram(join(repo.commonDir, 'hooks', hook), marker, 'true')
  }
  const program = markerProgram(box.path('program.sh'), marker)
  for (const key of ['filter.f.clean', 'gpg.program', 'core.fsmonitor']) repo.git('config', key, program)
  repo.git('config', 'commit.gpgSign', 'true')
  writeIn(tree.path, '.gitattributes', '* filter=f\n')
  const { commit } = await commitFile(box.git(), tree, note)
  await settleIndexEntry(box.git(), tree, commit, 'notes.md')
  expect(existsSync(marker)).toBe(false)
})

test('a branch that moved meanwhile is looked at again, and not overwritten', async () => {
  const moved: string[] = []
  const made = await commitFile(box.git(), tree, {
    ...note,
    next: (before) => {
      if (moved.length === 0) moved.push(raw('commit', '-q', '--allow-empty', '-m', 'somebody else'))
      return note.next(before)
    },
  })
  expect(made.made).toBe(true)
  expect(raw('log', '--format=%s', 'work').split('\n')).toEqual(['note: a line', 'somebody else', 'first'])
})

test('a branch that never rests is given up on, with what others did there', async () => {
  const run = commitFile(box.git(), tree, {
    ...note,
    next: (before) => {
      raw('commit', '-q', '--allow-empty', '-m', 'somebody else')
      return note.next(before)
    },
  })
  await expect(run).rejects.toMatchObject({ code: 'busy' })
  expect(raw('log', '--format=%s', 'work')).not.toContain('note')
})

test('what is there already is not made again, also when it came while we were at it', async () => {
  const git = box.git()
  const unless = async (head: Parameters<NonNullable<FileCommit['unless']>>[0]) =>
    (await readTrailers(git, tree, { head, word: 'Word', limit: 10 })).find(({ values }) => values.includes('one'))
      ?.commit
  const both = await Promise.all([
    commitFile(git, tree, { ...note, unless }),
    commitFile(git, tree, { ...note, unless }),
  ])
  expect(both.filter(({ made }) => made)).toHaveLength(1)
  expect(both[0]?.commit).toBe(both[1]?.commit)
  expect(raw('rev-list', '--count', 'work')).toBe('2')
})

test('without a branch nothing is committed', async () => {
  raw('checkout', '-q', '--detach')
  await expect(commitFile(box.git(), tree, note)).rejects.toMatchObject({ code: 'unsupported' })
  expect(repo.sha('work')).toBe(repo.sha('main'))
})

test('a version of the file that somebody staged stays in the index', async () => {
  const { commit } = await commitFile(box.git(), tree, note)
  writeIn(tree.path, 'notes.md', 'mine\n')
  raw('add', 'notes.md')
  expect(await settleIndexEntry(box.git(), tree, commit, 'notes.md')).toBe(false)
  expect(raw('show', ':notes.md')).toBe('mine')
})

test('trailers are those of the last paragraph, newest commit first', async () => {
  raw('commit', '-q', '--allow-empty', '-m', 'a\n\nWord: in the body\n\nWord: real\nWord: second\nOther: x')
  raw('commit', '-q', '--allow-empty', '-m', 'Word: subject')
  const found = await readTrailers(box.git(), tree, { head: repo.sha('work'), word: 'Word', limit: 2 })
  expect(found.map(({ values }) => values)).toEqual([[], ['real', 'second']])
})
