import { existsSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createRepositoryLock } from '../../src/isolation/lock/lock.ts'
import { openStore } from '../../src/store/open.ts'
import { type CliResult, type EnvironmentJson, ended, makeCliWorld, project } from '../helpers/cli.ts'
import { writeIn } from '../helpers/repo.ts'

/**
 * Two removals of issue 1; the row of the second is held back until the command has chosen the first one's point and
 * waits for the lock, as if that removal had just held it.
 */
const restoreWhileRemoving = async (refs: (older: string) => string[]) => {
  using world = makeCliWorld()
  const repo = project(world)
  for (const draft of ['older', 'newer']) {
    const made = await world.json<EnvironmentJson>(repo.path, 0, 'worktree', 'create', '--issue', '1')
    writeIn(made.path, 'draft', draft)
    await world.json(repo.path, 0, 'worktree', 'remove', 'issue-1', '--force')
  }
  const store = await openStore({ sqliteFile: join(world.home, 'coppice.db') })
  try {
    const [codebase] = await store.codebases.list(readFileSync(join(world.home, 'host'), 'utf8').trim())
    if (codebase === undefined) throw new Error('no codebase')
    const [newer, older] = await store.restorePoints.list(codebase.id)
    if (newer === undefined || older === undefined) throw new Error('no two points')
    await store.restorePoints.remove(newer.id)
    // Otherwise it is recalled: a removal that has written its point and not yet its row is in the journal.
    const files = join(world.home, 'restore', newer.id)
    renameSync(files, world.box.path('aside'))
    const lock = createRepositoryLock({ clock: Date.now, random: Math.random })
    let answer: Promise<CliResult> | undefined
    await lock.withRepositoryLock(codebase.repoPath, { purpose: 'removing issue-1' }, async () => {
      const child = world.start(repo.path, 'worktree', 'restore', '--json', ...refs(older.id))
      answer = ended(child)
      await new Promise<void>((resolve, reject) => {
        child.stderr?.on('data', (chunk: Buffer) => chunk.toString().includes('waiting for') && resolve())
        child.once('close', () => reject(new Error('it did not wait for the lock')))
      })
      renameSync(world.box.path('aside'), files)
      await store.restorePoints.insert(newer)
    })
    const result = await answer
    expect(result).toMatchObject({ code: 0 })
    const { path } = JSON.parse(result?.out ?? '') as EnvironmentJson
    expect(existsSync(path)).toBe(true)
    return readFileSync(join(path, 'draft'), 'utf8')
  } finally {
    await store.close()
  }
}

test.concurrent('a restore that waited for a removal of the same work brings back what that removal kept', async () => {
  expect(await restoreWhileRemoving(() => ['issue-1'])).toBe('newer')
})

test.concurrent('so does one that was not told which', async () => {
  expect(await restoreWhileRemoving(() => [])).toBe('newer')
})

test.concurrent('one that was told the id of the older point brings back that one', async () => {
  expect(await restoreWhileRemoving((older) => [older])).toBe('older')
})
