import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Codebase } from '../../src/domain/environment.ts'
import { providerNames } from '../../src/domain/provider-name.ts'
import { removedText } from '../../src/cli/commands/crew.ts'
import { asProgram } from '../../src/commands/views/view.ts'
import { addCrew, addCrewTree, removeCrew, treesOf } from '../../src/fleet/crew.ts'
import { fleetDown } from '../../src/fleet/down.ts'
import { done } from '../../src/fleet/formulas/done.ts'
import { parkByHand, reopenItem } from '../../src/fleet/items/close.ts'
import { sling } from '../../src/fleet/sling/sling.ts'
import { fleetUp } from '../../src/fleet/up.ts'
import { addCodebase } from '../../src/isolation/codebases/codebases.ts'
import { liveness } from '../../src/process/identity.ts'
import { scripted } from '../crash/fleet-operations.ts'
import { assertHooksAgree, type FleetWorld, type FleetWorldOptions, makeFleetWorld } from '../helpers/fleet.ts'
import { runnableKinds, testInTmux } from '../helpers/tmux.ts'

const script = resolve(import.meta.dirname, '../helpers/fleet-worker.sh')
const by = 'cli'

const crewWorld = (options: FleetWorldOptions = {}): Promise<FleetWorld> =>
  makeFleetWorld({ kind: runnableKinds[0], agents: [scripted(script)], ...options })

const second = async ({ box, context }: FleetWorld): Promise<Codebase> =>
  (await addCodebase(context, box.repo('lib').path, '/', {})).codebase

const add = async (world: FleetWorld, ...codebases: [Codebase, ...Codebase[]]) => {
  const added = await addCrew(world.fleet, { name: 'rust', codebases, agent: 'scripted', by })
  if (added.outcome !== 'added') throw new Error('the limit is reached')
  const [first] = added.trees
  if (first === undefined) throw new Error('there is no worktree')
  return { ...added, environment: first.environment }
}

const member = async ({ context: { store, host } }: FleetWorld) =>
  (await store.fleetAgents.byName(host, 'rust')) ?? expect.unreachable('nobody is called rust')

const isRunning = async (world: FleetWorld): Promise<boolean> => {
  const { session } = await member(world)
  return session !== undefined && liveness(session.root) === 'alive'
}

describe.each(providerNames)('a crew member with environments of the kind %s', (isolationProvider) => {
  testInTmux('has one name in all of its repositories, and nobody else has it', async () => {
    await using world = await crewWorld({ settings: { isolationProvider } })
    const lib = await second(world)
    const { agent, environment } = await add(world, world.codebase)
    expect(agent).toMatchObject({ kind: 'crew', state: 'working', itemId: undefined })
    const more = await addCrewTree(world.fleet, 'rust', lib, { by })
    expect('environment' in more).toBe(true)
    const all = await treesOf(world.fleet, 'rust')
    expect(all.map(({ codebase }) => codebase.name)).toEqual(['project', 'lib'])
    for (const { environment: its } of all) {
      expect(world.box.raw(its.path, 'config', 'user.name')).toBe('rust')
      expect(world.box.raw(its.path, 'config', 'user.email')).toBe('rust@crew.coppice.invalid')
    }
    for (const repository of [world.repo.path, world.box.path('lib')]) {
      expect(world.box.raw(repository, 'config', 'user.name')).toBe('Ada')
      expect(readFileSync(join(repository, '.git', 'config'), 'utf8')).not.toContain('rust')
      expect(world.box.raw(repository, 'status', '--porcelain')).toBe('')
    }
    // What it commits, from its session, has its name.
    const { path } = environment
    await world.order('rust', 'commit hello')
    await expect.poll(() => world.box.raw(path, 'log', '-1', '--format=%s by %an <%ae>')).toContain('hello by rust')
    await world.order('rust', 'echo "by $GIT_AUTHOR_NAME of $GIT_COMMITTER_EMAIL"')
    await expect.poll(() => world.printed('rust')).toContain('by rust of rust@crew.coppice.invalid')
    // Asked for again, it is the same one.
    const again = await addCrewTree(world.fleet, 'rust', lib, { by })
    expect('environment' in again && again.environment.id).toBe(all[1]?.environment.id)
  })

  testInTmux('works an item off in its own tree, and stays', async () => {
    await using world = await crewWorld({ remote: true, settings: { isolationProvider } })
    const { environment } = await add(world, world.codebase)
    const { path } = environment
    const [first, next] = [await world.addItem('Fix login'), await world.addItem('Docs')]
    expect(await sling(world.fleet, { item: first.id, crew: 'rust', by })).toMatchObject({
      outcome: 'started',
      environment: { path },
    })
    await expect.poll(() => world.printed('rust')).toContain('Your item is 1')
    expect(await sling(world.fleet, { item: next.id, crew: 'rust', by })).toMatchObject({ why: { kind: 'crew-busy' } })
    await expect(removeCrew(world.fleet, 'rust')).rejects.toMatchObject({ code: 'refused' })
    await world.order('rust', 'commit login')
    await expect.poll(() => existsSync(join(path, 'login.txt'))).toBe(true)
    await expect.poll(() => world.box.raw(path, 'log', '-1', '--format=%s')).toBe('login')
    const { spawn } = await member(world)
    expect(await done(world.fleet, { agent: 'rust', spawn, mode: 'push' })).toMatchObject({ outcome: 'done' })
    expect(await world.item(first.id)).toMatchObject({ state: 'closed', environmentId: undefined })
    expect(await member(world)).toMatchObject({ state: 'working', itemId: undefined })
    expect(existsSync(path)).toBe(true)
    expect(await isRunning(world)).toBe(true)
    expect(await sling(world.fleet, { item: next.id, crew: 'rust', by })).toMatchObject({ outcome: 'started' })
    // What has come back from its review continues there, and so with nobody else.
    expect(await done(world.fleet, { agent: 'rust', spawn, mode: 'land' })).toMatchObject({ outcome: 'done' })
    await parkByHand(world.fleet, next.id, { note: undefined, by })
    await reopenItem(world.fleet, next.id, by)
    await expect(sling(world.fleet, { item: next.id, by })).rejects.toMatchObject({
      message: expect.stringContaining('the worktree of rust'),
      remedy: 'give it to rust: add --crew rust',
    })
    expect(await sling(world.fleet, { item: next.id, crew: 'rust', by })).toMatchObject({ outcome: 'started' })
    await assertHooksAgree(world)
  })
})

