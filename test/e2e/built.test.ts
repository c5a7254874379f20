import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
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

test('a list reads a handful of files, without what only other commands need', () => {
  const read = new Map<string, string>()
  const follow = (file: string): void => {
    if (read.has(file)) return
    const text = readFileSync(file, 'utf8')
    read.set(file, text)
    const paths = text.matchAll(/(?:\b(?:from|import)\s?|new URL\()"(\.[^"]+)"/g)
    for (const [, path = ''] of paths) follow(resolve(dirname(file), path))
  }
  follow(join(directory, 'dist/main.js'))
  const files = [...read.keys()].filter((file) => file.endsWith('.js'))
  expect(files.length).toBeGreaterThan(1)
  expect(files.length).toBeLessThanOrEqual(5)
  const all = [...read.values()].join('\n')
  expect(all).toContain('for-each-ref')
  // Each 100 kB more takes about 2 ms of every command. Before raising this, look for what `worktree list` never runs.
  expect(Buffer.byteLength(all)).toBeLessThan(700_000)
  const sources = files.flatMap((file) => {
    const map = `${file}.map`
    return existsSync(map) ? (JSON.parse(readFileSync(map, 'utf8')) as { sources: string[] }).sources : []
  })
  expect(sources.join('\n')).toContain('src/isolation/facts.ts')
  const packages = new Set(sources.flatMap((source) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1] ?? []))
  expect([...packages]).toEqual(['kysely'])
  // The server's token is a secret to redact.
  const elsewhere = /src\/(?:agents|cleanup|conversations|fleet|platforms|runs|server(?!\/token-file))\//
  expect(sources.filter((source) => elsewhere.test(source))).toEqual([])
})

test('functions that a command compiled are there for the next one, unless the file was not written to its end', () => {
  using box = makeSandbox()
  const repo = box.repo('project')
  const { NODE_COMPILE_CACHE: _, ...variables } = box.env
  const home = box.path('user')
  const coppice = (...args: string[]): string =>
    execFileSync(process.execPath, [join(directory, 'bin/coppice.js'), ...args], {
      cwd: repo.path,
      env: { ...variables, HOME: home, COPPICE_HOME: box.path('state'), SPARES: '0' },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  const cached = (): string[] =>
    readdirSync(join(home, '.cache/coppice'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.includes('.code'))
      .map((name) => join(home, '.cache/coppice', name))
  coppice('--version')
  expect(cached()).toEqual([])
  coppice('worktree', 'list')
  const [file = '', ...others] = cached()
  expect(others).toEqual([])
  const whole = readFileSync(file)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  coppice('worktree', 'list')
  expect(readFileSync(file).equals(whole)).toBe(true)
  writeFileSync(file, whole.subarray(0, -1000))
  expect(coppice('worktree', 'list')).toContain('no worktrees yet')
  expect(readFileSync(file).length).toBeGreaterThan(whole.length / 2)
  expect(readFileSync(file).subarray(-8).toString()).toBe('complete')
  // An update: the cache of its predecessor goes when its own is written.
  const predecessor = join(dirname(file), 'chunk-OLD.script.js.code')
  writeFileSync(
    predecessor,
    Buffer.concat([whole.subarray(0, 100), Buffer.from('\0/gone/chunk-OLD.script.js\0complete')]),
  )
  coppice('worktree', 'list')
  expect(cached()).toContain(predecessor)
  rmSync(file)
  coppice('worktree', 'list')
  expect(cached()).toEqual([file])
})
