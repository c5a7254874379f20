import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { deleteTree } from '../process/files/delete-tree.ts'
import { readCache, removeOldCaches, withScript } from './old-code-caches.ts'

let root = ''
beforeEach(() => {
  root = fs.mkdtempSync(join(tmpdir(), 'code-caches-'))
})
afterEach(() => deleteTree(root))

const DAY_MS = 24 * 60 * 60 * 1000
const now = Date.UTC(2026, 0, 1)

/** Written so many days ago. Returns its path. */
const file = (path: string, days: number, content: string | Uint8Array = 'x'): string => {
  const whole = join(root, path)
  fs.mkdirSync(join(whole, '..'), { recursive: true })
  fs.writeFileSync(whole, content)
  aged(whole, days)
  return whole
}
const aged = (path: string, days: number): void => {
  const time = new Date(now - days * DAY_MS)
  fs.lutimesSync(path, time, time)
}
const code = (name: string, script: string, days = 0): string =>
  file(`coppice/v24.1.0-x64/${name}.code`, days, withScript(Buffer.from('compiled\0functions'), script))
const clean = (directory = 'coppice/v24.1.0-x64'): void => removeOldCaches(fs, join(root, directory), now)
const left = (directory: string): string[] => fs.readdirSync(join(root, directory)).toSorted()

test('a cache says which script it was made from, and what is incomplete is none', () => {
  const data = Buffer.from('compiled\0functions')
  const whole = withScript(data, '/opt/coppice/ü.js')
  expect(readCache(fs, file('a', 0, whole))).toEqual({ data, script: '/opt/coppice/ü.js' })
  for (let length = 0; length < whole.length; length++) {
    expect(readCache(fs, file('a', 0, whole.subarray(0, length))), `${length} bytes`).toBeUndefined()
  }
  expect(readCache(fs, join(root, 'nothing'))).toBeUndefined()
})

test('of a version that is gone nothing stays; that of another installation does, however old it is', () => {
  code('gone', join(root, 'updated.js'))
  code('here', file('here.js', 0))
  code('other', file('other.js', 0), 500)
  file('coppice/v24.1.0-x64/broken.code', 0, 'half')
  clean()
  expect(left('coppice/v24.1.0-x64')).toEqual(['here.code', 'other.code'])
})

test("Node's own entries and temporary files stay for a day, directories and links for ever", () => {
  file('coppice/v24.1.0-x64/0a1b2c3d.cache', 1.1)
  file('coppice/v24.1.0-x64/chunk.code.4711', 1.1)
  file('coppice/v24.1.0-x64/fresh.cache', 0.9)
  fs.mkdirSync(join(root, 'coppice/v24.1.0-x64/directory'))
  const outside = file('outside.code', 500)
  fs.symlinkSync(outside, join(root, 'coppice/v24.1.0-x64/link.code'))
  clean()
  expect(left('coppice/v24.1.0-x64')).toEqual(['directory', 'fresh.cache', 'link.code'])
  expect(fs.existsSync(outside)).toBe(true)
})

test('caches of other versions of Node go if nothing was written there for 30 days', () => {
  for (const [name, days] of [
    ['v22.0.0-x64', 31],
    ['v23.0.0-x64', 29],
    ['something-else', 500],
  ] as const) {
    file(`coppice/${name}/a.cache`, 500)
    aged(join(root, 'coppice', name), days)
  }
  file('elsewhere/v20.0.0-x64/a.cache', 500)
  fs.symlinkSync(join(root, 'elsewhere/v20.0.0-x64'), join(root, 'coppice/v20.0.0-x64'))
  aged(join(root, 'coppice/v20.0.0-x64'), 500)
  file('coppice/v24.1.0-x64/fresh.cache', 0)
  aged(join(root, 'coppice/v24.1.0-x64'), 500)
  clean()
  expect(left('coppice')).toEqual(['something-else', 'v20.0.0-x64', 'v23.0.0-x64', 'v24.1.0-x64'])
  expect(left('coppice/v23.0.0-x64')).toEqual(['a.cache'])
  expect(left('elsewhere/v20.0.0-x64')).toEqual(['a.cache'])
  expect(left('coppice/v24.1.0-x64')).toEqual(['fresh.cache'])
})

test("a directory with something that isn't a file stays", () => {
  file('coppice/v22.0.0-x64/deep/a.cache', 500)
  aged(join(root, 'coppice/v22.0.0-x64'), 500)
  file('coppice/v24.1.0-x64/fresh.cache', 0)
  clean()
  expect(left('coppice/v22.0.0-x64/deep')).toEqual(['a.cache'])
})

test('nothing is deleted in a cache that other programs use too', () => {
  file('shared/v24.1.0-x64/a.cache', 500)
  clean('shared/v24.1.0-x64')
  clean('shared/v23.0.0-x64')
  clean('nowhere/coppice/v24.1.0-x64')
  expect(left('shared/v24.1.0-x64')).toEqual(['a.cache'])
})
