import { posix } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileGlob, globStart, globStep, isGlobMatch, mayMatchBelow } from './glob.ts'

const stateAfter = (pattern: string, path: string) => {
  const glob = compileGlob(pattern)
  return { glob, state: path.split('/').reduce((state, name) => globStep(glob, state, name), globStart(glob)) }
}

const matches = (pattern: string, path: string): boolean => {
  const { glob, state } = stateAfter(pattern, path)
  return isGlobMatch(glob, state)
}

describe('a glob', () => {
  test.each([
    ['.env', ['.env'], ['env', '.env.local', 'a/.env']],
    ['*.log', ['a.log'], ['.log', 'a.log.1', 'b/a.log']],
    ['.*', ['.env', '.a'], ['env']],
    ['config/*.json', ['config/a.json'], ['config/.a.json', 'config/b/a.json', 'config']],
    ['packages/**/.env', ['packages/.env', 'packages/a/b/.env'], ['packages/.a/.env', '.env', 'packages']],
    ['a/**', ['a/b', 'a/b/c'], ['a', 'a/.b', 'a/b/.c']],
    ['**', ['a', 'a/b'], ['.a', 'a/.b']],
    ['**/*.pem', ['x.pem', 'a/b/x.pem'], ['.x.pem', '.a/x.pem']],
    ['a?c', ['abc', 'aäc', 'a🌲c'], ['ac', 'abbc']],
    ['[a-c]x', ['ax', 'cx'], ['dx', 'x']],
    ['[!a-c]x', ['dx'], ['ax', '.x']],
    ['[]x]', [']', 'x'], ['a']],
    ['a[b', ['a[b'], ['ab']],
    ['a**b', ['ab', 'axxb'], ['a/b']],
  ])('%s', (pattern, yes, no) => {
    expect(yes.filter((path) => !matches(pattern, path))).toEqual([])
    expect(no.filter((path) => matches(pattern, path))).toEqual([])
  })

  test('says whether anything below a directory can match', () => {
    const below = (pattern: string, directory: string): boolean => {
      const { glob, state } = stateAfter(pattern, directory)
      return mayMatchBelow(glob, state)
    }
    expect(below('.env', 'node_modules')).toBe(false)
    expect(below('packages/*/.env', 'packages/a')).toBe(true)
    expect(below('packages/*/.env', 'packages/a/b')).toBe(false)
    expect(below('**/x', 'a/b/c')).toBe(true)
  })

  test('means what it meant to Node, for whatever is short enough to ask Node', () => {
    const name = fc.string({ unit: fc.constantFrom('a', 'b', '.', '-', 'ä'), minLength: 1, maxLength: 4 })
    const path = fc
      .array(name, { minLength: 1, maxLength: 4 })
      .filter((names) => !names.some((one) => /^\.+$/.test(one)))
      .map((names) => names.join('/'))
    const part = fc.oneof(
      fc.constant('**'),
      fc
        .array(fc.constantFrom('a', 'b', '.', '-', '*', '?', '[ab]', '[!a]', '[a-b]'), { minLength: 1, maxLength: 4 })
        .map((parts) => parts.join('')),
    )
    const pattern = fc
      .array(part, { minLength: 1, maxLength: 4 })
      .filter((parts) => !parts.some((one) => /^\.+$/.test(one)))
      .map((parts) => parts.join('/'))
    expect(matches('**/a/**/.a', 'a/.a')).toBe(true)
    fc.assert(
      fc.property(pattern, path, (glob, file) => {
        // Node says that `**/a/**/.a` does not match `a/.a`, although `a/**/.a` does.
        fc.pre(glob.split('/').filter((one) => one === '**').length < 2 || !/(?:^|\/)\./.test(file))
        expect(`${glob} ${file} ${matches(glob, file)}`).toBe(`${glob} ${file} ${posix.matchesGlob(file, glob)}`)
      }),
      { numRuns: 20_000 },
    )
  })

  test('that would take a regular expression years is answered', () => {
    const name = 'a'.repeat(250)
    expect(matches(`${'*a'.repeat(90)}*b`, name)).toBe(false)
    expect(matches(`${'**/'.repeat(60)}b`, Array.from({ length: 1000 }, () => 'a').join('/'))).toBe(false)
    expect(matches(`${'**/*a*/'.repeat(25)}b`, Array.from({ length: 1000 }, () => 'aaaaaaaa').join('/'))).toBe(false)
    expect(matches(`${'?*'.repeat(90)}b`, name)).toBe(false)
  })
})
