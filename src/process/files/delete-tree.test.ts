import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { deleteTree, deleteTreeSync } from './delete-tree.ts'

let root = ''
const at = (...parts: string[]): string => join(root, ...parts)
const file = (...parts: string[]): void => {
  mkdirSync(at(...parts.slice(0, -1)), { recursive: true })
  writeFileSync(at(...parts), 'x\n')
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'coppice-delete-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

test('a directory goes with everything in it, whatever that is called and whoever may read it', async () => {
  file('tree', 'a', 'b', 'c')
  file('tree', 'closed', 'inner', 'x')
  chmodSync(at('tree/closed/inner'), 0o000)
  chmodSync(at('tree/closed'), 0o500)
  mkdirSync(Buffer.concat([Buffer.from(at('tree/')), Buffer.from([0xff, 0x0a])]))
  execFileSync('mkfifo', [at('tree/fifo')])
  symlinkSync('/nowhere', at('tree/dangling'))
  await deleteTree(at('tree'))
  expect(readdirSync(root)).toEqual([])
})

test('many entries go without keeping anything else waiting', async () => {
  for (let i = 0; i < 1_000; i += 1) file('tree', `d${i % 10}`, `f${i}`)
  let turns = 0
  const count = (): void => {
    turns += 1
    again = setImmediate(count)
  }
  let again = setImmediate(count)
  await deleteTree(at('tree'))
  clearImmediate(again)
  expect(turns).toBeGreaterThan(2)
  expect(existsSync(at('tree'))).toBe(false)
})

test('what a link leads to stays, also when the link is the top', async () => {
  file('outside', 'gold')
  file('tree', 'x')
  symlinkSync(at('outside'), at('tree/link'))
  symlinkSync(at('outside'), at('top'))
  await deleteTree(at('tree'))
  await deleteTree(at('top'))
  expect(readdirSync(root)).toEqual(['outside'])
  expect(readdirSync(at('outside'))).toEqual(['gold'])
})

test('a directory that is swapped for a link while it deletes is not followed', () => {
  file('outside', 'gold')
  for (const name of ['one', 'other']) {
    file('tree', name, '.git')
    file('tree', name, 'gold')
  }
  let swapped: string | undefined
  // Both are listed before either is entered: whichever comes first makes a link of the second.
  deleteTreeSync(at('tree'), {
    leave: (directory) => {
      if (swapped !== undefined) return undefined
      swapped = directory.toString() === at('tree/one') ? 'other' : 'one'
      renameSync(at('tree', swapped), at('moved'))
      symlinkSync(at('outside'), at('tree', swapped))
      return undefined
    },
  })
  expect([existsSync(at('tree')), existsSync(at('outside/gold')), existsSync(at('moved/gold'))]).toEqual([
    false,
    true,
    true,
  ])
})

test('what is to be left stays with all that is in it, and the rest goes', () => {
  file('tree', 'keep', '.git')
  file('tree', 'keep', 'deep', 'work')
  file('tree', 'keep', 'work')
  file('tree', '.git')
  file('tree', 'other', 'x')
  const leave = (directory: Buffer): string | undefined =>
    directory.toString().endsWith('/keep') ? 'it is yours' : undefined
  expect(() => deleteTreeSync(at('tree'), { leave })).toThrow(/tree\/keep \(it is yours\)/)
  expect(readdirSync(at('tree'))).toEqual(['keep'])
  expect(readdirSync(at('tree/keep')).sort()).toEqual(['.git', 'deep', 'work'])
})

test('what is not there is no fault, and a file goes like a directory', async () => {
  await deleteTree(at('nothing'))
  await deleteTree(at('nothing/deeper'))
  file('plain')
  await deleteTree(at('plain'))
  expect(readdirSync(root)).toEqual([])
})
