import { readdirSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { makeSandbox } from '../../test/helpers/repo.ts'
import { temporaryDirectory } from './private-index.ts'
import { reserveSpace } from './reserve-space.ts'

const box = makeSandbox()
afterAll(() => box[Symbol.dispose]())

test.each<readonly [string, (index: string) => void, number]>([
  ['that an agent has made endless', (index) => [writeFileSync(index, ''), truncateSync(index, 2 ** 42)], 16],
  ['that is a link', (index) => symlinkSync('/dev/zero', index), 4],
  ['that is not there', () => undefined, 4],
])('an index %s takes no more space than that of a large repository', async (_what, put, megabytes) => {
  const git = box.git()
  const repo = box.repo(`repo-${megabytes}-${put.length}`)
  const index = join(repo.commonDir, 'index')
  rmSync(index)
  put(index)
  {
    using _ = await reserveSpace(git, repo)
    const [name = ''] = readdirSync(temporaryDirectory(git))
    expect(statSync(join(temporaryDirectory(git), name)).size).toBe(megabytes * 1024 ** 2)
  }
  expect(readdirSync(temporaryDirectory(git))).toEqual([])
  rmSync(repo.path, { recursive: true })
})
