import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sameEntries, walk } from './walk.ts'

let root = ''
const file = (path: string): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), 'x\n')
}

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'coppice-walk-'))
  file('.git')
  file(`${'deep/'.repeat(40)}x/.git`)
  for (const name of ['HEAD', 'objects/a', 'refs/a']) file(`node_modules/.pnpm/a@1/node_modules/a/repo/${name}`)
  file('repo/.git/HEAD')
  // Larger than what is listed at once, in file systems that count 20 bytes a name and in those that count more.
  for (let i = 0; i < 8_000; i += 1) file(`large/a-rather-long-name-of-a-file-${i}`)
  mkdirSync(join(root, 'large/inner/x/.git'), { recursive: true })
})
afterAll(() => rmSync(root, { recursive: true }))

describe('a walk', () => {
  test('finds every .git and every bare repository at any depth, also in directories with thousands of files', async () => {
    const { gits, gitDirectories } = await walk(root, Date.now())
    expect(gits.toSorted((a, b) => a.path.localeCompare(b.path))).toEqual([
      { path: `${'deep/'.repeat(40)}x/.git`, isDirectory: false },
      { path: 'large/inner/x/.git', isDirectory: true },
      { path: 'repo/.git', isDirectory: true },
    ])
    expect(gitDirectories).toEqual(['node_modules/.pnpm/a@1/node_modules/a/repo'])
  })

  test('lets other work go on', async () => {
    let turns = 0
    const next = async (): Promise<void> => void (turns += 1)
    await walk(root, Date.now(), { isOver: () => true, next })
    expect(turns).toBeGreaterThan(8_000)
  })

  test('a new entry anywhere is seen, although its directory was given its old time back', async () => {
    const directory = join(root, 'deep/deep')
    const old = new Date(2020, 1, 1)
    utimesSync(directory, old, old)
    const { directories } = await walk(root, Date.now())
    expect(await sameEntries(root, directories)).toBe(true)
    mkdirSync(join(directory, '.git'))
    utimesSync(directory, old, old)
    expect(await sameEntries(root, directories)).toBe(false)
  })

  test('a directory that has just changed is not trusted to show the next change', async () => {
    const { mtimeMs } = (await import('node:fs')).statSync(root)
    expect((await walk(root, mtimeMs + 1)).isFresh).toBe(true)
    expect((await walk(root, mtimeMs + 24 * 60 * 60 * 1000)).isFresh).toBe(false)
  })
})
