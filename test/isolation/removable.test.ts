import { expect, test } from 'vitest'
import { runScheduledCleanup } from '../../src/cleanup/sweep.ts'
import { factsJson } from '../../src/commands/views/json.ts'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import { listWithFacts } from '../../src/isolation/facts.ts'
import { acquireLease } from '../../src/isolation/lease.ts'
import { mergeStatuses } from '../../src/isolation/merge-proof/merge-status.ts'
import { countRemovable, findRemovable, type Removable } from '../../src/isolation/removable.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { conversation, inside, issue, program } from './scene.ts'

/* One definition: what is counted as merged or stale is what a cleanup would remove now. */

const day = 24 * 60 * 60 * 1000

const land = (world: World, environment: IsolatedEnvironment): void => {
  inside(world, environment).commit(environment.branch, 'x\n')
  world.repo.git('merge', '-q', '--no-ff', '-m', 'land', environment.branch)
}

const removable = async ({ context, codebase }: World): Promise<Record<string, Removable>> => {
  const all = await mergeStatuses(context, codebase)
  const found = await findRemovable(context, codebase, all)
  return Object.fromEntries(all.map(({ environment: { branch, id } }) => [branch, found.get(id) ?? { kind: 'active' }]))
}

/** The world, with a count of the git processes that it starts. */
const counting = (world: World) => {
  let runs = 0
  const { git } = world.context
  const run: typeof git.run = (call) => {
    runs += 1
    return git.run(call)
  }
  return {
    context: { ...world.context, git: { ...git, run } },
    count: async (work: () => Promise<unknown>): Promise<number> => {
      const before = runs
      await work()
      return runs - before
    },
  }
}

test('what is counted as merged or stale is what cleanup removes, and the rest of it is held, for its reasons', async () => {
  let now = Date.now()
  await using world = await makeWorld({ context: { clock: () => now } })
  const old = await issue(world, 1)
  const dirty = await issue(world, 2)
  inside(world, dirty).write('draft', 'mine\n')
  const chats = await issue(world, 3)
  const chat = await conversation(world, { platform: 'telegram', environmentId: chats.id, persistent: true })
  await world.context.store.conversations.update(chat.id, { environmentId: undefined })
  const adopted = world.repo.worktree('mine', '-b', 'mine')
  await world.provider.adopt(world.codebase, adopted.path, { createdBy: 'test', aliases: [] })
  now += 20 * day
  const merged = await issue(world, 4)
  const talked = await issue(world, 5)
  const leased = await issue(world, 6)
  const switched = await issue(world, 7)
  const locked = await issue(world, 8)
  const entered = await issue(world, 9)
  await issue(world, 10)
  for (const one of [merged, talked, leased, switched, locked, entered]) land(world, one)
  await conversation(world, { environmentId: talked.id, lastActivityAt: now })
  await acquireLease(world.context, world.codebase, leased, { purpose: 'agent run' })
  inside(world, switched).git('checkout', '-q', '-b', 'elsewhere')
  world.repo.git('worktree', 'lock', '--reason', 'backup', locked.path)
  using sleeper = await program('sleep', ['60'], { cwd: entered.path })
  expect(sleeper.pid).toBeGreaterThan(0)

  const found = await removable(world)
  const held = (gate: string, as: string) => ({ kind: 'held', as, reasons: [expect.objectContaining({ gate })] })
  expect(found).toEqual({
    'issue-1': { kind: 'stale' },
    'issue-2': held('nothing-uncommitted', 'stale'),
    'issue-3': held('nobody-elses', 'stale'),
    'issue-4': { kind: 'merged' },
    'issue-5': held('nobody-elses', 'merged'),
    'issue-6': held('not-in-use', 'merged'),
    'issue-7': held('nothing-uncommitted', 'merged'),
    'issue-8': held('not-in-use', 'merged'),
    'issue-9': held('not-in-use', 'merged'),
    'issue-10': { kind: 'active' },
    mine: { kind: 'active' },
  })
  expect(countRemovable(Object.values(found))).toEqual({ active: 2, merged: 1, stale: 1, held: 7 })

  const branches = (rows: readonly { environment: IsolatedEnvironment }[]) =>
    rows.map(({ environment }) => environment.branch).toSorted()
  const kept = Object.entries(found).flatMap(([branch, { kind }]) => (kind === 'held' ? [branch] : []))
  const report = await runScheduledCleanup(world.context, world.provider, world.codebase)
  expect(branches(report.removed)).toEqual([old.branch, merged.branch])
  expect(branches(report.skipped)).toEqual(kept.toSorted())
})

test('git is asked about the files of those only that nothing else holds, whatever else there is', async () => {
  await using world = await makeWorld({ settings: { holdMergedHours: 1 } })
  land(world, await issue(world, 1))
  const { context, count } = counting(world)
  const asked = async (): Promise<number> => {
    const all = await mergeStatuses(context, world.codebase)
    return count(() => findRemovable(context, world.codebase, all))
  }
  await asked()
  const alone = await asked()
  expect(alone).toBeLessThanOrEqual(FILE_LOOK)
  for (const number of [2, 3, 4, 5]) {
    const environment = await issue(world, number)
    await conversation(world, { environmentId: environment.id, lastActivityAt: Date.now() })
    if (number % 2 === 0) land(world, environment)
  }
  // Two merged ones that a conversation holds, and two that have nothing to remove.
  expect(await asked()).toBe(alone)
  land(world, await issue(world, 6))
  expect(await asked()).toBeLessThanOrEqual(2 * FILE_LOOK)
  // Whoever has just been refused doesn't ask again.
  const all = await mergeStatuses(context, world.codebase)
  const refused = new Map(all.map(({ environment }) => [environment.id, []]))
  expect(await count(() => findRemovable(context, world.codebase, all, { refused }))).toBe(0)
})

/** The processes that look at one worktree's files, and at base's configuration. */
const FILE_LOOK = 7

test('a list says for programs what cleanup would remove, and what holds the others', async () => {
  await using world = await makeWorld({ settings: { holdMergedHours: 0 } })
  const dirty = await issue(world, 2)
  for (const one of [await issue(world, 1), dirty]) land(world, one)
  inside(world, dirty).write('draft', 'mine\n')
  await issue(world, 3)
  const facts = await listWithFacts(world.context, world.codebase)
  const uncommitted = { gate: 'nothing-uncommitted', answer: 'no', detail: '1 untracked' }
  expect(Object.fromEntries(facts.map((one) => [one.environment.branch, factsJson(one, () => 'x').cleanup]))).toEqual({
    'issue-1': { why: 'merged', heldBy: [] },
    'issue-2': { why: 'merged', heldBy: [uncommitted] },
    'issue-3': null,
  })
})

test('a list shows what is stale even if the base is gone, and as held: without a base, cleanup removes nothing', async () => {
  let now = Date.now()
  await using world = await makeWorld({ context: { clock: () => now } })
  await issue(world, 1)
  now += 20 * day
  const facts = await listWithFacts(world.context, { ...world.codebase, base: 'gone' })
  const reasons = [expect.objectContaining({ gate: 'ours', answer: 'cannot-tell' })]
  expect(facts.map((one) => one.removable)).toEqual([{ kind: 'held', as: 'stale', reasons }])
})
