import { existsSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeSandbox, type Sandbox, type TestRepo } from '../../test/helpers/repo.ts'
import type { Git } from './door.ts'
import { setWorktreeConfig } from './worktree-config.ts'

let box: Sandbox
beforeEach(() => {
  box = makeSandbox()
})
afterEach(() => box[Symbol.dispose]())

const name = [['user.name', 'rust']] as const

test('a value is set for one worktree, and for no other', async () => {
  const repo = box.repo()
  const [one, two] = [repo.worktree('one', '-b', 'one'), repo.worktree('two', '-b', 'two')]
  await setWorktreeConfig(box.git(), one, name)
  expect(box.raw(one.path, 'config', 'user.name')).toBe('rust')
  for (const path of [two.path, repo.path]) {
    expect(box.raw(path, 'config', 'user.name')).toBe('Ada')
    expect(box.raw(path, 'status', '--porcelain')).toBe('')
  }
  // Once more, and for another one.
  await setWorktreeConfig(box.git(), two, [['user.name', 'go']])
  expect([one, two].map(({ path }) => box.raw(path, 'config', 'user.name'))).toEqual(['rust', 'go'])
})

test('nothing is written through a link that somebody has put in the place of the file', async () => {
  const repo = box.repo()
  const tree = repo.worktree('one', '-b', 'one')
  const config = join(repo.commonDir, 'config')
  symlinkSync(config, join(tree.gitDir, 'config.worktree'))
  await expect(setWorktreeConfig(box.git(), tree, name)).rejects.toThrow('is a symbolic link')
  expect(readFileSync(config, 'utf8')).not.toContain('rust')
  // But people may keep their own configuration elsewhere.
  rmSync(join(tree.gitDir, 'config.worktree'))
  repo.git('config', '--unset', 'extensions.worktreeConfig')
  renameSync(config, box.path('kept'))
  symlinkSync(box.path('kept'), config)
  await setWorktreeConfig(box.git(), tree, name)
  expect(box.raw(tree.path, 'config', 'user.name')).toBe('rust')
  expect(box.raw(repo.path, 'config', 'user.name')).toBe('Ada')
})

test('a bare repository stays bare, and its worktrees stay worktrees, also if only half of it was done', async () => {
  const bare = box.bare()
  box.repo().git('push', '-q', bare.path, 'main')
  const [one, two] = [bare.worktree('one', '-b', 'one', 'main'), bare.worktree('two', '-b', 'two', 'main')]
  const hold = (): void => {
    expect(box.raw(bare.path, 'rev-parse', '--is-bare-repository')).toBe('true')
    for (const { path } of [one, two]) {
      expect(box.raw(path, 'status', '--porcelain', '--branch')).toMatch(/^## (?:one|two)$/)
    }
  }
  const git = box.git()
  const steps = { left: 0 }
  const stopping: Git = {
    ...git,
    run: async (request) => {
      if ((steps.left -= 1) < 0) throw new Error('killed')
      return git.run(request)
    },
  }
  for (const done of [0, 1, 2]) {
    steps.left = done
    await expect(setWorktreeConfig(stopping, one, name)).rejects.toThrow('killed')
    hold()
  }
  await setWorktreeConfig(git, one, name)
  hold()
  expect([one, two].map(({ path }) => box.raw(path, 'config', 'user.name'))).toEqual(['rust', 'Ada'])
})

test.each([
  ['core.worktree', ({ path }: TestRepo) => path],
  ['core.bare', () => 'true'],
])('a repository whose %s would count for every worktree is left alone', async (key, value) => {
  const repo = box.repo()
  const tree = repo.worktree('one', '-b', 'one')
  repo.git('config', key, value(repo))
  const before = readFileSync(join(repo.commonDir, 'config'), 'utf8')
  await expect(setWorktreeConfig(box.git(), tree, name)).rejects.toMatchObject({ code: 'unsupported' })
  expect(readFileSync(join(repo.commonDir, 'config'), 'utf8')).toBe(before)
  expect(existsSync(join(tree.gitDir, 'config.worktree'))).toBe(false)
})
