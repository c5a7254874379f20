import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { mainTree, makeSandbox, type Sandbox, type TestRepo } from '../../test/helpers/repo.ts'
import { convertedFiles } from './converted.ts'
import { countDirt } from './dirt.ts'
import { lookIntoIndex } from './hidden.ts'
import { readStatus } from './status.ts'
import { isUntouchedByStat } from './untouched.ts'

const fifo = (path: string): void => {
  mkdirSync(dirname(path), { recursive: true })
  rmSync(path, { force: true })
  execFileSync('mkfifo', [path])
}

const scene = (): { box: Sandbox; repo: TestRepo } => {
  const box = makeSandbox()
  const repo = box.repo()
  repo.commit('deep/down/file', 'x\n')
  return { box, repo }
}

describe.concurrent('a FIFO that git would wait for is named, and git is ended:', () => {
  test.each(['.gitattributes', '.gitignore', 'deep/down/.gitignore', 'new/.gitignore', '.git/info/exclude'])(
    'git status and %s',
    async (name) => {
      const { box, repo } = scene()
      using _ = box
      // Where a tracked file has another time than the index says, attributes are read.
      repo.write('README', 'hello\n')
      fifo(join(repo.path, name))
      const git = box.git()
      const message = expect.stringMatching(new RegExp(`${name} is a FIFO: git would wait`)) as string
      await expect(readStatus(git, mainTree(repo))).rejects.toMatchObject({ code: 'unusable-file', message })
      await expect(countDirt(git, mainTree(repo))).rejects.toMatchObject({ code: 'unusable-file', message })
      expect([...git.running]).toEqual([])
    },
    20_000,
  )

  test('the other questions about files', async () => {
    const { box, repo } = scene()
    using _ = box
    repo.git('update-index', '--assume-unchanged', 'deep/down/file')
    repo.write('README', 'hello\n')
    repo.write('deep/down/file', 'y\n')
    fifo(join(repo.path, '.gitattributes'))
    const git = box.git()
    const named = '.gitattributes is a FIFO'
    await Promise.all([
      expect(convertedFiles(git, mainTree(repo))).rejects.toThrow(named),
      expect(lookIntoIndex(git, mainTree(repo))).rejects.toThrow(named),
    ])
    // Whether it has to read the file depends on how young the index is: it says "touched" or names the FIFO.
    const untouched = await isUntouchedByStat(git, mainTree(repo)).catch((error: Error) => error.message)
    expect([false, expect.stringContaining(named)]).toContainEqual(untouched)
  }, 20_000)

  test('but one in the way of nobody is no obstacle', async () => {
    const { box, repo } = scene()
    using _ = box
    repo.commit('.gitignore', 'ignored\n')
    fifo(join(repo.path, 'ignored/.gitignore'))
    expect((await readStatus(box.git(), mainTree(repo))).ignored.map(({ path }) => path)).toEqual(['ignored/'])
  })

  test('a cancelled question is cancelled, whatever lies there', async () => {
    const { box, repo } = scene()
    using _ = box
    fifo(join(repo.path, 'deep/.gitignore'))
    const signal = AbortSignal.timeout(50)
    await expect(readStatus(box.git(), mainTree(repo), { signal })).rejects.toMatchObject({ code: 'cancelled' })
  })
})
