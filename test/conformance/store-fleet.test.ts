import { describe, expect, test } from 'vitest'
import type { AppError } from '../../src/domain/errors.ts'
import { canAgentBecome, type FleetAgentState, fleetAgentStates } from '../../src/domain/fleet/agent.ts'
import { landingStates } from '../../src/domain/fleet/landing.ts'
import { toCodebaseId, toEnvironmentId } from '../../src/domain/names.ts'
import { aNewItem, aNewLanding, anAgent, aRun } from '../helpers/fleet-values.ts'
import { type EngineUnderTest, onEachEngine } from '../helpers/store-engines.ts'
import { aCodebase, aSha } from '../helpers/store-values.ts'

const one = toCodebaseId('codebase-one')
const two = toCodebaseId('codebase-two')

/** Two codebases, and three items in the first. */
const withItems = async (engine: EngineUnderTest): ReturnType<EngineUnderTest['open']> => {
  const store = await engine.open(await engine.fresh())
  for (const key of ['one', 'two']) await store.codebases.insert(aCodebase(key))
  for (const title of ['a', 'b', 'c']) await store.items.insert(aNewItem(title))
  return store
}

const gone = { endedAt: 9 } as const
const names = (agents: readonly { readonly name: string }[]) => agents.map(({ name }) => name)

