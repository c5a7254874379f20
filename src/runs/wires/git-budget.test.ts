import { linkSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { toRepoPath } from '../../domain/names.ts'
import { writeIn } from '../../../test/helpers/repo.ts'
import { gitChanges, type GitLook, lookAtRepository } from './git-wire.ts'

let directory: string
let gitDir: string
let before: GitLook

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'coppice-git-budget-'))
  gitDir = join(directory, '.git')
  mkdirSync(gitDir)
  before = await look()
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const look = (): Promise<GitLook> =>
  lookAtRepository({ repoPath: toRepoPath(gitDir), checkoutPath: undefined }, { user: {}, redact: (text) => text })
const changes = async (): Promise<readonly string[]> => gitChanges(before, await look())

test('hooks beyond 20 MB are compared by their stamps', async () => {
  const hooks = join(gitDir, 'hooks')
  mkdirSync(hooks)
  for (let n = 10; n < 35; n++) {
    writeFileSync(join(hooks, `hook-${n}`), '')
    truncateSync(join(hooks, `hook-${n}`), 1_000_000)
  }
  const seen = await look()
  const { files = {} } = 'problem' in seen ? {} : seen
  expect(files['the hook `hook-10`']).toMatch(/^\d+ [0-9a-f]{64}$/)
  expect(files['the hook `hook-34`']).toMatch(/^1000000 /)
})

const write = (file: string, text: string) => () => writeIn(join(directory, '.git'), file, text)

/** One configuration that many submodules share. */
const submodules = (count: number, config: string) => () => {
  writeFileSync(join(directory, 'shared'), config)
  for (let n = 0; n < count; n++) {
    writeIn(join(gitDir, 'modules', `${n}`), 'HEAD', 'ref: refs/heads/main\n')
    linkSync(join(directory, 'shared'), join(gitDir, 'modules', `${n}`, 'config'))
  }
}

test.each<[name: string, plant: () => void, told: RegExp]>([
  ['many settings', write('config', `[a]\n${'b\n'.repeat(30_001)}`), /too many settings/],
  ['a long section', write('config', `[a "${'b'.repeat(100_000)}"]\n${'c\n'.repeat(250)}`), /too large/],
  ['large files', submodules(21, '#'.repeat(1_000_000)), /too large/],
  ['many files with settings', submodules(16, `[a]\n${'b\n'.repeat(2_000)}`), /too many settings/],
  [
    'many hooks',
    () => {
      for (let n = 0; n <= 500; n++) writeIn(join(gitDir, 'hooks'), `${n}`, '')
    },
    /hooks has too many files/,
  ],
  [
    'many included files',
    () => {
      for (let n = 0; n <= 51; n++) writeIn(gitDir, n === 0 ? 'config' : `${n}`, `[include]\n\tpath = ${n + 1}\n`)
    },
    /includes too many files/,
  ],
])('%s: a look stops at its limit and says so', async (_name, plant, told) => {
  plant()
  const lines = await changes()
  expect(lines).toEqual([expect.stringMatching(/^they couldn't be checked completely/)])
  expect(lines.join()).toMatch(told)
})

test.each(['/', '~nobody/'])('a path of 900,000 characters below %s does not fill the report', async (start) => {
  writeIn(gitDir, 'config', `[include]\n\tpath = ${start}${'a'.repeat(900_000)}\n`)
  const lines = await changes()
  expect(lines).not.toEqual([])
  expect(lines.join().length).toBeLessThan(2_000)
})

test('the server goes on during a look', async () => {
  writeIn(gitDir, 'config', `[a]\n${'b = c\n'.repeat(29_000)}`)
  let turns = 0
  const count = (): void => {
    turns++
    timer = setImmediate(count)
  }
  let timer = setImmediate(count)
  await look()
  clearImmediate(timer)
  expect(turns).toBeGreaterThan(1)
})

test('thousands of branches that belong to thousands of remotes are ordinary work', async () => {
  const numbers = [...Array(9_000).keys()]
  const remotes = numbers.map((n) => `[remote "${n}"]\nurl = x\n`).join('')
  writeIn(gitDir, 'config', remotes)
  before = await look()
  const branches = [...numbers, 'added'].map((name) => `[branch "${name}"]\nremote = ${name}\n`).join('')
  writeIn(gitDir, 'config', remotes + branches)
  expect(await changes()).toEqual(["the repository's configuration: set `branch.added.remote = added`"])
})
