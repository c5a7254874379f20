import { expect, test } from 'vitest'
import { makeWorld, type World } from '../../test/helpers/world.ts'
import { issue, resolved } from '../../test/isolation/scene.ts'
import { toCodebaseId } from '../domain/names.ts'
import { knownPlatforms } from '../platforms/capabilities.ts'
import type { Answered } from './command.ts'
import { asProgram } from './views/view.ts'
import { worktreeLink } from './worktree-link.ts'
import { noFleet } from '../../test/helpers/no-fleet.ts'

const view = { ...asProgram, now: 0 }

const link = (world: World, ref: string, conversation: string): Promise<Answered> =>
  worktreeLink.execute({
    words: [ref],
    values: { conversation },
    codebase: undefined,
    cwd: world.repo.path,
    signal: new AbortController().signal,
    open: async () => ({
      context: world.context,
      environments: async () => world.provider,
      fleet: noFleet,
      keepSpares: () => undefined,
      platforms: async () => knownPlatforms,
      databaseName: 'SQLite',
    }),
    notice: () => undefined,
  })

test('a linked conversation is persistent where its platform says so', async () => {
  await using world = await makeWorld()
  await issue(world, 42)
  const persistent = async (platform: string): Promise<boolean | undefined> => {
    await link(world, 'issue-42', `${platform}:5:6`)
    return (await world.context.store.conversations.find(platform, '5:6'))?.persistent
  }
  expect(await persistent('telegram')).toBe(true)
  expect(await persistent('slack')).toBe(false)
  // So the worktree is never cleaned up, not even when its issue is worked on elsewhere.
  const { codebase, context } = world
  await context.store.codebases.update(codebase.id, { github: 'acme/app' })
  const shared = (await resolved(world, 'thread', 'C1:1')).environment
  expect((await link(world, shared.id, 'github:acme/app#42')).text(view)).toContain(
    'Its previous worktree issue-42 keeps its files, and stays until somebody removes it.',
  )
})

test('a conversation on an unknown platform is refused, with the platforms there are', async () => {
  await using world = await makeWorld()
  await issue(world, 42)
  const refused = link(world, 'issue-42', 'slak:5:6')
  await expect(refused).rejects.toMatchObject({ code: 'usage', message: 'unknown platform "slak"' })
  const names = 'cli, discord, github, slack, telegram, test, web'
  await expect(refused).rejects.toMatchObject({ remedy: `usage: --conversation <platform:id>. Platforms: ${names}` })
  expect(await world.context.store.conversations.find('slak', '5:6')).toBeUndefined()
})

test('from the command line, the issue of the conversation moves along; of another repository, it does not', async () => {
  await using world = await makeWorld()
  const { context, codebase } = world
  await context.store.codebases.update(codebase.id, { github: 'acme/app' })
  const shared = (await resolved(world, 'thread', 'C1:1')).environment
  const before = await issue(world, 42)
  const linked = async (conversation: string) => (await link(world, shared.id, conversation)).json(view)
  expect(await linked('slack:C1:1')).toMatchObject({ linked: null })
  expect(await linked('github:other/app#42')).toMatchObject({ linked: null })
  expect(await linked('github:acme/app#43')).toMatchObject({ linked: null })
  const answer = await link(world, shared.id, 'github:Acme/app#42')
  expect(answer.json(view)).toMatchObject({
    id: shared.id,
    linked: {
      work: { type: 'issue', id: '42' },
      outcome: 'moved',
      from: { id: before.id, branch: 'issue-42', work: { type: 'task', id: 'issue-42' } },
    },
  })
  expect(answer.text(view)).toContain('Issue #42 now uses')
  expect((await issue(world, 42)).id).toBe(shared.id)
  expect(await linked('github:acme/app#42')).toMatchObject({ linked: { outcome: 'already-there' } })

  // One that has spoken says itself what it is about; its number is its own repository's.
  const now = { agent: undefined, lastActivityAt: 1, closedAt: undefined, createdAt: 1, persistent: false }
  const known = { ...now, platform: 'web', environmentId: undefined, work: { type: 'issue', id: '42' } } as const
  await context.store.conversations.ensure({ ...known, id: 'c1', conversationId: '1', codebaseId: codebase.id })
  const back = (await link(world, before.id, 'web:1')).json(view)
  expect(back).toMatchObject({ linked: { outcome: 'moved', from: { id: shared.id, work: { type: 'thread' } } } })
  const other = { ...codebase, id: toCodebaseId('other'), name: 'other', repoPath: '/nowhere' }
  await context.store.codebases.insert(other)
  await context.store.conversations.ensure({ ...known, id: 'c2', conversationId: '2', codebaseId: other.id })
  expect(await linked('web:2')).toMatchObject({ linked: null })
  // It belongs to this repository now, but its number is still the other one's.
  expect(await linked('web:2')).toMatchObject({ linked: null })
  await context.store.conversations.ensure({ ...known, id: 'c3', conversationId: '3', codebaseId: other.id })
  await context.store.codebases.remove(other.id)
  expect(await linked('web:3'), 'of a repository that is gone').toMatchObject({ linked: null })
  expect((await issue(world, 42)).id).toBe(before.id)
})
