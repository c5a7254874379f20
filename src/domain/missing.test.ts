import { mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { isMissing, unlessMissing, unlessMissingSync } from './missing.ts'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'coppice-missing-'))
  writeFileSync(join(dir, 'file'), 'text')
  symlinkSync('loop', join(dir, 'loop'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

test.each(['nothing', 'nothing/below', 'file/below'])('%s is not there', async (name) => {
  expect(unlessMissingSync(() => readFileSync(join(dir, name), 'utf8'))).toBeUndefined()
  expect(await unlessMissing(readFile(join(dir, name), 'utf8'))).toBeUndefined()
})

test('what is there is given', async () => {
  expect(unlessMissingSync(() => readFileSync(join(dir, 'file'), 'utf8'))).toBe('text')
  expect(await unlessMissing(readFile(join(dir, 'file'), 'utf8'))).toBe('text')
})

test.each(['', 'loop', 'x'.repeat(300)])('whatever else is wrong is thrown: it may be there (%#)', async (name) => {
  expect(() => unlessMissingSync(() => readFileSync(join(dir, name)))).toThrow(/EISDIR|ELOOP|ENAMETOOLONG/)
  await expect(unlessMissing(readFile(join(dir, name)))).rejects.toThrow(/EISDIR|ELOOP|ENAMETOOLONG/)
})

test('a word in a message is no answer of the file system', () => {
  expect(isMissing(new Error('ENOENT'))).toBe(false)
  expect(isMissing({ code: 'ENOENT' })).toBe(false)
})

test('to list a file fails as if it were not there, so a listing is no question for it', () => {
  expect(unlessMissingSync(() => readdirSync(join(dir, 'file')))).toBeUndefined()
})
