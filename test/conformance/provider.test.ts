import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { type ProviderName, providerNames } from '../../src/domain/provider-name.ts'
import { toWork } from '../../src/domain/work.ts'
import type { Created, IsolationRequest } from '../../src/isolation/provider.ts'
import { presenceOf, providerOf } from '../../src/isolation/provider-of.ts'
import { writeIn } from '../helpers/repo.ts'
import { makeWorld, type World, type WorldOptions } from '../helpers/world.ts'
import { conversation } from '../isolation/scene.ts'

/** What the suite needs of a provider beside the interface: how a person changes, loses and makes such a place. */
type Member = {
  /** Writes a file into the environment, as its user would. */
  readonly write: (path: string, file: string, content: string) => void
  readonly read: (world: World, path: string, file: string) => string
  /** A place of this kind that a person made; answers its path. Undefined: the provider cannot adopt any. */
  readonly foreign: ((world: World) => string) | undefined
}

const members: Readonly<Record<ProviderName, Member>> = {
  worktree: {
    write: writeIn,
    read: (world, path, file) => world.box.raw(path, 'hash-object', file),
    foreign: (world) => world.repo.worktree('mine', '-b', 'mine').path,
  },
  clone: {
    write: writeIn,
    read: (world, path, file) => world.box.raw(path, 'hash-object', file),
    foreign: undefined,
  },
}

/** Of a provider without a member nothing can be asked, which fails. */
const all = providerNames.map((name) => ({ ...members[name], name }))

const request = (world: World, number: number, more: Partial<IsolationRequest> = {}): IsolationRequest => ({
  codebase: world.codebase,
  work: toWork('issue', String(number)),
  hints: {},
  createdBy: 'test',
  aliases: [],
  ...more,
})

const created = async (world: World, number: number, more: Partial<IsolationRequest> = {}): Promise<Created> => {
  const answer = await world.provider.create(request(world, number, more))
  if (answer.outcome !== 'created') throw new Error(answer.outcome)
  return answer
}