test('nothing but a person removes a worktree of the crew, and only if that is safe', async () => {
  await using world = await crewWorld()
  const { environment } = await add(world, world.codebase)
  await world.order('rust', 'crash')
  await expect.poll(() => isRunning(world)).toBe(false)
  const { id } = await world.addItem('Fix login')
  const why = { kind: 'crew-asleep', crew: 'rust', state: 'stopped' }
  expect(await sling(world.fleet, { item: id, crew: 'rust', by })).toMatchObject({ why })
  await fleetDown(world.fleet, { by, clean: true, graceMs: 0 })
  expect(existsSync(environment.path)).toBe(true)
  for (const trigger of ['closed', 'merged', 'stale', 'room', 'fleet'] as const) {
    const outcome = await world.provider.destroy(environment, { trigger })
    expect(outcome).toMatchObject({ outcome: 'refused', reasons: [{ fact: { kind: 'crew', name: 'rust' } }] })
  }
  writeFileSync(join(environment.path, 'half.txt'), 'half\n')
  expect(await removeCrew(world.fleet, 'rust')).toMatchObject({
    removed: [],
    kept: [{ environment: { id: environment.id } }],
  })
  expect(await member(world)).toMatchObject({ state: 'stopped' })
  expect((await fleetUp(world.fleet, { by })).started).toMatchObject([{ name: 'rust' }])
  expect(await isRunning(world)).toBe(true)
  world.box.raw(environment.path, 'clean', '-fdq')
  world.box.raw(environment.path, 'commit', '-q', '--allow-empty', '-m', 'mine')
  const removed = await removeCrew(world.fleet, 'rust')
  expect(removed).toMatchObject({ removed: [{ environment: { id: environment.id } }], kept: [] })
  expect(removedText(removed, { ...asProgram, now: 0 })).toMatch(/\n {4}branch kept: cannot tell whether it is merged/)
  expect(await world.context.store.fleetAgents.byName(world.context.host, 'rust')).toBeUndefined()
  expect(existsSync(environment.path)).toBe(false)
})

test('a name that is in use, or is none, is refused, and nothing is made', async () => {
  await using world = await crewWorld()
  await add(world, world.codebase)
  const before = await world.context.store.environments.live(world.codebase.id)
  for (const name of ['rust', 'Rust', '-x', 'a b', '']) {
    const adding = addCrew(world.fleet, { name, codebases: [world.codebase], agent: 'scripted', by })
    await expect(adding).rejects.toMatchObject({ code: 'name-invalid' })
  }
  expect(await world.context.store.environments.live(world.codebase.id)).toEqual(before)
})
