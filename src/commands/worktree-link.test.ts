import { expect, test } from 'vitest'
import { makeWorld } from '../../test/helpers/world.ts'
import { issue } from '../../test/isolation/scene.ts'
import { knownPlatforms } from '../platforms/capabilities.ts'
import { worktreeLink } from './worktree-link.ts'

test('a linked conversation is persistent where its platform says so', async () => {
  await using world = await makeWorld()
  const { context, provider, repo } = world
  await issue(world, 42)
  const link = (conversation: string): Promise<unknown> =>
    worktreeLink.execute({
      words: ['issue-42'],
      values: { conversation },
      codebase: undefined,
      cwd: repo.path,
      signal: new AbortController().signal,
      open: async () => ({
        context,
        environments: async () => provider,
        keepSpares: () => undefined,
        platforms: async () => knownPlatforms,
        databaseName: 'SQLite',
      }),
      notice: () => undefined,
    })
  const persistent = async (platform: string): Promise<boolean | undefined> => {
    await link(`${platform}:5:6`)
    return (await context.store.conversations.find(platform, '5:6'))?.persistent
  }
  expect(await persistent('telegram')).toBe(true)
  expect(await persistent('slack')).toBe(false)
  expect(await persistent('unheard-of')).toBe(false)
})