describe.concurrent.each(all)('the provider $name', (member) => {
  const open = (options: WorldOptions = {}): Promise<World> =>
    makeWorld({ ...options, settings: { ...options.settings, isolationProvider: member.name } })

  test('says its own name, and its environments carry it', async () => {
    await using world = await open()
    const { environment } = await created(world, 42)
    expect(environment.provider).toBe(member.name)
    expect((await providerOf(world.context, environment)).name).toBe(member.name)
  })

  test('creates a place that is there, healthy, ours and active', async () => {
    await using world = await open()
    const { environment } = await created(world, 42)
    expect(environment).toMatchObject({ status: 'active', owned: true, work: { type: 'issue', id: '42' } })
    expect(existsSync(environment.path)).toBe(true)
    expect(await presenceOf(world.context, world.codebase, environment)).toMatchObject({ state: 'present' })
  })

  test('a second creation of the same work answers the first', async () => {
    await using world = await open()
    const { environment } = await created(world, 42)
    expect(await world.provider.create(request(world, 42))).toMatchObject({
      outcome: 'existing',
      environment: { id: environment.id },
    })
  })

  test('two works have two places that do not see each other', async () => {
    await using world = await open()
    const one = (await created(world, 1)).environment
    const two = (await created(world, 2)).environment
    member.write(one.path, 'only-here', 'x')
    expect(one.path).not.toBe(two.path)
    expect(() => member.read(world, two.path, 'only-here')).toThrow(/only-here/)
  })

  test('gets by work and by alias, and lists what is live', async () => {
    await using world = await open()
    const alias = toWork('pr', '99')
    const { environment } = await created(world, 42, { aliases: [alias] })
    expect((await world.context.store.environments.liveByWork(world.codebase.id, environment.work))?.id).toBe(
      environment.id,
    )
    expect((await world.context.store.environments.liveByWork(world.codebase.id, alias))?.id).toBe(environment.id)
    expect(await world.context.store.environments.liveByWork(world.codebase.id, toWork('issue', '43'))).toBeUndefined()
    expect((await world.context.store.environments.live(world.codebase.id)).map(({ id }) => id)).toEqual([
      environment.id,
    ])
  })

  test('the limit is an answer with its numbers, and makes nothing', async () => {
    await using world = await open({ settings: { worktreesPerCodebase: 1 } })
    await created(world, 1)
    expect(await world.provider.create(request(world, 2))).toEqual({ outcome: 'limit', active: 1, limit: 1 })
    expect(await world.context.store.environments.live(world.codebase.id)).toHaveLength(1)
  })

  test('destroys a clean one, whose place and name are free again', async () => {
    await using world = await open()
    const { environment } = await created(world, 42)
    const gone = await world.provider.destroy(environment, { trigger: 'command' })
    expect(gone).toMatchObject({ outcome: 'removed', environment: { status: 'removed' } })
    expect(existsSync(environment.path)).toBe(false)
    expect(await world.context.store.environments.liveByWork(world.codebase.id, environment.work)).toBeUndefined()
    expect((await created(world, 42)).environment.id).not.toBe(environment.id)
  })

  test('refuses to destroy work and says why, and by force keeps it for a restore', async () => {
    await using world = await open()
    const { environment } = await created(world, 42, { aliases: [toWork('pr', '99')] })
    member.write(environment.path, 'draft', 'precious')
    const before = member.read(world, environment.path, 'draft')
    const refused = await world.provider.destroy(environment, { trigger: 'command' })
    if (refused.outcome !== 'refused') throw new Error(refused.outcome)
    expect(
      refused.reasons.every(({ gate, answer, fact }) => gate !== undefined && answer !== 'yes' && fact !== undefined),
    ).toBe(true)
    expect(await presenceOf(world.context, world.codebase, environment)).toMatchObject({ state: 'present' })
    const gone = await world.provider.destroy(environment, { trigger: 'command', force: true })
    if (gone.outcome !== 'removed' || gone.restorePoint === undefined) throw new Error(JSON.stringify(gone))
    const back = (await world.provider.restore(gone.restorePoint)).environment
    expect(back).toMatchObject({ status: 'active', work: environment.work })
    expect(member.read(world, back.path, 'draft')).toBe(before)
    expect((await world.context.store.environments.liveByWork(world.codebase.id, toWork('pr', '99')))?.id).toBe(back.id)
  })

  test('a dry run answers without doing', async () => {
    await using world = await open()
    const { environment } = await created(world, 42)
    const answer = await world.provider.destroy(environment, { trigger: 'command', dryRun: true })
    expect(answer.outcome).toBe('would-remove')
    expect(await presenceOf(world.context, world.codebase, environment)).toMatchObject({ state: 'present' })
    expect(await world.context.store.restorePoints.list(world.codebase.id)).toEqual([])
  })

  test('lets go of the conversations of what it destroyed and names them', async () => {
    await using world = await open()
    const { environment } = await created(world, 42)
    const talk = await conversation(world, { environmentId: environment.id })
    const gone = await world.provider.destroy(environment, { trigger: 'command', force: true })
    expect(gone.outcome === 'removed' && gone.detachedConversations.map(({ id }) => id)).toEqual([talk.id])
  })

  test('says whether it can adopt, and refuses if it cannot', async () => {
    await using world = await open()
    const provider = await providerOf(world.context, { provider: member.name })
    expect(provider.can.adopt).toBe(member.foreign !== undefined)
    const { path } = (await created(world, 1)).environment
    const asked = { createdBy: 'test', aliases: [] }
    const answer = await provider.adopt(world.context, world.codebase, path, asked).catch((error: unknown) => error)
    const expected = provider.can.adopt ? { path, owned: true } : { code: 'not-adoptable' }
    expect(answer).toMatchObject(expected)
  })

  test.each(member.foreign === undefined ? [] : [member.foreign])(
    "adopts a person's place, and destroying it lets go and leaves it",
    async (foreign) => {
      await using world = await open()
      const path = foreign(world)
      const environment = await world.provider.adopt(world.codebase, path, {
        work: toWork('issue', '42'),
        createdBy: 'test',
        aliases: [],
      })
      expect(environment).toMatchObject({ owned: false, status: 'active', path })
      const again = await world.provider.adopt(world.codebase, path, { createdBy: 'test', aliases: [] })
      expect(again.id).toBe(environment.id)
      const answer = await world.provider.destroy(environment, { trigger: 'command', force: true })
      expect(answer).toMatchObject({ outcome: 'released', environment: { status: 'released' } })
      expect(existsSync(path)).toBe(true)
    },
  )

  test('adopts nothing that is not such a place', async () => {
    await using world = await open()
    for (const path of [world.repo.path, world.box.home, world.box.path('nowhere')]) {
      await expect(
        world.provider.adopt(world.codebase, path, { createdBy: 'test', aliases: [] }),
      ).rejects.toMatchObject({ code: 'not-adoptable' })
    }
    expect(await world.context.store.environments.live(world.codebase.id)).toEqual([])
  })

  test('destroying or getting what is gone says so', async () => {
    await using world = await open()
    const { environment } = await created(world, 42)
    await world.provider.destroy(environment, { trigger: 'command' })
    await expect(world.provider.destroy(environment, { trigger: 'command' })).rejects.toMatchObject({
      code: 'not-found',
    })
    expect(await presenceOf(world.context, world.codebase, environment)).toEqual({ state: 'missing' })
  })

  test('a creation that was cancelled leaves nothing', async () => {
    await using world = await open()
    const cancelled = world.provider.create(request(world, 42, { signal: AbortSignal.abort() }))
    await expect(cancelled).rejects.toMatchObject({ code: 'cancelled' })
    expect(await world.context.store.environments.live(world.codebase.id)).toEqual([])
    expect(await world.context.store.journal.open(world.context.host)).toEqual([])
  })
})
