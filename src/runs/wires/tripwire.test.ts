import { appendFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { makeWorld, type World } from '../../../test/helpers/world.ts'
import { armTripwire, tripped } from './tripwire.ts'
import { describeChange } from '../../commands/views/checkout-changes.ts'

const prepare = {
  prepare: (repo: World['repo']): void => {
    for (const file of ['a.txt', 'b.txt', 'c/d.txt']) repo.commit(file, `${file}\n`)
  },
}

/** The kernel's stamps are a few milliseconds coarse: what was there before must be older than the wire. */
const arm = async (world: World) => {
  await delay(60)
  const armed = await armTripwire(world.context, world.codebase)
  return async () => (await tripped(world.context, world.codebase, armed)).map(describeChange)
}

describe('the tripwire on the canonical checkout', () => {
  test('is silent when nothing changed, whatever was dirty before', async () => {
    await using world = await makeWorld(prepare)
    appendFileSync(join(world.repo.path, 'a.txt'), 'dirty\n')
    writeFileSync(join(world.repo.path, 'mine.txt'), 'untracked\n')
    const tripwire = await arm(world)
    expect(await tripwire()).toEqual([])
  })

  test('is silent about work in an environment', async () => {
    await using world = await makeWorld(prepare)
    const tripwire = await arm(world)
    world.repo.git('worktree', 'add', '-q', '-b', 'issue-42', world.box.path('tree'))
    writeFileSync(join(world.box.path('tree'), 'a.txt'), 'work\n')
    world.box.raw(world.box.path('tree'), 'commit', '-qam', 'work')
    expect(await tripwire()).toEqual([])
  })

  test('names what was changed, made and deleted', async () => {
    await using world = await makeWorld(prepare)
    const tripwire = await arm(world)
    appendFileSync(join(world.repo.path, 'a.txt'), 'x\n')
    writeFileSync(join(world.repo.path, 'new.txt'), 'x\n')
    rmSync(join(world.repo.path, 'c/d.txt'))
    expect((await tripwire()).toSorted()).toEqual(['changed `a.txt`', 'changed `c/d.txt`', 'new `new.txt`'])
  })

  test('names an uncommitted change that was thrown away', async () => {
    await using world = await makeWorld(prepare)
    appendFileSync(join(world.repo.path, 'a.txt'), 'precious\n')
    const tripwire = await arm(world)
    world.repo.git('checkout', '--', 'a.txt')
    expect(await tripwire()).toEqual(['reset to committed content `a.txt`'])
  })

  test('names a commit and a switch of branches', async () => {
    await using world = await makeWorld(prepare)
    const tripwire = await arm(world)
    world.repo.git('commit', '-q', '--allow-empty', '-m', 'sneaky')
    expect(await tripwire()).toEqual([expect.stringMatching(/^HEAD moved from `main` \([0-9a-f]{10}\) to `main` \(/)])
    const second = await arm(world)
    world.repo.git('checkout', '-q', '-b', 'other')
    expect(await second()).toEqual([expect.stringMatching(/^HEAD moved from `main` .* to `other`/)])
  })

  test('says so when it cannot look', async () => {
    await using world = await makeWorld(prepare)
    const tripwire = await arm(world)
    writeFileSync(join(world.repo.commonDir, 'index'), 'not an index')
    expect(await tripwire()).toEqual([expect.stringMatching(/^it couldn't be checked/)])
  })

  test('starts no git before the run', async () => {
    await using world = await makeWorld(prepare)
    const before = world.context.git.spawned()
    await armTripwire(world.context, world.codebase)
    expect(world.context.git.spawned()).toBe(before)
  })
})
