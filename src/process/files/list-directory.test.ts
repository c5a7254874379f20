import { linkSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { turnsDuring } from '../../../test/helpers/heartbeat.ts'
import { listDirectory } from './list-directory.ts'
import { createTimeSlice } from '../time-slice.ts'

let root = ''
const names = Array.from({ length: 4_000 }, (_, i) => `a-rather-long-name-of-a-file-${i}`)

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'coppice-list-'))
  for (const directory of ['small', 'large']) mkdirSync(join(root, directory))
  writeFileSync(join(root, 'file'), '')
  writeFileSync(Buffer.from(`${root}/small/\xff`, 'latin1'), '')
  for (const name of names) linkSync(join(root, 'file'), join(root, 'large', name))
})
afterAll(() => rmSync(root, { recursive: true }))

const at = (name: string): Buffer => Buffer.from(join(root, name))

test('a large directory is listed whole, with turns for everything else in between', async () => {
  let turns = 0
  const next = async (): Promise<void> => void (turns += 1)
  const entries = await listDirectory(at('large'), { slice: { isOver: () => true, next } })
  expect(entries.map(({ name }) => name).sort()).toEqual(names.toSorted())
  expect(entries.every((entry) => entry.isFile())).toBe(true)
  expect(turns).toBeGreaterThan(10)
})

test('names that are not UTF-8 keep their bytes', async () => {
  expect((await listDirectory(at('small'))).map(({ name }) => name)).toEqual(['\xff'])
})

test.each([
  ['large', 3_999],
  ['small', 0],
])('a %s directory with more than %d entries is refused', async (name, maxEntries) => {
  await expect(listDirectory(at(name), { maxEntries })).rejects.toMatchObject({
    code: 'unusable-file',
    message: `${join(root, name)} has more than ${maxEntries} entries`,
  })
  await expect(listDirectory(at(name), { maxEntries: maxEntries + 1 })).resolves.toHaveLength(maxEntries + 1)
})

test('what is missing or not a directory throws', async () => {
  await expect(listDirectory(at('nothing'))).rejects.toMatchObject({ code: 'ENOENT' })
  await expect(listDirectory(at('file'))).rejects.toMatchObject({ code: 'ENOTDIR' })
})

test('work that has used up its time ends with the error for it', async () => {
  const slice = createTimeSlice({ ms: -1, error: () => new Error('too slow') })
  await expect(slice.next()).rejects.toThrow('too slow')
  await expect(listDirectory(at('large'), { slice: { ...slice, isOver: () => true } })).rejects.toThrow('too slow')
  const inTime = createTimeSlice({ ms: 60_000, error: () => new Error('too slow') })
  expect(await turnsDuring(() => inTime.next())).toBe(1)
})