onEachEngine((engine) => {
  describe('agents', () => {
    const session = { kind: 'tmux', target: 'alder', root: { pid: 7, startTime: 's' }, startedAt: 3 } as const
    const full = anAgent('alder', {
      itemId: 1,
      environmentId: toEnvironmentId('environment-a'),
      session,
      restarts: 2,
      workedAt: 4,
    })

    test('come back as they were put in', async () => {
      const store = await withItems(engine)
      expect(await store.fleetAgents.insert(full)).toBe('inserted')
      const crew = anAgent('lead', { kind: 'crew', pool: undefined, codebaseId: two, host: 'host-b' })
      await store.fleetAgents.insert(crew)
      expect(await store.fleetAgents.get(full.id)).toStrictEqual(full)
      expect(await store.fleetAgents.get(crew.id)).toStrictEqual(crew)
      expect(await store.fleetAgents.get('nobody')).toBeUndefined()
      expect(await store.fleetAgents.byName('host-a', 'alder')).toStrictEqual(full)
      expect(await store.fleetAgents.byName('host-b', 'alder')).toBeUndefined()
      expect(names(await store.fleetAgents.live())).toEqual(['alder', 'lead'])
      expect(names(await store.fleetAgents.live({ host: 'host-b' }))).toEqual(['lead'])
      expect(names(await store.fleetAgents.live({ codebaseId: one }))).toEqual(['alder'])
      expect(names(await store.fleetAgents.ofItems([1, 2]))).toEqual(['alder'])
      expect(await store.fleetAgents.ofItems([])).toEqual([])
      expect(names(await store.fleetAgents.ofEnvironments([toEnvironmentId('environment-a')]))).toEqual(['alder'])
      expect(await store.fleetAgents.ofEnvironments([])).toEqual([])
    })

    test('have a name of their own on their host, until they are gone', async () => {
      const store = await withItems(engine)
      await store.fleetAgents.insert(anAgent('alder'))
      expect(await store.fleetAgents.insert(anAgent('alder', { id: 'again' }))).toBe('name-taken')
      expect(await store.fleetAgents.insert(anAgent('alder', { id: 'there', host: 'host-b' }))).toBe('inserted')
      await store.fleetAgents.move('agent-alder', 'spawning', 'gone', gone)
      expect(await store.fleetAgents.byName('host-a', 'alder')).toBeUndefined()
      expect(await store.fleetAgents.insert(anAgent('alder', { id: 'again' }))).toBe('inserted')
    })

    test('hold an item alone, until they are gone', async () => {
      const store = await withItems(engine)
      await store.fleetAgents.insert(full)
      expect(await store.fleetAgents.insert(anAgent('beech', { itemId: 1 }))).toBe('item-taken')
      expect(await store.fleetAgents.insert(anAgent('alder', { id: 'again', itemId: 1 }))).toBe('item-taken')
      expect(await store.fleetAgents.insert(anAgent('beech', { itemId: 2 }))).toBe('inserted')
      await expect(store.fleetAgents.update('agent-beech', { itemId: 1 })).rejects.toThrow(/unique/i)
      await store.fleetAgents.move(full.id, 'spawning', 'gone', gone)
      expect(await store.fleetAgents.ofItems([1])).toEqual([])
      expect((await store.fleetAgents.get(full.id))?.itemId).toBeUndefined()
      await store.fleetAgents.update('agent-beech', { itemId: 1 })
      expect(names(await store.fleetAgents.ofItems([1]))).toEqual(['beech'])
    })

    test('of many that want one name or one item at once, one gets it, and no transaction ends with an error', async () => {
      const store = await withItems(engine)
      const insert = (change: object, n: number) =>
        store.transaction((inside) => inside.fleetAgents.insert(anAgent('alder', { id: `agent-${n}`, ...change })))
      const sameName = await Promise.all([0, 1, 2, 3].map((n) => insert({}, n)))
      expect(sameName.toSorted()).toEqual(['inserted', 'name-taken', 'name-taken', 'name-taken'])
      const sameItem = await Promise.all([4, 5, 6].map((n) => insert({ name: `agent${n}`, itemId: 2 }, n)))
      expect(sameItem.toSorted()).toEqual(['inserted', 'item-taken', 'item-taken'])
      expect(await store.fleetAgents.live()).toHaveLength(2)
    })

    test('move as the table says, and no other way', async () => {
      const store = await withItems(engine)
      for (const [n, from] of fleetAgentStates.entries()) {
        for (const [m, to] of fleetAgentStates.entries()) {
          const name = `agent-${n}-${m}`
          await store.fleetAgents.insert(anAgent(name, { id: name, state: from }))
          const move = async () => store.fleetAgents.move(name, from, to)
          const moved = await move().catch((error: AppError) => error.code)
          expect([from, to, moved]).toEqual([from, to, canAgentBecome(from, to) ? true : 'illegal-transition'])
          expect((await store.fleetAgents.get(name))?.state).toBe(moved === true ? to : from)
        }
      }
    })

    test('are moved by one of many, with what goes with it', async () => {
      const store = await withItems(engine)
      await store.fleetAgents.insert(full)
      const to: FleetAgentState[] = ['working', 'crashed', 'stopped']
      const moved = await Promise.all(
        to.map((state, n) => store.fleetAgents.move(full.id, 'spawning', state, { restarts: 10 + n })),
      )
      const winner = moved.indexOf(true)
      expect(moved.filter(Boolean)).toHaveLength(1)
      expect(await store.fleetAgents.get(full.id)).toStrictEqual({
        ...full,
        state: to[winner],
        restarts: 10 + winner,
      })
    })

    test('are patched: an absent key leaves alone, an undefined one clears', async () => {
      const store = await withItems(engine)
      await store.fleetAgents.insert(full)
      const holder = { pid: 8, startTime: 'start-8' }
      await store.fleetAgents.update(full.id, {})
      await store.fleetAgents.update(full.id, { session: undefined, lastSignAt: 12, holder, spawn: 'again' })
      expect(await store.fleetAgents.get(full.id)).toStrictEqual({
        ...full,
        session: undefined,
        lastSignAt: 12,
        holder,
        spawn: 'again',
      })
    })

    test('are claimed from the holder that was seen, by one', async () => {
      const store = await withItems(engine)
      await store.fleetAgents.insert(full)
      const claims = [2, 3, 4].map((pid) => ({ pid, startTime: `start-${pid}` }))
      const claimed = await Promise.all(claims.map((by) => store.fleetAgents.claim(full.id, full.holder, by)))
      expect(claimed.filter(Boolean)).toHaveLength(1)
      expect((await store.fleetAgents.get(full.id))?.holder).toEqual(claims[claimed.indexOf(true)])
      // The same number, but another process.
      const reused = { pid: claims[claimed.indexOf(true)]?.pid ?? 0, startTime: 'other' }
      expect(await store.fleetAgents.claim(full.id, reused, full.holder)).toBe(false)
    })

    test('are forgotten some time after they are gone, with what their formulas did', async () => {
      const store = await withItems(engine)
      for (const name of ['alder', 'beech', 'cedar']) await store.fleetAgents.insert(anAgent(name))
      await store.formulaRuns.insert(aRun('run', 'agent-alder'))
      await store.fleetAgents.move('agent-alder', 'spawning', 'gone', { endedAt: 5 })
      await store.fleetAgents.move('agent-beech', 'spawning', 'gone', { endedAt: 15 })
      expect(await store.fleetAgents.deleteGone(10)).toBe(1)
      expect(await store.fleetAgents.get('agent-alder')).toBeUndefined()
      expect(await store.formulaRuns.get('run')).toBeUndefined()
      expect(await store.fleetAgents.get('agent-beech')).toBeDefined()
      expect(names(await store.fleetAgents.live())).toEqual(['cedar'])
    })
  })

  describe('formula runs', () => {
    const holder = { host: 'host-a', process: { pid: 1, startTime: 's' } }

    test('come back as they were put in, are patched, and are found', async () => {
      const store = await withItems(engine)
      await store.fleetAgents.insert(anAgent('alder'))
      const steps = [
        { step: 'validate', state: 'done', at: 1 },
        { step: { run: 'npm test', timeoutMs: 5 }, state: 'failed', detail: 'no' },
      ] as const
      const run = aRun('run', 'agent-alder', {
        itemId: 1,
        close: true,
        pullRequest: 'u',
        sha: aSha('b'),
        holder,
        steps,
      })
      expect(await store.formulaRuns.insert(run)).toBe(true)
      expect(await store.formulaRuns.get('run')).toStrictEqual(run)
      expect(await store.formulaRuns.running()).toStrictEqual([run])
      expect(await store.formulaRuns.runningOf('agent-alder')).toStrictEqual(run)
      await store.formulaRuns.update('run', { state: 'done', holder: undefined, steps: [], branch: 'b' }, 7)
      const patched = { ...run, state: 'done', holder: undefined, steps: [], branch: 'b', updatedAt: 7 }
      expect(await store.formulaRuns.get('run')).toStrictEqual(patched)
      expect(await store.formulaRuns.running()).toEqual([])
      await store.formulaRuns.insert(aRun('later', 'agent-alder', { itemId: 1, createdAt: 2 }))
      expect((await store.formulaRuns.latestOfItem(1))?.id).toBe('later')
      expect(await store.formulaRuns.latestOfItem(2)).toBeUndefined()
    })

    test('one per agent is running, also when many start at once', async () => {
      const store = await withItems(engine)
      for (const name of ['alder', 'beech']) await store.fleetAgents.insert(anAgent(name))
      const started = await Promise.all(['a', 'b', 'c'].map((id) => store.formulaRuns.insert(aRun(id, 'agent-alder'))))
      expect(started.filter(Boolean)).toHaveLength(1)
      expect(await store.formulaRuns.insert(aRun('other', 'agent-beech'))).toBe(true)
      const running = (await store.formulaRuns.runningOf('agent-alder'))?.id ?? ''
      await store.formulaRuns.update(running, { state: 'refused' }, 2)
      expect(await store.formulaRuns.insert(aRun('next', 'agent-alder'))).toBe(true)
    })

    test('are claimed from nobody or from the holder that was seen, by one, while they run', async () => {
      const store = await withItems(engine)
      await store.fleetAgents.insert(anAgent('alder'))
      await store.formulaRuns.insert(aRun('run', 'agent-alder'))
      const claims = [2, 3, 4].map((pid) => ({ host: 'host-a', process: { pid, startTime: `start-${pid}` } }))
      const claimed = await Promise.all(claims.map((by) => store.formulaRuns.claim('run', undefined, by)))
      expect(claimed.filter(Boolean)).toHaveLength(1)
      const winner = claims[claimed.indexOf(true)]
      expect((await store.formulaRuns.get('run'))?.holder).toEqual(winner)
      expect(await store.formulaRuns.claim('run', holder, holder)).toBe(false)
      expect(await store.formulaRuns.claim('run', winner, holder)).toBe(true)
      await store.formulaRuns.update('run', { state: 'done' }, 2)
      expect(await store.formulaRuns.claim('run', holder, holder)).toBe(false)
    })
  })

  describe('landings', () => {
    test('come back as they were put in, under numbers of their own, newest first', async () => {
      const store = await withItems(engine)
      const first = await store.landings.enqueue(aNewLanding('x', { itemId: 1 }))
      const asked = { ...aNewLanding('x', { itemId: 1 }), id: 1, state: 'queued', attempts: 0, updatedAt: 1 }
      const unset = { landedSha: undefined, gate: undefined, why: undefined, todo: undefined }
      expect(first).toStrictEqual({ ...asked, ...unset, baseBranch: undefined, mergeCommit: undefined })
      expect(await store.landings.get(1)).toStrictEqual(first)
      await store.landings.enqueue(aNewLanding('y', { codebaseId: two }))
      await store.landings.enqueue(aNewLanding('z'))
      const listed = async (filter: object) => (await store.landings.list({ limit: 9, ...filter })).map(({ id }) => id)
      expect(await listed({})).toEqual([3, 2, 1])
      expect(await listed({ limit: 2 })).toEqual([3, 2])
      expect(await listed({ codebaseId: one, states: ['queued'] })).toEqual([3, 1])
      expect(await listed({ states: ['landed'] })).toEqual([])
      expect(await store.landings.get(4)).toBeUndefined()
    })

    test('of a branch that is queued again supersede the earlier one, also when many do it at once', async () => {
      const store = await withItems(engine)
      const elsewhere = await store.landings.enqueue(aNewLanding('x', { codebaseId: two }))
      const queued = await Promise.all(
        [1, 2, 3, 4].map((at) => store.landings.enqueue(aNewLanding('x', { createdAt: at }))),
      )
      const newest = Math.max(...queued.map(({ id }) => id))
      const states = (await store.landings.list({ codebaseId: one, limit: 9 })).map(({ id, state }) => [id, state])
      expect(states).toEqual(queued.map((_, n) => [newest - n, n === 0 ? 'queued' : 'superseded']))
      expect(await store.landings.get(elsewhere.id)).toMatchObject({ state: 'queued' })
      await store.landings.move(newest, 'queued', 'testing', 5)
      const last = await store.landings.enqueue(aNewLanding('x'))
      expect([await store.landings.get(newest), last]).toMatchObject([{ state: 'superseded' }, { state: 'queued' }])
      await store.landings.move(last.id, 'queued', 'testing', 6)
      await store.landings.move(last.id, 'testing', 'landed', 7, { landedSha: aSha('c') })
      await store.landings.enqueue(aNewLanding('x'))
      expect(await store.landings.get(last.id)).toMatchObject({ state: 'landed', landedSha: aSha('c'), updatedAt: 7 })
    })

    test('move as the table says, by one of many', async () => {
      const store = await withItems(engine)
      const { id } = await store.landings.enqueue(aNewLanding('x'))
      const moved = await Promise.all([1, 2, 3].map((at) => store.landings.move(id, 'queued', 'testing', at)))
      expect(moved.filter(Boolean)).toHaveLength(1)
      const gate = { command: 'npm test', exitCode: 1, log: '/log' }
      const why = { kind: 'conflict', paths: ['a'] } as const
      const patch = { gate, attempts: 2, why, todo: 'return' } as const
      expect(await store.landings.move(id, 'testing', 'refused', 5, patch)).toBe(true)
      expect(await store.landings.get(id)).toMatchObject({ state: 'refused', ...patch })
      expect((await store.landings.pending(one)).map((landing) => landing.id)).toEqual([id])
      expect(await store.landings.finish(id, 'settle')).toBe(false)
      const finished = await Promise.all([1, 2, 3].map(() => store.landings.finish(id, 'return')))
      expect([finished.filter(Boolean).length, await store.landings.pending()]).toEqual([1, []])
      for (const to of landingStates) {
        await expect((async () => store.landings.move(id, 'refused', to, 6))()).rejects.toMatchObject({
          code: 'illegal-transition',
        })
      }
    })
  })

  describe('a landing queue', () => {
    test('is held by one of many, and keeps what it pushes, knows and waits for', async () => {
      const store = await withItems(engine)
      const holder = (pid: number) => ({ host: 'host-a', process: { pid, startTime: `start-${pid}` } })
      expect(await store.landings.queue(one)).toMatchObject({ holder: undefined, push: undefined, blocked: undefined })
      const claims = await Promise.all([1, 2, 3].map((pid) => store.landings.claimQueue(one, undefined, holder(pid))))
      expect(claims.filter(Boolean)).toHaveLength(1)
      const winner = holder(claims.indexOf(true) + 1)
      expect(await store.landings.claimQueue(one, holder(9), holder(4))).toBe(false)
      const members = [{ id: 1, landedSha: aSha('b') }]
      const push = { base: 'main', from: aSha('a'), to: aSha('b'), members, gates: 'digest' }
      const blocked = { kind: 'offline', detail: 'no route', at: 7 } as const
      const green = { commit: aSha('b'), gates: 'digest' }
      await store.landings.updateQueue(one, { push: { ...push, gate: undefined }, blocked, green })
      expect(await store.landings.queue(one)).toEqual({ codebaseId: one, holder: winner, push, blocked, green })
      expect((await store.landings.blockedQueues()).map(({ codebaseId }) => codebaseId)).toEqual([one])
      await store.landings.updateQueue(one, { push: undefined, blocked: undefined, green: undefined })
      expect(await store.landings.claimQueue(one, winner, undefined)).toBe(true)
      expect(await store.landings.queue(one)).toMatchObject({ holder: undefined, push: undefined, green: undefined })
      expect(await store.landings.blockedQueues()).toEqual([])
    })
  })

  describe('patrol notes', () => {
    const seen = { subject: 'agent-alder', what: 'zombie', life: 'spawn-1' } as const

    test('count rounds, are reported by one, and begin anew with another session', async () => {
      const store = await withItems(engine)
      const { patrolNotes } = store
      const first = { ...seen, firstSeen: 5, lastSeen: 5, times: 1, reportedAt: undefined, data: {} }
      expect(await patrolNotes.see('host-a', { ...seen, at: 5 })).toStrictEqual(first)
      expect(await patrolNotes.see('host-a', { ...seen, at: 7, data: { a: 1 } })).toMatchObject({
        times: 2,
        lastSeen: 7,
      })
      expect(await patrolNotes.see('host-a', { ...seen, at: 8 })).toMatchObject({ firstSeen: 5, data: { a: 1 } })
      const reports = Array.from({ length: 3 }, () => patrolNotes.report('host-a', seen, 9))
      expect((await Promise.all(reports)).filter(Boolean)).toHaveLength(1)
      expect(await patrolNotes.report('host-a', { ...seen, life: 'spawn-2' }, 9)).toBe(false)
      expect(await patrolNotes.ofHost('host-a')).toMatchObject([{ times: 3, reportedAt: 9 }])
      expect(await patrolNotes.ofHost('host-b')).toEqual([])
      const next = { ...first, life: 'spawn-2', firstSeen: 10, lastSeen: 10 }
      expect(await patrolNotes.see('host-a', { ...seen, life: 'spawn-2', at: 10 })).toStrictEqual(next)
      await patrolNotes.see('host-a', { ...seen, what: 'death', at: 11 })
      await patrolNotes.clear('host-a', [seen])
      expect((await patrolNotes.ofHost('host-a')).map(({ what }) => what)).toEqual(['death'])
      await patrolNotes.clear('host-a', [])
      expect((await store.items.some([3, 1, 99])).map(({ id }) => id)).toEqual([1, 3])
      expect(await store.items.some([])).toEqual([])
    })
  })

  describe('control', () => {
    test('is up unless somebody said otherwise, on each host', async () => {
      const store = await withItems(engine)
      expect(await store.fleetControl.get('host-a')).toEqual({ state: 'up', why: '', since: 0 })
      await store.fleetControl.set('host-a', { state: 'down', why: 'asked', since: 4 })
      await store.fleetControl.set('host-a', { state: 'paused', why: 'deaths', since: 5 })
      expect(await store.fleetControl.get('host-a')).toEqual({ state: 'paused', why: 'deaths', since: 5 })
      expect(await store.fleetControl.lock('host-a')).toEqual({ state: 'paused', why: 'deaths', since: 5 })
      expect((await store.fleetControl.get('host-b')).state).toBe('up')
    })

    test('is held by one at a time, who decides about the host', async () => {
      const store = await withItems(engine)
      const limit = 3
      const decide = (n: number) =>
        store.transaction(async (inside) => {
          await inside.fleetControl.lock('host-a')
          if ((await inside.fleetAgents.live({ host: 'host-a' })).length >= limit) return false
          return (await inside.fleetAgents.insert(anAgent(`agent${n}`))) === 'inserted'
        })
      const decided = await Promise.all(Array.from({ length: 10 }, (_, n) => decide(n)))
      expect(decided.filter(Boolean)).toHaveLength(limit)
    })
  })
})
