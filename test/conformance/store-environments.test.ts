import { describe, expect, test } from 'vitest'
import { environmentStatuses, type EnvironmentStatus } from '../../src/domain/environment.ts'
import { toBranchName, toCodebaseId, toEnvironmentId } from '../../src/domain/names.ts'
import type { Store } from '../../src/store/store.ts'
import { type EngineUnderTest, onEachEngine } from '../helpers/store-engines.ts'
import { aCodebase, anEnvironment, aSha } from '../helpers/store-values.ts'

const one = toCodebaseId('codebase-one')
const two = toCodebaseId('codebase-two')
const nobody = toEnvironmentId('nobody')
const issue = { type: 'issue', id: '42' } as const
const a = anEnvironment('a')

const withTwoCodebases = async (engine: EngineUnderTest): Promise<Store> => {
  const store = await engine.open(await engine.fresh())
  await store.codebases.insert(aCodebase())
  await store.codebases.insert(aCodebase('two'))
  return store
}

onEachEngine((engine) => {
  describe('an environment', () => {
    test('comes back as it was put in, with and without its optional parts', async () => {
      const { environments } = await withTwoCodebases(engine)
      const full = anEnvironment('full', {
        startSha: aSha('a'),
        adminName: 'full1',
        baseBranch: 'trunk',
        trust: 'lapsed',
        vouchedSha: aSha('b'),
        vouchedLog: '0:',
        removedTip: aSha('c'),
        owned: false,
        prNumber: 9_999_999_999,
        prBranch: 'feature/x',
      })
      expect(await environments.insert(full, undefined)).toEqual({ outcome: 'inserted' })
      expect(await environments.insert(a, undefined)).toEqual({ outcome: 'inserted' })
      expect(await environments.get(full.id)).toStrictEqual(full)
      expect(await environments.get(a.id)).toStrictEqual(a)
      expect(await environments.liveByWork(one, a.work)).toStrictEqual(a)
      expect(await environments.liveByBranch(one, a.branch)).toStrictEqual(a)
      expect(await environments.liveByPath('host-a', a.path)).toStrictEqual(a)
      expect(await environments.live(one)).toStrictEqual([a, full])
      expect(await environments.live(two)).toEqual([])
      expect(await environments.notOwn(one)).toStrictEqual([full])
      expect(await environments.lastRemoved(one, full.branch)).toBeUndefined()
      expect(await environments.transition(full.id, 'creating', 'removed')).toBe(true)
      expect(await environments.lastRemoved(one, full.branch)).toStrictEqual({ ...full, status: 'removed' })
      expect(await environments.lastRemoved(two, full.branch)).toBeUndefined()
    })

    test('is not found elsewhere', async () => {
      const { environments } = await withTwoCodebases(engine)
      await environments.insert(a, undefined)
      expect(await environments.get(nobody)).toBeUndefined()
      expect(await environments.liveByWork(two, a.work)).toBeUndefined()
      expect(await environments.liveByBranch(two, a.branch)).toBeUndefined()
      expect(await environments.liveByPath('host-b', a.path)).toBeUndefined()
    })

    test('needs a codebase', async () => {
      const { environments } = await withTwoCodebases(engine)
      const lost = anEnvironment('lost', { codebaseId: toCodebaseId('nobody') })
      await expect(environments.insert(lost, undefined)).rejects.toMatchObject({ code: 'not-found' })
    })

    test('is patched: an absent key leaves alone, an undefined one clears', async () => {
      const { environments } = await withTwoCodebases(engine)
      await environments.insert({ ...a, prBranch: 'x', baseBranch: 'trunk' }, undefined)
      await environments.update(a.id, { path: '/trees/moved', adminName: 'm', prBranch: undefined })
      await environments.update(a.id, {})
      const moved = { ...a, path: '/trees/moved', adminName: 'm', baseBranch: 'trunk' }
      expect(await environments.get(a.id)).toStrictEqual(moved)
    })

    test('cannot be patched onto the path of another live one', async () => {
      const { environments } = await withTwoCodebases(engine)
      await environments.insert(a, undefined)
      await environments.insert(anEnvironment('b'), undefined)
      await expect(environments.update(anEnvironment('b').id, { path: a.path })).rejects.toMatchObject({
        code: 'store-failed',
      })
    })
  })

  describe('among live environments', () => {
    const others = [
      ['work', anEnvironment('b', { work: a.work })],
      ['branch', anEnvironment('b', { branch: a.branch })],
      ['path', anEnvironment('b', { path: a.path })],
      ['path', anEnvironment('b', { path: a.path, codebaseId: two })],
    ] as const

    test.each(others)('a second one with the same %s is a conflict', async (on, other) => {
      const { environments } = await withTwoCodebases(engine)
      await environments.insert(a, undefined)
      expect(await environments.insert(other, undefined)).toEqual({ outcome: 'conflict', on })
      expect(await environments.get(other.id)).toBeUndefined()
    })

    test.each([
      ['codebase', anEnvironment('b', { work: a.work, branch: a.branch, codebaseId: two })],
      ['host', anEnvironment('b', { path: a.path, host: 'host-b' })],
    ])('the same on another %s is none', async (_, other) => {
      const { environments } = await withTwoCodebases(engine)
      await environments.insert(a, undefined)
      expect(await environments.insert(other, undefined)).toEqual({ outcome: 'inserted' })
    })

    test.each(environmentStatuses)(
      'one that is %s holds its work, branch and path only while it lives',
      async (status) => {
        const { environments } = await withTwoCodebases(engine)
        await environments.insert({ ...a, status }, undefined)
        const live = status !== 'removed' && status !== 'released'
        const outcome = await environments.insert({ ...a, id: toEnvironmentId('again'), createdAt: 2e12 }, undefined)
        expect(outcome).toEqual(live ? { outcome: 'conflict', on: 'work' } : { outcome: 'inserted' })
        expect((await environments.liveByWork(one, a.work))?.id).toBe(live ? a.id : 'again')
        expect(await environments.live(one)).toHaveLength(1)
      },
    )

    test('the same id twice is a fault, not a conflict', async () => {
      const { environments } = await withTwoCodebases(engine)
      await environments.insert(a, undefined)
      await expect(environments.insert(anEnvironment('b', { id: a.id }), undefined)).rejects.toMatchObject({
        code: 'store-failed',
      })
    })

    test('the indexes hold even against a writer who does not ask first', async () => {
      const store = await engine.open(await engine.fresh())
      await store.codebases.insert(aCodebase())
      await store.environments.insert(a, undefined)
      const row = await store.database.db.selectFrom('environments').selectAll().executeTakeFirstOrThrow()
      for (const free of [
        { branch: 'x', path: '/x' },
        { work_id: 'x', path: '/x' },
        { work_id: 'x', branch: 'x' },
      ]) {
        const second = { ...row, ...free, id: 'second' }
        await expect(store.database.db.insertInto('environments').values(second).execute()).rejects.toThrow(/unique/i)
      }
    })
  })

  describe('the limit', () => {
    test('counts creating, active and removing ones of the codebase', async () => {
      const { environments } = await withTwoCodebases(engine)
      const counted: EnvironmentStatus[] = ['creating', 'active', 'removing']
      for (const status of environmentStatuses) await environments.insert(anEnvironment(status, { status }), undefined)
      await environments.insert(anEnvironment('other', { codebaseId: two }), undefined)
      const outcome = await environments.insert(a, counted.length)
      expect(outcome).toEqual({ outcome: 'limit', active: counted.length })
      expect(await environments.insert(a, counted.length + 1)).toEqual({ outcome: 'inserted' })
    })

    test('is second to a conflict, since what is there already needs no room', async () => {
      const { environments } = await withTwoCodebases(engine)
      await environments.insert(a, undefined)
      expect(await environments.insert({ ...a, id: nobody }, 1)).toEqual({ outcome: 'conflict', on: 'work' })
      expect(await environments.insert(anEnvironment('b'), 0)).toEqual({ outcome: 'limit', active: 1 })
    })

    test('holds when many ask at once', async () => {
      const { environments } = await withTwoCodebases(engine)
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, index) => environments.insert(anEnvironment(`n${index}`), 5)),
      )
      expect(outcomes.filter((outcome) => outcome.outcome === 'inserted')).toHaveLength(5)
      expect(await environments.live(one)).toHaveLength(5)
    })
  })

  describe('a transition', () => {
    test('happens for exactly one of those who race for it', async () => {
      const { environments } = await withTwoCodebases(engine)
      await environments.insert({ ...a, status: 'active' }, undefined)
      const won = await Promise.all(
        Array.from({ length: 8 }, () => environments.transition(a.id, 'active', 'removing')),
      )
      expect(won.filter(Boolean)).toHaveLength(1)
      expect((await environments.get(a.id))?.status).toBe('removing')
    })

    test('carries its patch along, or leaves everything when it comes too late', async () => {
      const { environments } = await withTwoCodebases(engine)
      await environments.insert(a, undefined)
      expect(await environments.transition(a.id, 'creating', 'active', { adminName: 'x' })).toBe(true)
      expect(await environments.transition(a.id, 'creating', 'active', { adminName: 'y' })).toBe(false)
      expect(await environments.get(a.id)).toStrictEqual({ ...a, status: 'active', adminName: 'x' })
      expect(await environments.transition(nobody, 'active', 'missing')).toBe(false)
    })

    test('that the table does not know throws and changes nothing', async () => {
      const { environments } = await withTwoCodebases(engine)
      await environments.insert({ ...a, status: 'removed' }, undefined)
      await expect(environments.transition(a.id, 'removed', 'active')).rejects.toMatchObject({
        code: 'illegal-transition',
      })
      expect((await environments.get(a.id))?.status).toBe('removed')
    })

    test('only a creation is ever forgotten', async () => {
      const { environments } = await withTwoCodebases(engine)
      const active = anEnvironment('b', { status: 'active' })
      for (const environment of [a, active]) {
        await environments.insert(environment, undefined)
        await environments.deleteCreating(environment.id)
      }
      expect(await environments.get(a.id)).toBeUndefined()
      expect(await environments.get(active.id)).toStrictEqual(active)
    })
  })

  describe('an alias', () => {
    test('finds the environment like its own identity does, until it is dropped', async () => {
      const { environments } = await withTwoCodebases(engine)
      await environments.insert(a, undefined)
      expect(await environments.addAlias(a.id, one, issue, 1)).toBe(true)
      expect(await environments.addAlias(a.id, one, issue, 2)).toBe(true)
      expect(await environments.addAlias(a.id, one, a.work, 2)).toBe(true)
      expect((await environments.liveByWork(one, issue))?.id).toBe(a.id)
      expect(await environments.liveByWork(two, issue)).toBeUndefined()
      expect(await environments.aliases(a.id)).toEqual([issue])
      expect(await environments.aliasesOf([a.id, nobody])).toEqual(new Map([[a.id, [issue]]]))
      expect(await environments.aliasesOf([])).toEqual(new Map())
      await environments.dropAliases(a.id)
      expect(await environments.liveByWork(one, issue)).toBeUndefined()
      expect(await environments.aliases(a.id)).toEqual([])
    })

    test('is one environment’s: neither a second alias nor a new environment can have the same work', async () => {
      const { environments } = await withTwoCodebases(engine)
      const b = anEnvironment('b')
      await environments.insert(a, undefined)
      await environments.insert(b, undefined)
      await environments.addAlias(a.id, one, issue, 1)
      expect(await environments.addAlias(b.id, one, issue, 2)).toBe(false)
      expect(await environments.addAlias(b.id, one, a.work, 2)).toBe(false)
      expect(await environments.insert(anEnvironment('c', { work: issue }), undefined)).toEqual({
        outcome: 'conflict',
        on: 'work',
      })
    })

    test('of an environment that is gone holds nothing, even when nobody dropped it', async () => {
      const { environments } = await withTwoCodebases(engine)
      await environments.insert(a, undefined)
      await environments.addAlias(a.id, one, issue, 1)
      await environments.transition(a.id, 'creating', 'removed')
      expect(await environments.liveByWork(one, issue)).toBeUndefined()
      expect(await environments.addAlias(a.id, one, { type: 'pr', id: '1' }, 2)).toBe(false)
      const b = anEnvironment('b')
      await environments.insert(b, undefined)
      expect(await environments.addAlias(b.id, one, issue, 2)).toBe(true)
      expect((await environments.liveByWork(one, issue))?.id).toBe(b.id)
    })

    test('or a work of its own is moved: the environment that had it becomes a task, and keeps the rest', async () => {
      const { environments } = await withTwoCodebases(engine)
      const b = anEnvironment('b', { work: issue, branch: toBranchName('issue-42') })
      const pr = { type: 'pr', id: '99' } as const
      await environments.insert(a, undefined)
      await environments.insert(b, undefined)
      await environments.addAlias(b.id, one, pr, 1)
      const task = { type: 'task', id: 'issue-42' } as const
      const left = { ...b, work: task }
      expect(await environments.moveWork(a.id, one, issue, 2)).toEqual({ outcome: 'moved', from: left })
      expect(await environments.get(b.id)).toStrictEqual(left)
      expect((await environments.liveByWork(one, issue))?.id).toBe(a.id)
      for (const work of [pr, task]) expect((await environments.liveByWork(one, work))?.id).toBe(b.id)
      expect(await environments.moveWork(a.id, one, issue, 3)).toEqual({ outcome: 'already-there' })
      // An alias, and one that nobody has.
      expect(await environments.moveWork(b.id, one, issue, 4)).toEqual({ outcome: 'moved', from: a })
      expect((await environments.liveByWork(one, issue))?.id).toBe(b.id)
      expect(await environments.moveWork(b.id, one, { type: 'issue', id: '7' }, 5)).toEqual({
        outcome: 'moved',
        from: undefined,
      })
      for (const [id, codebase] of [
        [nobody, one],
        [a.id, two],
      ] as const)
        expect(await environments.moveWork(id, codebase, issue, 6)).toEqual({ outcome: 'gone' })
      await environments.transition(a.id, 'creating', 'removed')
      expect(await environments.moveWork(a.id, one, issue, 6)).toEqual({ outcome: 'gone' })
      expect((await environments.liveByWork(one, issue))?.id).toBe(b.id)
    })

    test('is moved even if the name of its task is taken, not at all if its transaction fails, and to one place by two at once', async () => {
      const store = await withTwoCodebases(engine)
      const { environments } = store
      const b = anEnvironment('b', { work: issue, branch: toBranchName('issue-42') })
      const c = anEnvironment('c')
      for (const environment of [a, b, c]) await environments.insert(environment, undefined)
      await environments.addAlias(c.id, one, { type: 'task', id: 'issue-42' }, 1)
      const failing = store.transaction(async (inside) => {
        await inside.environments.moveWork(a.id, one, issue, 2)
        throw new Error('and then it dies')
      })
      await expect(failing).rejects.toThrow('and then it dies')
      expect((await environments.get(b.id))?.work).toEqual(issue)
      const moves = await Promise.all([a, c].map(({ id }) => environments.moveWork(id, one, issue, 3)))
      expect(moves.map(({ outcome }) => outcome)).toEqual(['moved', 'moved'])
      expect((await environments.get(b.id))?.work).toEqual({ type: 'task', id: `issue-42-${b.id.slice(0, 8)}` })
      const holders = [...(await environments.aliasesOf([a.id, b.id, c.id]))].filter(([, works]) =>
        works.some(({ type }) => type === 'issue'),
      )
      expect(holders).toHaveLength(1)
    })

    test('and an environment of the same work, asked for at once, do not both come to be', async () => {
      const { environments } = await withTwoCodebases(engine)
      await environments.insert(a, undefined)
      const rounds = Array.from({ length: 10 }, (_, index) => ({ type: 'issue', id: String(index + 1) }) as const)
      for (const work of rounds) {
        const own = anEnvironment(`own-${work.id}`, { work })
        const [alias, inserted] = await Promise.all([
          environments.addAlias(a.id, one, work, 1),
          environments.insert(own, undefined),
        ])
        expect(alias).toBe(inserted.outcome !== 'inserted')
      }
    })
  })
})
