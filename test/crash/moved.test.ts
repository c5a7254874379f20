import { existsSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { reconcile } from '../../src/isolation/reconcile.ts'
import { environmentOfFive, makeDirty, makeScenarioWorld } from './arrange.ts'
import { killAt } from './kill.ts'

/** Where the tree lies when the removal was killed there: git itself moves it from its place, not out of the trash. */
const steps = [
  ['remove.intent', 'in its place'],
  ['save.recorded', 'in its place'],
  ['remove.saved', 'in its place'],
  ['remove.moved', 'in the trash'],
  ['remove.checked', 'in the trash'],
  ['remove.forgetting', 'in the trash'],
] as const

test.each(steps)(
  'a removal killed at %s, whose tree (%s) the user then moved away, is taken back and followed',
  async (failpoint, where) => {
    await using world = await makeScenarioWorld({})
    await makeDirty(world)
    const { context, codebase, repo, box } = world
    const { id, path } = await environmentOfFive(world)
    await killAt(world, 'remove-forced', failpoint)
    const trash = join(context.worktreesBase, '.trash', id)
    const from = where === 'in the trash' ? trash : path
    expect(existsSync(from)).toBe(true)
    if (from === trash) repo.git('worktree', 'repair', trash)
    repo.git('worktree', 'move', from, box.path('mine'))
    expect(await reconcile(context, codebase)).toMatchObject({ left: [] })
    expect(await context.store.environments.get(id)).toMatchObject({
      status: 'active',
      path: box.path('mine'),
      owned: false,
    })
    expect(readFileSync(box.path('mine', 'secret.local'), 'utf8')).toBe('ignored\n')
    expect(await context.store.journal.open(context.host)).toEqual([])
  },
)

test('a removal killed with its tree in the trash, which somebody then took away by hand, keeps what it had saved', async () => {
  await using world = await makeScenarioWorld({})
  await makeDirty(world)
  const { context, codebase, box } = world
  const { id } = await environmentOfFive(world)
  await killAt(world, 'remove-forced', 'remove.moved')
  renameSync(join(context.worktreesBase, '.trash', id), box.path('by-hand'))
  expect(await reconcile(context, codebase)).toMatchObject({ left: [] })
  expect((await context.store.environments.get(id))?.status).toBe('missing')
  expect(await context.store.restorePoints.list(codebase.id)).toMatchObject([{ environmentId: id }])
})
