import { linkSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { makeSandbox, type TestRepo, writeIn } from '../../test/helpers/repo.ts'
import { toBranchName } from '../domain/names.ts'
import { checkoutDetached, checkOutHead, moveBranch } from './checkout.ts'

const box = makeSandbox()
afterAll(() => box[Symbol.dispose]())
const git = box.git()
const repo = box.repo()
repo.write('.gitignore', '*.log\nign/\nlink\n')
repo.git('add', '-A')
repo.commit('pkg/deep/f', 'f\n')
repo.write('F.log', 'f\n')
symlinkSync('pkg', join(repo.path, 'tracked-link'))
repo.git('add', '-f', 'F.log', 'tracked-link')
repo.git('update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},lib`)
repo.git('commit', '-q', '-m', 'start')
const start = repo.sha()

/** The next commit has a file there, whatever was in its place, and whether or not it is ignored. */
const adds =
  (path: string, ...removed: string[]) =>
  (at: TestRepo): void => {
    const [top = ''] = path.split('/')
    for (const one of [top, ...removed]) {
      at.git('rm', '-rq', '--cached', '--ignore-unmatch', one)
      rmSync(join(at.path, one), { recursive: true, force: true })
    }
    at.write(path, 'theirs\n')
    at.git('add', '-f', '--', path)
  }
const lays = (file: string) => (path: string) => writeIn(path, file, 'precious\n')
const nothing = (): void => undefined

let count = 0
/** Makes the change on top of the start, and moves a worktree there in which something appeared. */
const move = async (lay: (path: string) => void, change: (repo: TestRepo) => void) => {
  const name = `move-${(count += 1)}`
  repo.git('reset', '-q', '--hard', start)
  const tree = repo.worktree(name, '-b', name)
  change(repo)
  repo.git('commit', '-q', '-m', name)
  lay(tree.path)
  const to = repo.sha()
  const moved = moveBranch(git, tree, { branch: toBranchName(name), from: start, to }).then(
    () => 'moved',
    (error: Error) => error.message,
  )
  return { answer: await moved, tree, isMoved: repo.sha(name) === to }
}

test.each([
  ['an ignored file', lays('late.log'), 'late.log', adds('late.log')],
  ['an ignored file, for a directory', lays('late.log'), 'late.log', adds('late.log/inner')],
  ['a directory of ignored files, for a file', lays('ign/a'), 'ign/a', adds('ign')],
  ['an ignored file in a tracked directory, for a file', lays('pkg/a.log'), 'pkg/a.log', adds('pkg')],
  ['an ignored file deep in one', lays('pkg/deep/a.log'), 'pkg/deep/a.log', adds('pkg')],
  [
    'what an ignored link leads to',
    (path: string) => symlinkSync('pkg', join(path, 'link')),
    'link/deep/f',
    adds('link/deep/f'),
  ],
  ['a file in the place of a submodule, for a file', lays('lib/a'), 'lib/a', adds('lib')],
  ['a file in the place of a submodule, for a directory', lays('lib/a'), 'lib/a', adds('lib/a')],
  ['a file whose name differs from a tracked one in case', lays('f.log'), 'f.log', adds('f.log', 'F.log')],
])('%s that appears right before a branch moves is not replaced', async (_what, lay, kept, change) => {
  const { answer, tree, isMoved } = await move(lay, change)
  const content = readFileSync(join(tree.path, kept), 'utf8')
  expect({ answer, isMoved, content }).toEqual({
    answer: expect.stringContaining('appeared meanwhile and would be overwritten'),
    isMoved: false,
    content: kept.startsWith('link') ? 'f\n' : 'precious\n',
  })
  expect(box.raw(tree.path, 'status', '--short')).toBe('')
})

test.each([
  ['a submodule that was never fetched gives way to a directory', nothing, adds('lib/inner')],
  [
    'tracked files, directories and links, and what holds nothing, give way',
    (path: string) => {
      mkdirSync(join(path, 'pkg/empty'))
      writeIn(path, 'ign/a', 'precious\n')
      // As on a disk that ignores case.
      linkSync(join(path, 'F.log'), join(path, 'f.log'))
    },
    (at: TestRepo) => {
      for (const path of ['pkg', 'README/inner', 'tracked-link/inner', 'lib']) adds(path)(at)
      adds('f.log', 'F.log')(at)
      // Git leaves the directory as it is.
      at.git('update-index', '--add', '--cacheinfo', `160000,${'2'.repeat(40)},ign`)
    },
  ],
])('when a branch moves, %s', async (_what, lay, change) => {
  const { answer, tree, isMoved } = await move(lay, change)
  expect({ answer, isMoved }).toEqual({ answer: 'moved', isMoved: true })
  expect(box.raw(tree.path, 'status', '--short')).toBe('')
})

test('a checkout that could not write a file fails, also where git exits with 0', async () => {
  // As on a full disk: no file may be larger than 32 kB.
  writeFileSync(box.path('small'), '#!/bin/sh\ntrap "" XFSZ\nulimit -f 64\nexec git "$@"\n', { mode: 0o755 })
  const small = box.git({ program: box.path('small') })
  repo.git('reset', '-q', '--hard', start)
  const large = repo.commit('large', 'x'.repeat(100_000))
  const tree = repo.worktree('unwritable', '--detach', start)
  const failed = { code: 'git-failed', message: expect.stringContaining('unable to write file large') }
  await expect(checkoutDetached(small, tree, large)).rejects.toMatchObject(failed)
  const fresh = repo.worktree('fresh', '--detach', '--no-checkout', large)
  await expect(checkOutHead(small, fresh)).rejects.toMatchObject(failed)
})
