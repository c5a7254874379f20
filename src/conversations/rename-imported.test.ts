import { expect, test } from 'vitest'
import { makeWorld } from '../../test/helpers/world.ts'
import { conversation, issue } from '../../test/isolation/scene.ts'
import { toWork } from '../domain/work.ts'
import { knownPlatforms } from '../platforms/capabilities.ts'
import type { Store } from '../store/store.ts'
import { renameImported } from './rename-imported.ts'

/** The process dies before the second of the two writes, inside a transaction or outside. */
const dying = (store: Store): Store => {
  let writes = 0
  const counted = <T>(write: () => Promise<T>): Promise<T> => {
    writes += 1
    return writes === 2 ? Promise.reject(new Error('died')) : write()
  }
  const wrapped = (one: Store): Store => ({
    ...one,
    conversations: {
      ...one.conversations,
      renameImported: (...given) => counted(() => one.conversations.renameImported(...given)),
    },
    environments: { ...one.environments, addAlias: (...given) => counted(() => one.environments.addAlias(...given)) },
    transaction: (work) => one.transaction((inside) => work(wrapped(inside))),
  })
  return wrapped(store)
}

test('an imported thread gets its full ID together with its work, or neither', async () => {
  await using world = await makeWorld()
  const { context, codebase } = world
  const { store } = context
  const { id: environmentId } = await issue(world, 42)
  const known = { platform: 'discord', conversationId: '900', importedAs: '900', environmentId }
  const { id } = await conversation(world, known)
  const full = { platform: 'discord', conversationId: '300:900' }
  const both = async () => [
    (await store.conversations.get(id))?.conversationId,
    (await store.environments.liveByWork(codebase.id, toWork('thread', '300:900')))?.id,
  ]
  const dead = renameImported({ ...context, store: dying(store) }, knownPlatforms, full)
  await expect(dead).rejects.toThrow('died')
  expect(await both()).toEqual(['900', undefined])
  await renameImported(context, knownPlatforms, full)
  expect(await both()).toEqual(['300:900', environmentId])
})

test('an imported thread that already has a conversation under its full ID keeps its own', async () => {
  await using world = await makeWorld()
  const { context, codebase } = world
  const { id: environmentId } = await issue(world, 42)
  await conversation(world, { platform: 'discord', conversationId: '900', importedAs: '900', environmentId })
  const full = { platform: 'discord', conversationId: '300:900' }
  await conversation(world, full)
  await renameImported(context, knownPlatforms, full)
  expect((await context.store.conversations.findImported('discord', '900'))?.conversationId).toBe('900')
  expect(await context.store.environments.liveByWork(codebase.id, toWork('thread', '300:900'))).toBeUndefined()
})
