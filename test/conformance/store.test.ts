import { describe, expect, test } from 'vitest'
import type { Codebase } from '../../src/domain/environment.ts'
import { toBranchName, toCodebaseId, toEnvironmentId } from '../../src/domain/names.ts'
import type { RestorePoint } from '../../src/domain/removal/restore-point.ts'
import type { Conversation, JournalEntry, Lease, Spare } from '../../src/store/store.ts'
import { type EngineUnderTest, onEachEngine } from '../helpers/store-engines.ts'
import { aCodebase, anEnvironment, aSha } from '../helpers/store-values.ts'
import { up as dropMergeAnswers } from '../../src/store/migrations/0004-merge-answers.ts'

const one = toCodebaseId('codebase-one')
const nobody = toEnvironmentId('nobody')

const withCodebase = async (engine: EngineUnderTest): ReturnType<EngineUnderTest['open']> => {
  const store = await engine.open(await engine.fresh())
  await store.codebases.insert(aCodebase())
  return store
}

onEachEngine((engine) => {
  describe('codebases', () => {
    const full = aCodebase('full', {
      checkoutPath: '/repos/full',
      remote: 'origin',
      remoteUrl: 'git@example.org:o/full.git',
      baseBranch: 'trunk',
      base: 'develop',
      github: 'o/full',
      defaultAgent: 'demo',
      cloned: true,
      trustedConfig: 'abc',
      configCommit: 'c'.repeat(40),
      configText: 'worktree: {}\n',
      fetchedAt: 1_800_000_000_000,
    })

    test('come back as they were put in, with and without their optional parts', async () => {
      const store = await withCodebase(engine)
      expect(store.engine).toBe(engine.name)
      expect(await store.codebases.insert(full)).toBe(true)
      expect(await store.codebases.get(full.id)).toStrictEqual(full)
      expect(await store.codebases.get(one)).toStrictEqual(aCodebase())
      expect(await store.codebases.byName('host-a', 'full')).toStrictEqual(full)
      expect(await store.codebases.byRepoPath('host-a', full.repoPath)).toStrictEqual(full)
      expect(await store.codebases.byName('host-b', 'full')).toBeUndefined()
      expect(await store.codebases.byRepoPath('host-b', full.repoPath)).toBeUndefined()
      expect(await store.codebases.get(toCodebaseId('nobody'))).toBeUndefined()
      expect((await store.codebases.list('host-a')).map((codebase) => codebase.name)).toEqual(['full', 'one'])
      expect(await store.codebases.list('host-b')).toEqual([])
    })

    test('have one name and one repository per host', async () => {
      const store = await withCodebase(engine)
      const insert = (codebase: Codebase) => store.codebases.insert(codebase)
      expect(await insert(aCodebase('two', { name: 'one' }))).toBe(false)
      expect(await insert(aCodebase('two', { repoPath: aCodebase().repoPath }))).toBe(false)
      expect(await insert(aCodebase('two', { host: 'host-b', name: 'one', repoPath: aCodebase().repoPath }))).toBe(true)
    })

    test('are patched: an absent key leaves alone, an undefined one clears', async () => {
      const store = await withCodebase(engine)
      await store.codebases.insert(full)
      await store.codebases.update(full.id, { remote: undefined, fetchedAt: 1_900_000_000_000 })
      await store.codebases.update(full.id, {})
      expect(await store.codebases.get(full.id)).toStrictEqual({
        ...full,
        remote: undefined,
        fetchedAt: 1_900_000_000_000,
      })
    })

    test('cannot be removed while an environment lives or a spare waits, and take the dead rows along', async () => {
      const store = await withCodebase(engine)
      const { id } = anEnvironment('a')
      await store.environments.insert(anEnvironment('a'), undefined)
      await expect(store.codebases.remove(one)).rejects.toMatchObject({ code: 'codebase-in-use' })
      await store.environments.transition(id, 'creating', 'removed')
      await store.spares.insert(aSpare('s'))
      await expect(store.codebases.remove(one)).rejects.toMatchObject({ code: 'codebase-in-use' })
      await store.spares.claim('s')
      await store.events.append(anEvent('e', 1))
      await store.restorePoints.insert(aRestorePoint('r', {}))
      await store.codebases.remove(one)
      expect(await store.codebases.get(one)).toBeUndefined()
      expect(await store.environments.get(id)).toBeUndefined()
      // What outlives it: the history, and what is still to be cleared from the disk.
      expect(await store.events.recent({ limit: 9 })).toHaveLength(1)
      expect(await store.restorePoints.get('r')).toBeDefined()
    })
  })

  describe('conversations', () => {
    const aConversation = (key: string, change: Partial<Conversation> = {}): Conversation => ({
      id: `conversation-${key}`,
      platform: 'slack',
      conversationId: key,
      codebaseId: undefined,
      environmentId: undefined,
      persistent: false,
      agent: undefined,
      lastActivityAt: 1,
      closedAt: undefined,
      createdAt: 1,
      ...change,
    })

    test('are created once and then found again', async () => {
      const store = await withCodebase(engine)
      const first = aConversation('c', { codebaseId: one, persistent: true, closedAt: 5 })
      expect(await store.conversations.ensure(first)).toStrictEqual(first)
      expect(await store.conversations.ensure(aConversation('c', { id: 'other' }))).toStrictEqual(first)
      expect(await store.conversations.find('slack', 'c')).toStrictEqual(first)
      expect(await store.conversations.find('discord', 'c')).toBeUndefined()
    })

    test('asked for at the same time become one', async () => {
      const store = await withCodebase(engine)
      const answers = await Promise.all(
        ['x', 'y', 'z'].map((id) => store.conversations.ensure(aConversation('c', { id }))),
      )
      expect(new Set(answers.map((answer) => answer.id)).size).toBe(1)
    })

    test('point at environments and are let go of together', async () => {
      const store = await withCodebase(engine)
      const { id } = anEnvironment('a')
      await store.environments.insert(anEnvironment('a'), undefined)
      for (const key of ['c1', 'c2', 'c3']) await store.conversations.ensure(aConversation(key))
      await store.conversations.update('conversation-c1', { environmentId: id, lastActivityAt: 7 })
      await store.conversations.update('conversation-c2', { environmentId: id, codebaseId: one, closedAt: 9 })
      await store.conversations.update('conversation-c2', {})
      expect(await store.conversations.ofEnvironments([])).toEqual([])
      expect(keys(await store.conversations.ofEnvironments([id, nobody]))).toEqual(['c1', 'c2'])
      const detachedConversations = await store.conversations.detachEnvironment(id)
      expect(keys(detachedConversations)).toEqual(['c1', 'c2'])
      expect(detachedConversations.every((conversation) => conversation.environmentId === id)).toBe(true)
      expect(await store.conversations.ofEnvironments([id])).toEqual([])
      expect(await store.conversations.detachEnvironment(id)).toEqual([])
      expect(await store.conversations.find('slack', 'c2')).toMatchObject({ codebaseId: one, closedAt: 9 })
      await expect(store.conversations.update('conversation-c1', { environmentId: nobody })).rejects.toThrow(
        /foreign key/i,
      )
    })

    const keys = (found: Conversation[]) => found.map((conversation) => conversation.conversationId).sort()
  })

  test('restore points are listed newest first, found by expiry, and removed', async () => {
    const store = await withCodebase(engine)
    for (const [key, createdAt] of [
      ['r1', 10],
      ['r3', 30],
      ['r2', 20],
    ] as const) {
      await store.restorePoints.insert(aRestorePoint(key, { createdAt, expiresAt: createdAt + 5 }))
    }
    await store.restorePoints.insert(aRestorePoint('far', { host: 'host-b', createdAt: 1, expiresAt: 1 }))
    expect(await store.restorePoints.get('r1')).toEqual(aRestorePoint('r1', { createdAt: 10, expiresAt: 15 }))
    expect((await store.restorePoints.list(one)).map((point) => point.id)).toEqual(['r3', 'r2', 'r1', 'far'])
    const expired = async (now: number) => (await store.restorePoints.expired('host-a', now)).map(({ id }) => id)
    expect(await expired(20)).toEqual([])
    expect(await expired(25)).toEqual(['r1', 'r2'])
    await store.restorePoints.remove('r3')
    expect(await store.restorePoints.get('r3')).toBeUndefined()
  })

  test('restore points expire by the time that was watched: a clock that jumps adds a day at most, and never takes any back', async () => {
    const store = await withCodebase(engine)
    const day = 24 * 60 * 60 * 1000
    const expired = async (at: number) => (await store.restorePoints.expired('host-a', at * day)).map(({ id }) => id)
    const point = (createdAt: number) => ({ createdAt: createdAt * day, expiresAt: (createdAt + 3) * day })
    await store.restorePoints.watch('host-a', 1000 * day)
    await store.restorePoints.insert(aRestorePoint('long ago', point(-5000)))
    await store.restorePoints.watch('host-b', 9000 * day)
    const looks = [1000, 1001, 9000, 1001.5, 1002, 1002.49, 1002.5, 1003]
    const found: (readonly string[])[] = []
    for (const at of looks) found.push(await expired(at))
    expect(found).toEqual([[], [], [], [], [], [], ['long ago'], ['long ago']])
    await store.restorePoints.insert(aRestorePoint('late', point(1000)))
    expect(await expired(1003)).toEqual(['long ago'])
  })

  test('leases are found by environment and by host, and are nothing without their environment', async () => {
    const store = await withCodebase(engine)
    const { id } = anEnvironment('a')
    await store.environments.insert(anEnvironment('a'), undefined)
    const lease = (key: string, environmentId = id): Lease => ({
      id: key,
      host: 'host-a',
      environmentId,
      purpose: 'agent',
      holder: { pid: 4_000_000_000, startTime: 'boot:123' },
      createdAt: 3,
    })
    await store.leases.insert(lease('l1'))
    await store.leases.insert(lease('l2'))
    await expect(store.leases.insert(lease('l3', nobody))).rejects.toThrow(/foreign key/i)
    expect(await store.leases.ofEnvironments([])).toEqual([])
    expect(await store.leases.ofEnvironments([id, nobody])).toStrictEqual([lease('l1'), lease('l2')])
    expect(await store.leases.all('host-a')).toHaveLength(2)
    expect(await store.leases.all('host-b')).toEqual([])
    await store.leases.remove('l1')
    expect(await store.leases.all('host-a')).toStrictEqual([lease('l2')])
  })

  describe('the journal', () => {
    const entry = (key: string, change: Partial<JournalEntry> = {}): JournalEntry => ({
      id: key,
      host: 'host-a',
      codebaseId: undefined,
      environmentId: undefined,
      kind: 'create',
      step: 'begun',
      data: { path: '/trees/a', deep: { list: [1, null, '☃'] } },
      holder: { pid: 7, startTime: 't' },
      child: undefined,
      startedAt: 1,
      ...change,
    })

    test('keeps an intent, moves it on, merges what is known, and forgets it when it is done', async () => {
      const { journal } = await withCodebase(engine)
      const begun = entry('j', { codebaseId: one, environmentId: nobody, child: { pid: 1, startTime: 'c' } })
      await journal.begin(begun)
      expect(await journal.get('j')).toStrictEqual(begun)
      await journal.advance('j', { step: 'added', data: { sha: 'x', path: '/trees/b' } })
      await journal.advance('j', {})
      const added = { ...begun, step: 'added', data: { ...begun.data, sha: 'x', path: '/trees/b' } }
      expect(await journal.get('j')).toStrictEqual(added)
      await journal.advance('j', { child: { pid: 2, startTime: 'd' } })
      expect((await journal.get('j'))?.child).toEqual({ pid: 2, startTime: 'd' })
      await journal.advance('j', { child: null })
      expect(await journal.get('j')).toStrictEqual({ ...added, child: undefined })
      await journal.end('j')
      expect(await journal.get('j')).toBeUndefined()
    })

    test('lists what is open on a host, oldest first, for all codebases or one', async () => {
      const { journal } = await withCodebase(engine)
      await journal.begin(entry('late', { startedAt: 9, codebaseId: one }))
      await journal.begin(entry('early', { startedAt: 2 }))
      await journal.begin(entry('far', { host: 'host-b' }))
      expect((await journal.open('host-a')).map((open) => open.id)).toEqual(['early', 'late'])
      expect((await journal.open('host-a', one)).map((open) => open.id)).toEqual(['late'])
    })

    test('refuses to move an entry on that is gone', async () => {
      const { journal } = await withCodebase(engine)
      await expect(journal.advance('gone', { step: 'x' })).rejects.toMatchObject({ code: 'store-failed' })
    })

    test('loses nothing when two advance the same entry at once', async () => {
      const { journal } = await withCodebase(engine)
      await journal.begin(entry('j', { data: {} }))
      const names = Array.from({ length: 8 }, (_, index) => `k${index}`)
      await Promise.all(names.map((name) => journal.advance('j', { data: { [name]: true } })))
      expect(Object.keys((await journal.get('j'))?.data ?? {}).sort()).toEqual(names)
    })
  })

  test('a spare is claimed by exactly one', async () => {
    const { spares } = await withCodebase(engine)
    await spares.insert(aSpare('s'))
    expect(await spares.list(one)).toStrictEqual([aSpare('s')])
    await expect(spares.insert({ ...aSpare('t'), path: aSpare('s').path })).rejects.toThrow(/unique/i)
    const claims = await Promise.all(Array.from({ length: 8 }, () => spares.claim('s')))
    expect(claims.filter(Boolean)).toHaveLength(1)
    expect(await spares.list(one)).toEqual([])
  })

  test('a port belongs to one environment of a host until it is released', async () => {
    const store = await withCodebase(engine)
    for (const key of ['a', 'b']) await store.environments.insert(anEnvironment(key), undefined)
    const [a, b] = [anEnvironment('a').id, anEnvironment('b').id]
    expect(await store.ports.lease('host-a', 4001, a, 'web', 1)).toBe(true)
    expect(await store.ports.lease('host-a', 4001, a, 'web', 2)).toBe(true)
    expect(await store.ports.lease('host-a', 4001, b, 'web', 3)).toBe(false)
    expect(await store.ports.lease('host-b', 4001, b, 'web', 3)).toBe(true)
    expect(await store.ports.lease('host-a', 4000, a, 'api', 4)).toBe(true)
    expect(await store.ports.ofEnvironment(a)).toEqual([
      { name: 'api', port: 4000 },
      { name: 'web', port: 4001 },
    ])
    expect(await store.ports.taken('host-a')).toEqual([4000, 4001])
    await store.ports.release(a)
    expect(await store.ports.ofEnvironment(a)).toEqual([])
    expect(await store.ports.lease('host-a', 4001, b, 'web', 5)).toBe(true)
    await store.environments.deleteCreating(b)
    expect(await store.ports.taken('host-a')).toEqual([])
  })

  test('merge answers are kept per question, more than one statement can hold, and dropped with their base', async () => {
    const { mergeAnswers } = await withCodebase(engine)
    const tip = (index: number) => aSha(index.toString(16).padStart(5, '0')[4] ?? '0')
    const question = { tip: aSha('1'), base: aSha('b'), start: undefined }
    const merged = { value: 'yes', proof: 'squash', base: 'main', commit: aSha('e') } as const
    await mergeAnswers.save(one, [{ question, answer: { value: 'no', own: 2 } }], 1)
    await mergeAnswers.save(one, [{ question, answer: merged }], 2)
    await mergeAnswers.save(one, [], 2)
    // As earlier versions kept it: asked for again.
    const old = { value: 'yes', proof: 'squash', detail: 'in abc' } as unknown as typeof merged
    await mergeAnswers.save(one, [{ question: { ...question, tip: aSha('9') }, answer: old }], 2)
    expect(await mergeAnswers.find(one, aSha('b'))).toStrictEqual([{ question, answer: merged }])
    const many = Array.from({ length: 1200 }, (_, index) => ({
      question: {
        tip: tip(index),
        base: aSha('c'),
        start: toShaOf(index),
      },
      answer: { value: 'empty' } as const,
    }))
    await mergeAnswers.save(one, many, 3)
    expect(await mergeAnswers.find(one, aSha('c'))).toHaveLength(1200)
    await mergeAnswers.keepOnly(one, aSha('c'))
    expect(await mergeAnswers.find(one, aSha('b'))).toEqual([])
    expect(await mergeAnswers.find(one, aSha('c'))).toHaveLength(1200)
  })

  test('merged pull requests are found by their heads, more than one statement can hold, until they are old', async () => {
    const { mergedPullRequests: merged } = await withCodebase(engine)
    const pull = (number: number) => ({
      forge: 'GitHub',
      repository: 'o/one',
      number,
      headSha: toShaOf(number),
      mergeCommit: aSha('e'),
      baseBranch: 'main',
    })
    const many = Array.from({ length: 1200 }, (_, n) => pull(n))
    await merged.save(one, many, 5)
    await merged.save(one, [pull(7), { ...pull(8), headSha: toShaOf(7) }], 6)
    await merged.save(one, [], 6)
    expect(await merged.find(one, [toShaOf(7), aSha('f')])).toStrictEqual([
      pull(7),
      { ...pull(8), headSha: toShaOf(7) },
    ])
    expect(
      await merged.find(
        one,
        many.map(({ headSha }) => headSha),
      ),
    ).toHaveLength(1201)
    expect(await merged.find(toCodebaseId('another'), [toShaOf(7)])).toEqual([])
    expect(await merged.find(one, [])).toEqual([])
    await merged.deleteBefore(one, 6)
    expect(await merged.find(one, [toShaOf(7)])).toStrictEqual([{ ...pull(8), headSha: toShaOf(7) }])
  })

  test('merge answers from before the stricter proofs are forgotten by the upgrade', async () => {
    const store = await withCodebase(engine)
    const question = { tip: aSha('1'), base: aSha('b'), start: undefined }
    await store.mergeAnswers.save(one, [{ question, answer: { value: 'yes', proof: 'squash', base: 'main' } }], 1)
    await store.database.db.transaction().execute(dropMergeAnswers)
    expect(await store.mergeAnswers.find(one, aSha('b'))).toEqual([])
  })

  test('events are told newest first, by kind and by codebase, in the order of writing within a millisecond', async () => {
    const { events } = await withCodebase(engine)
    await events.append(anEvent('z', 5))
    await events.append(anEvent('a', 5))
    await events.append({ ...anEvent('m', 9), kind: 'other', codebaseId: undefined, environmentId: undefined })
    const ids = async (filter: Parameters<typeof events.recent>[0]) =>
      (await events.recent(filter)).map((event) => event.id)
    expect(await ids({ limit: 9 })).toEqual(['m', 'a', 'z'])
    expect(await ids({ limit: 2 })).toEqual(['m', 'a'])
    expect(await ids({ kind: 'created', limit: 9 })).toEqual(['a', 'z'])
    expect(await ids({ codebaseId: one, limit: 1 })).toEqual(['a'])
    expect((await events.recent({ kind: 'created', limit: 1 }))[0]).toStrictEqual(anEvent('a', 5))
  })
})

