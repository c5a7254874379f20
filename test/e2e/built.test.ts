import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeSandbox } from '../helpers/repo.ts'

/* The published package: what `npm run build` makes, started by `bin/coppice.js`. */

const root = resolve(import.meta.dirname, '../..')
let directory: string

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'coppice-published-'))
  mkdirSync(join(directory, 'bin'))
  for (const file of ['package.json', 'bin/coppice.js']) copyFileSync(join(root, file), join(directory, file))
  execFileSync(process.execPath, [join(root, 'scripts/build.ts'), join(directory, 'dist')])
})

afterAll(() => rmSync(directory, { recursive: true, force: true }))

test('it makes, lists, removes and restores an environment', () => {
  using box = makeSandbox()
  const repo = box.repo('project')
  const home = box.path('state')
  const coppice = (...args: string[]): string =>
    execFileSync(process.execPath, [join(directory, 'bin/coppice.js'), ...args], {
      cwd: repo.path,
      env: { ...box.env, COPPICE_HOME: home, SPARES: '0' },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  const branches = (): string[] =>
    (JSON.parse(coppice('worktree', 'list', '--json')) as { branch: string }[]).map(({ branch }) => branch)
  expect(coppice('--help')).toContain('worktree create')
  coppice('worktree', 'create', '--issue', '42')
  coppice('worktree', 'create', '--task', 'Add dark mode')
  expect(branches().toSorted()).toEqual(['issue-42', 'task-add-dark-mode'])
  coppice('worktree', 'remove', 'issue-42')
  expect(branches()).toEqual(['task-add-dark-mode'])
  coppice('worktree', 'restore', 'issue-42')
  expect(branches().toSorted()).toEqual(['issue-42', 'task-add-dark-mode'])
})

test('a list reads a handful of files, without yaml and pg', () => {
  const read = new Map<string, string>()
  const follow = (file: string): void => {
    if (read.has(file)) return
    const text = readFileSync(file, 'utf8')
    read.set(file, text)
    for (const [, path = ''] of text.matchAll(/\b(?:from|import)\s?"(\.[^"]+)"/g)) follow(resolve(dirname(file), path))
  }
  follow(join(directory, 'dist/main.js'))
  expect(read.size).toBeGreaterThan(1)
  expect(read.size).toBeLessThanOrEqual(6)
  const all = [...read.values()].join('\n')
  expect(all).toContain('for-each-ref')
  expect(all).not.toMatch(/YAMLParseError|SASL/)
})
