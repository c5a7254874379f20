import { spawnSync } from 'node:child_process'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { branchNameProblem, isSha, toBranchName, toCodebaseName, toRepoPath, toSha } from './names.ts'

describe('a branch name', () => {
  test.each([
    'main',
    'issue-42',
    'feature/x',
    'a.b',
    'a@b',
    'a-',
    'ümlaut',
    '日本',
    'x'.repeat(200),
    'head',
    'a/@',
    'refs',
  ])('may be %j', (name) => {
    expect(toBranchName(name)).toBe(name)
  })

  test.each([
    ['', 'empty'],
    ['x'.repeat(201), 'longer than 200'],
    ['日'.repeat(80), 'longer than 200 bytes'],
    ['-b', 'option'],
    ['--force', 'option'],
    ['@', 'reserved by git'],
    ['HEAD', 'reserved by git'],
    ['a b', 'space'],
    ['a\tb', 'control'],
    ['a\nb', 'control'],
    ['a\0b', 'control'],
    ['a\u007fb', 'control'],
    ['a~b', '~'],
    ['a^b', '^'],
    ['a:b', ':'],
    ['a?b', '?'],
    ['a*b', '*'],
    ['a[b', '['],
    ['a\\b', '\\'],
    ['a..b', '".."'],
    ['a/../b', '".."'],
    ['a@{b', '"@{"'],
    ['/a', 'empty part'],
    ['a/', 'empty part'],
    ['a//b', 'empty part'],
    ['a.', 'ends with "."'],
    ['.a', 'starts with "."'],
    ['a/.b', 'starts with "."'],
    ['a.lock', '".lock"'],
    ['a.lock/b', '".lock"'],
    ['refs/heads/x', 'refs/'],
    ['a\ud800b', 'unpaired surrogate'],
  ])('cannot be %j, and the message says why', (name, why) => {
    expect(branchNameProblem(name)).toContain(why)
    expect(() => toBranchName(name)).toThrow(expect.objectContaining({ code: 'name-invalid' }))
  })

  // We may be stricter than git, never laxer: what we let through, git takes, and takes literally.
  test('that we accept is accepted by git, and means itself', () => {
    const letter = fc.constantFrom(...'abAB01-_./@{}~^:?*[]\\ \t\u007f+,;=!#$%&()|<>\'"`é日🌳'.split(/(?:)/u))
    const word = fc.constantFrom('.lock', '..', '@{', '//', 'HEAD', 'refs/', 'refs/heads/', '@', '-', '@{-1}', '.', '/')
    const name = fc.oneof(
      fc.array(fc.oneof({ weight: 3, arbitrary: letter }, word), { maxLength: 8 }).map((parts) => parts.join('')),
      fc.string({ unit: 'binary', maxLength: 12 }),
    )
    const names = [...new Set(fc.sample(name, { numRuns: 1500, seed: 42 }))].filter((n) => !n.includes('\0'))
    const accepted = names.filter((n) => branchNameProblem(n) === undefined)
    expect(accepted.length).toBeGreaterThan(150)
    for (const n of accepted) {
      const git = spawnSync('git', ['check-ref-format', '--branch', n], { encoding: 'utf8' })
      expect({ name: n, status: git.status, means: git.stdout }).toEqual({ name: n, status: 0, means: `${n}\n` })
    }
  })

  test('that we refuse without git refusing it is refused for a reason of ours', () => {
    const ours = ['refs/heads/x', 'x'.repeat(201), '日'.repeat(80)]
    for (const name of ours) {
      expect(spawnSync('git', ['check-ref-format', '--branch', name]).status).toBe(0)
      expect(branchNameProblem(name)).toBeDefined()
    }
  })
})

describe('a full commit id', () => {
  test('has 40 or 64 lower-case hex digits', () => {
    for (const good of ['a'.repeat(40), '0123456789abcdef'.repeat(4)]) expect(toSha(good)).toBe(good)
    for (const bad of ['', 'abc1234', 'A'.repeat(40), 'g'.repeat(40), 'a'.repeat(41), `${'a'.repeat(40)}\n`, 'HEAD']) {
      expect(isSha(bad)).toBe(false)
      expect(() => toSha(bad)).toThrow(expect.objectContaining({ code: 'name-invalid' }))
    }
  })
})

describe('a repository path', () => {
  test('is absolute and free of NUL', () => {
    expect(toRepoPath('/srv/x.git')).toBe('/srv/x.git')
    for (const bad of ['', 'x', './x', '~/x', '/a\0b']) expect(() => toRepoPath(bad)).toThrow('not an absolute path')
  })
})

describe('a codebase name', () => {
  test.each(['a', 'my-project', 'x.y_z', '3d', 'A'.repeat(100)])('may be %j', (name) => {
    expect(toCodebaseName(name)).toBe(name)
  })

  test.each(['', '.', '..', '.hidden', '-x', '_x', 'a/b', 'a\\b', 'a b', 'a.lock', 'a.', 'a\n', 'é', 'A'.repeat(101)])(
    'cannot be %j, since it becomes a directory',
    (name) => {
      expect(() => toCodebaseName(name)).toThrow(expect.objectContaining({ code: 'name-invalid' }))
    },
  )
})