const toShaOf = (index: number) => index.toString(16).padStart(40, '0') as ReturnType<typeof aSha>

const aSpare = (id: string): Spare => ({
  id,
  host: 'host-a',
  codebaseId: one,
  path: `/spares/${id}`,
  adminName: `spare-${id}`,
  sha: aSha('a'),
  createdAt: 1,
})

const anEvent = (id: string, at: number) => ({
  id,
  at,
  kind: 'created',
  codebaseId: one,
  environmentId: anEnvironment('a').id,
  data: { by: 'cli' },
})

const aRestorePoint = (id: string, change: Partial<RestorePoint>): RestorePoint => ({
  id,
  host: 'host-a',
  codebaseId: one,
  environmentId: anEnvironment('a').id,
  createdAt: 1,
  expiresAt: 2,
  ref: `refs/coppice/restore/${id}`,
  commit: aSha('c'),
  contents: {
    environment: anEnvironment('a', { branch: toBranchName('größe') }),
    aliases: [{ type: 'issue', id: '42' }],
    tip: undefined,
    converted: [],
    modes: {},
    head: { branch: undefined, sha: aSha('d') },
    dirty: true,
    ignored: ['.env'],
    nested: [],
    leftOut: [{ path: 'big\u0000.bin', reason: 'too large' }],
  },
  ...change,
})
