import { describe, expect, test } from 'vitest'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import type { GitSnapshot } from '../../src/store/git-snapshots.ts'
import type { RunWatch } from '../../src/store/run-watches.ts'
import type { Store } from '../../src/store/store.ts'
import { type EngineUnderTest, onEachEngine } from '../helpers/store-engines.ts'
import { aCodebase, anEnvironment } from '../helpers/store-values.ts'

const codebase = aCodebase()
const environment = anEnvironment('one', { status: 'active' })

const start = async (engine: EngineUnderTest): Promise<Store> => {
  const store = await engine.open(await engine.fresh())
  await store.codebases.insert(codebase)
  return store
}

const aWatch = (id: string, change: Partial<RunWatch> = {}): RunWatch => ({
  id,
  host: 'host-a',
  codebaseId: codebase.id,
  platform: 'slack',
  conversationId: 'T1',
  owner: { pid: 4_194_304, startTime: 'boot:7' },
  ended: false,
  data: {
    messageId: 'message-1',
    environmentId: environment.id,
    directory: '/tree',
    mark: { id: 'mark', cgroup: undefined },
    checkout: { since: 1_700_000_000_000, head: '`main`' },
    unknown: [{ pid: 7, startTime: 'boot:8', command: 'vim' }],
    named: false,
    reported: false,
  },
  ...change,
})

const aLook = (scope: string, snapshot: unknown, of?: IsolatedEnvironment): GitSnapshot => ({
  host: 'host-a',
  scope,
  codebaseId: codebase.id,
  environmentId: of?.id,
  snapshot,
  at: 1,
})

onEachEngine((engine) => {
  describe('watches over runs', () => {
    test('come back as they were written, on their own host only, and go when they are removed', async () => {
      const { runWatches } = await start(engine)
      await runWatches.insert(aWatch('a'))
      await runWatches.insert(aWatch('b', { host: 'host-b' }))
      expect(await runWatches.ofHost('host-a')).toEqual([aWatch('a')])
      const ended = { ended: true, data: { ...aWatch('a').data, named: true } }
      await runWatches.update('a', ended)
      expect(await runWatches.ofHost('host-a')).toEqual([aWatch('a', ended)])
      await runWatches.remove('a')
      expect(await runWatches.ofHost('host-a')).toEqual([])
    })

    test('whose runs have ended or are another process’s are found without those that this one runs', async () => {
      const { runWatches } = await start(engine)
      const { owner } = aWatch('')
      const others = [
        aWatch('ended', { ended: true }),
        aWatch('pid', { owner: { ...owner, pid: 1 } }),
        aWatch('started', { owner: { ...owner, startTime: 'boot:8' } }),
      ]
      for (const watch of [aWatch('own'), ...others, aWatch('far', { host: 'host-b', ended: true })]) {
        await runWatches.insert(watch)
      }
      expect(await runWatches.endedOrOthers('host-a', owner)).toEqual(others)
    })

    test('outlive their codebase, and looks do not', async () => {
      const store = await start(engine)
      await store.runWatches.insert(aWatch('a'))
      await store.gitSnapshots.put(aLook('repository', {}))
      await store.codebases.remove(codebase.id)
      expect(await store.runWatches.ofHost('host-a')).toEqual([aWatch('a')])
      expect(await store.gitSnapshots.get('host-a', 'repository')).toBeUndefined()
    })
  })

  describe('looks at git', () => {
    test('the last one of each counts; those of an environment go when it is removed', async () => {
      const store = await start(engine)
      expect(await store.gitSnapshots.get('host-a', 'repository')).toBeUndefined()
      await store.environments.insert(environment, 10)
      await store.gitSnapshots.put(aLook('worktree', { n: 1 }, environment))
      await store.gitSnapshots.put(aLook('repository', { n: 1 }))
      await store.gitSnapshots.put(aLook('repository', { n: 2 }))
      expect(await store.gitSnapshots.get('host-a', 'repository')).toEqual({ n: 2 })
      expect(await store.gitSnapshots.get('host-a', 'worktree')).toEqual({ n: 1 })
      expect(await store.gitSnapshots.get('host-b', 'repository')).toBeUndefined()
      expect(await store.gitSnapshots.isStored('host-a', 'repository', { n: 2 })).toBe(true)
      expect(await store.gitSnapshots.isStored('host-a', 'repository', { n: 1 })).toBe(false)
      expect(await store.gitSnapshots.isStored('host-b', 'repository', { n: 2 })).toBe(false)
      await store.environments.transition(environment.id, 'active', 'removing')
      expect(await store.gitSnapshots.get('host-a', 'worktree')).toEqual({ n: 1 })
      await store.environments.transition(environment.id, 'removing', 'removed')
      expect(await store.gitSnapshots.get('host-a', 'repository')).toEqual({ n: 2 })
      expect(await store.gitSnapshots.get('host-a', 'worktree')).toBeUndefined()
    })
  })
})
