import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FleetAgent } from '../../src/domain/fleet/agent.ts'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import type { ProcessIdentity } from '../../src/domain/process-identity.ts'
import type { FleetContext } from '../../src/fleet/context.ts'
import { fleetDown } from '../../src/fleet/down.ts'
import { deleteAgentFiles } from '../../src/fleet/end-session.ts'
import { done } from '../../src/fleet/formulas/done.ts'
import { continueFormula } from '../../src/fleet/formulas/run-formula.ts'
import { closeItem, parkByHand, reopenItem } from '../../src/fleet/items/close.ts'
import { reconcilePools } from '../../src/fleet/reconcile-pools.ts'
import { recoverFleet } from '../../src/fleet/recover.ts'
import { removeAgent } from '../../src/fleet/remove-agent.ts'
import { agentDirectory } from '../../src/fleet/sessions/paths.ts'
import { assign } from '../../src/fleet/sling/assign.ts'
import { retireWorker } from '../../src/fleet/sling/idle-workers.ts'
import { sling } from '../../src/fleet/sling/sling.ts'
import { stopAgent } from '../../src/fleet/stop-agent.ts'
import { isProvablyDead } from '../../src/isolation/agents-inside.ts'
import { identifySync } from '../../src/process/identity.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { assertHooksAgree, type FleetWorld, makeFleetWorld } from '../helpers/fleet.ts'
import { startPostgres, type TestPostgres } from '../helpers/postgres.ts'

const by = 'cli'

type AtWork = { readonly agent: FleetAgent; readonly environment: IsolatedEnvironment; readonly item: number }

const start = async ({ fleet }: FleetWorld, item: number): Promise<AtWork> => {
  const slung = await sling(fleet, { item, by })
  if (slung.outcome !== 'started') throw new Error(`not started: ${JSON.stringify(slung)}`)
  return { agent: slung.agent, environment: slung.environment, item }
}

/** With a commit. */
const atWork = async (world: FleetWorld): Promise<AtWork> => {
  const { id } = await world.addItem('Fix login')
  const begun = await start(world, id)
  writeFileSync(join(begun.environment.path, 'login.txt'), 'fixed\n')
  world.box.raw(begun.environment.path, 'add', 'login.txt')
  world.box.raw(begun.environment.path, 'commit', '-qm', 'Fix the login')
  return begun
}

/** Another process of ours, as far as records tell. */
const other = ({ fleet }: FleetWorld, change: Partial<FleetContext['isolation']> = {}): FleetContext => ({
  ...fleet,
  executing: new Set(),
  isolation: { ...fleet.isolation, ...change },
})

const deadSelf = ({ context: { self } }: FleetWorld): FleetContext['isolation']['self'] => ({
  ...self,
  startTime: 'of another process',
})

/** Does this once, when the failpoint is passed. */
const at = (name: string, act: () => Promise<unknown>): FleetContext['isolation']['failpoint'] => {
  let isDone = false
  return async (passed) => {
    if (passed !== name || isDone) return
    isDone = true
    await act()
  }
}

const once = (act: () => Promise<unknown>): (() => Promise<void>) => {
  const failpoint = at('', act)
  return () => failpoint('')
}

const agentNamed = async ({ context: { store } }: FleetWorld, name: string): Promise<FleetAgent> =>
  (await store.fleetAgents.live({})).find((agent) => agent.name === name) ?? expect.unreachable(`${name} is gone`)

const runningFormula = async ({ context: { store } }: FleetWorld, { id }: FleetAgent): Promise<string> =>
  (await store.formulaRuns.runningOf(id))?.id ?? expect.unreachable('no formula is running')

/** Another one than ours. */
const livingProcess = (): ProcessIdentity => identifySync(process.ppid) ?? expect.unreachable('our parent is gone')

const onlyWorktree = async ({ context: { store }, codebase }: FleetWorld): Promise<string> =>
  (await store.environments.live(codebase.id))[0]?.path ?? expect.unreachable('there are no worktrees')

describe('done', () => {
  test('of a program that is quicker than whoever starts it waits until the start is recorded', async () => {
    await using world = await makeFleetWorld({ pools: [{ done: 'push' }] })
    const { fleetAgents } = world.context.store
    const { id } = await world.addItem('Fix login')
    const asked = Promise.withResolvers<void>()
    let finished: ReturnType<typeof done> | undefined
    const fleet = other(world, {
      failpoint: at('spawn.running', async () => {
        const { name, spawn } = await agentNamed(world, 'alder')
        world.box.raw(await onlyWorktree(world), 'commit', '-q', '--allow-empty', '-m', 'Fix the login')
        let looks = 0
        const byName: typeof fleetAgents.byName = async (...key) => {
          // It has seen the agent as it is before the start is recorded, and looks again.
          if ((looks += 1) === 2) asked.resolve()
          return fleetAgents.byName(...key)
        }
        const store: Store = { ...world.context.store, fleetAgents: { ...fleetAgents, byName } }
        finished = done(other(world, { store }), { agent: name, spawn })
        await Promise.race([asked.promise, finished])
      }),
    })
    expect(await sling(fleet, { item: id, by })).toMatchObject({ outcome: 'started' })
    expect(await finished).toMatchObject({ outcome: 'done' })
    expect(await world.item(id)).toMatchObject({ state: 'closed' })
    await assertHooksAgree(world)
  })

  test('while `fleet down` finds the session ended: the agent is gone all the same', async () => {
    await using world = await makeFleetWorld({ remote: true, pools: [{ done: 'push' }] })
    const { agent, item } = await atWork(world)
    const { fleetAgents } = world.context.store
    const leaving = other(world, {
      failpoint: at('leave.session', async () => {
        await fleetDown(other(world, { self: deadSelf(world) }), { by, graceMs: 0 })
        expect(await fleetAgents.get(agent.id)).toMatchObject({ state: 'stopped' })
      }),
    })
    expect(await done(leaving, agentCaller(agent))).toMatchObject({ outcome: 'done' })
    expect(await fleetAgents.get(agent.id)).toMatchObject({ state: 'gone' })
    expect(await world.item(item)).toMatchObject({ state: 'closed' })
    await assertHooksAgree(world)
  })

  test('of an item that is parked before it is settled closes it', async () => {
    await using world = await makeFleetWorld({ remote: true, pools: [{ done: 'push' }] })
    const { agent, item } = await atWork(world)
    const finishing = other(world, {
      failpoint: at('formula.settle.begun', () => parkByHand(world.fleet, item, { note: undefined, by })),
    })
    expect(await done(finishing, agentCaller(agent))).toMatchObject({ outcome: 'done' })
    expect(await world.item(item)).toMatchObject({ state: 'closed' })
    await assertHooksAgree(world)
  })

  test('leaves an item alone that somebody else has by now', async () => {
    await using world = await makeFleetWorld({ remote: true, pools: [{ done: 'push' }] })
    const { agent, item } = await atWork(world)
    const { items, fleetAgents } = world.context.store
    const finishing = other(world, {
      failpoint: at('formula.settle.begun', async () => {
        await fleetAgents.update(agent.id, { itemId: undefined })
        const change = { kind: 'unhooked', to: 'open', agent: 'alder', why: 'gone' } as const
        const patch = { environmentId: undefined }
        await items.move(item, { from: 'hooked', to: 'open', change, patch, by, at: 0 })
        expect(await start(world, item)).toMatchObject({ agent: { name: 'beech' } })
      }),
    })
    expect(await done(finishing, agentCaller(agent))).toMatchObject({ outcome: 'done' })
    expect(await world.item(item)).toMatchObject({ state: 'hooked' })
    await assertHooksAgree(world)
  })

  describe('that fails after its intent', () => {
    /** While its worktree is away. */
    const interrupted = async (world: FleetWorld): Promise<AtWork> => {
      const work = await atWork(world)
      const { path } = work.environment
      const failpoint = at('formula.intent.done', async () => renameSync(path, `${path}.away`))
      await expect(done(other(world, { failpoint }), agentCaller(work.agent))).rejects.toThrow("doesn't exist")
      await fleetDown(world.fleet, { by, only: [work.agent.name], graceMs: 0 })
      return work
    }
    const back = ({ environment: { path } }: AtWork): void => renameSync(`${path}.away`, path)
    const pushed = ({ box }: FleetWorld): string => box.raw(box.path('origin.git'), 'branch', '--list', 'agent/*')

    test('is finished before its agent is started again, not while it is at work', async () => {
      await using world = await makeFleetWorld({ remote: true, pools: [{ done: 'push' }] })
      const work = await interrupted(world)
      await expect(start(world, work.item)).rejects.toThrow("doesn't exist")
      back(work)
      await expect(start(world, work.item)).rejects.toMatchObject({ message: 'alder has just finished' })
      expect(await world.item(work.item)).toMatchObject({ state: 'closed' })
      expect(pushed(world)).not.toBe('')
      await assertHooksAgree(world)
    })

    test('is not finished once its item was closed', async () => {
      await using world = await makeFleetWorld({ remote: true, pools: [{ done: 'push' }] })
      const { formulaRuns } = world.context.store
      const work = await interrupted(world)
      const [begun] = await formulaRuns.running()
      const { self, host } = world.context
      // What runs on another host can't be told to be dead.
      for (const holder of [
        { host, process: self },
        { host: 'another', process: deadSelf(world) },
      ]) {
        await formulaRuns.update(begun?.id ?? '', { holder }, 0)
        await expect(closeItem(world.fleet, work.item, by)).rejects.toMatchObject({ code: 'busy' })
      }
      expect(await world.item(work.item)).toMatchObject({ state: 'hooked' })
      await formulaRuns.update(begun?.id ?? '', { holder: undefined }, 0)
      await closeItem(world.fleet, work.item, by)
      back(work)
      await recoverFleet(world.fleet)
      expect(pushed(world)).toBe('')
      expect(world.told.map(({ kind }) => kind)).toEqual(['started', 'closed'])
      expect(existsSync(work.environment.path)).toBe(true)
      expect(await formulaRuns.running()).toEqual([])
      await assertHooksAgree(world)
    })
  })

  test('takes no files with it of another agent that has its name by now', async () => {
    await using world = await makeFleetWorld({ remote: true, pools: [{ done: 'push' }] })
    const { agent } = await atWork(world)
    const { id } = await world.addItem('Write docs')
    const leaving = other(world, {
      failpoint: at('leave.environment', async () => {
        await world.context.store.fleetAgents.move(agent.id, 'finishing', 'gone')
        deleteAgentFiles(world.fleet, 'alder')
        expect(await start(world, id)).toMatchObject({ agent: { name: 'alder' } })
      }),
    })
    expect(await done(leaving, agentCaller(agent))).toMatchObject({ outcome: 'done' })
    expect(existsSync(agentDirectory(world.context.home, 'alder'))).toBe(true)
    expect(await agentNamed(world, 'alder')).toMatchObject({ state: 'working', itemId: id })
  })

  test('waits for a server that takes the formula once more, just before its session is ended', async () => {
    await using world = await makeFleetWorld({ pools: [{ done: 'push' }] })
    const { agent } = await atWork(world)
    const { store, clock, host } = world.context
    const { formulaRuns } = store
    const server = livingProcess()
    const holder = { host, process: server }
    const byServer = other(world, { self: server })
    const takesAgain = once(async () => formulaRuns.claim(await runningFormula(world, agent), undefined, holder))
    const byServerOutcomes: unknown[] = []
    let tries = 0
    const claim: typeof formulaRuns.claim = async (id, ...change) => {
      tries += 1
      await takesAgain()
      const isOurs = await formulaRuns.claim(id, ...change)
      if (!isOurs) await formulaRuns.update(id, { holder: undefined }, clock())
      return isOurs
    }
    const inSession: FleetContext = {
      ...other(world, {
        store: { ...store, formulaRuns: { ...formulaRuns, claim } },
        ownEnvironment: { COPPICE_SPAWN: agent.spawn },
      }),
      wakeServer: async () => {
        byServerOutcomes.push(await continueFormula(byServer, await runningFormula(world, agent)))
        return true
      },
    }
    expect(await done(inSession, agentCaller(agent))).toMatchObject({ outcome: 'handed-over' })
    expect(byServerOutcomes).toMatchObject([{ outcome: 'waited-for' }])
    expect(tries).toBe(2)
  })
})

const agentCaller = ({ name, spawn }: FleetAgent) => ({ agent: name, spawn })

test('an agent that `fleet down` stops while it starts has no session, and its item and worktree stay', async () => {
  await using world = await makeFleetWorld()
  const { id } = await world.addItem('Fix login')
  const starting = other(world, {
    failpoint: at('sling.placed', async () => {
      // Whoever starts it is alive.
      expect(await recoverFleet(other(world))).toEqual({ settled: [], left: [] })
      expect((await fleetDown(other(world), { by, graceMs: 0 })).stopped).toMatchObject([{ name: 'alder' }])
    }),
  })
  await expect(sling(starting, { item: id, by })).rejects.toThrow('alder was stopped while it was starting')
  const agent = await agentNamed(world, 'alder')
  expect(agent).toMatchObject({ state: 'stopped', itemId: id })
  expect(await isProvablyDead(world.context, agent)).toBe(true)
  expect(await world.item(id)).toMatchObject({ state: 'hooked', environmentId: agent.environmentId })
  expect(existsSync(await onlyWorktree(world))).toBe(true)
  await assertHooksAgree(world)
})

test('an item that is given to an agent while it is being closed stays with the agent', async () => {
  await using world = await makeFleetWorld()
  const { id } = await world.addItem('Fix login')
  const { store } = world.context
  const give = once(() => start(world, id))
  const ofItems: typeof store.fleetAgents.ofItems = async (ids) => {
    const found = await store.fleetAgents.ofItems(ids)
    await give()
    return found
  }
  const closing = other(world, { store: { ...store, fleetAgents: { ...store.fleetAgents, ofItems } } })
  await expect(closeItem(closing, id, by)).rejects.toMatchObject({ code: 'busy', remedy: 'try again' })
  expect(await world.item(id)).toMatchObject({ state: 'hooked' })
  expect(await agentNamed(world, 'alder')).toMatchObject({ state: 'working', itemId: id })
  await assertHooksAgree(world)
})

test.for(['sling.hooked', 'spawn.running'])(
  'a sling that died at %s is undone by the next one of its item',
  async (step) => {
    await using world = await makeFleetWorld()
    const { id } = await world.addItem('Fix login')
    const reached = Promise.withResolvers<void>()
    const failpoint = at(step, () => {
      reached.resolve()
      return new Promise(() => undefined)
    })
    void sling(other(world, { failpoint }), { item: id, by })
    await reached.promise
    const first = await agentNamed(world, 'alder')
    // Whoever started it may still live.
    expect(await sling(world.fleet, { item: id, by })).toMatchObject({ outcome: 'refused', why: { kind: 'hooked' } })
    await world.context.store.fleetAgents.claim(first.id, first.holder, deadSelf(world))
    const second = await start(world, id)
    expect(second.agent).toMatchObject({ name: 'alder', state: 'working' })
    expect(await world.context.store.fleetAgents.get(first.id)).toMatchObject({ state: 'gone' })
    await assertHooksAgree(world)
  },
)

describe('an agent that `fleet down` stops while it is starting', () => {
  test('has no session afterwards, whether it starts for the first time or again', async () => {
    await using world = await makeFleetWorld()
    const { id } = await world.addItem('Fix login')
    const overtaken = (): FleetContext =>
      other(world, { failpoint: at('spawn.noted', () => fleetDown(world.fleet, { by, graceMs: 0 })) })
    const isStopped = async (): Promise<void> => {
      expect(await agentNamed(world, 'alder')).toMatchObject({ state: 'stopped', itemId: id })
      expect(await isProvablyDead(world.fleet.isolation, await agentNamed(world, 'alder'))).toBe(true)
      await assertHooksAgree(world)
      await world.context.store.fleetControl.set(world.context.host, { state: 'up', why: '', since: 0 })
    }
    await expect(sling(overtaken(), { item: id, by })).rejects.toThrow('alder was stopped while it was starting')
    await isStopped()
    await expect(sling(overtaken(), { item: id, by })).rejects.toThrow('alder was stopped while it was starting')
    await isStopped()
    expect(await start(world, id)).toMatchObject({ agent: { name: 'alder', state: 'working' } })
  })
})

describe('a worker that waits for an item', () => {
  const idleWorld = async (): Promise<FleetWorld & { readonly idle: FleetAgent }> => {
    const world = await makeFleetWorld({ pools: [{ min: 1, max: 2 }] })
    expect((await reconcilePools(world.fleet)).started).toEqual(['alder'])
    return { ...world, idle: await agentNamed(world, 'alder') }
  }

  test('gets one item, however many are given to it at once', async () => {
    await using world = await idleWorld()
    const [first, second] = [await world.addItem('Fix login'), await world.addItem('Write docs')]
    const { store } = world.context
    const give = once(() => start(world, first.id))
    const live: typeof store.fleetAgents.live = async (filter) => {
      const found = await store.fleetAgents.live(filter)
      await give()
      return found
    }
    const slinging = other(world, { store: { ...store, fleetAgents: { ...store.fleetAgents, live } } })
    expect(await sling(slinging, { item: second.id, by })).toMatchObject({
      outcome: 'started',
      agent: { name: 'beech', itemId: second.id },
    })
    expect(await agentNamed(world, 'alder')).toMatchObject({ state: 'working', itemId: first.id })
    await assertHooksAgree(world)
  })

  test('is not let go once it has an item', async () => {
    await using world = await idleWorld()
    const item = await world.addItem('Fix login')
    const { id } = item
    const earlier = { ...world.idle, spawn: 'of an earlier life' }
    expect(await assign(world.fleet, { by }, { item, codebase: world.codebase, agent: earlier })).toBe('taken')
    await retireWorker(world.fleet, earlier)
    expect(await start(world, id)).toMatchObject({ agent: { name: 'alder' } })
    await retireWorker(world.fleet, world.idle)
    expect(await agentNamed(world, 'alder')).toMatchObject({ state: 'working', itemId: id })
  })

  test('gets no item once it is being let go, and no pool keeps it', async () => {
    await using world = await idleWorld()
    const { id } = await world.addItem('Fix login')
    const leaving = other(world, {
      failpoint: at('retire.reserved', async () => {
        await reconcilePools(world.fleet)
        await recoverFleet(world.fleet)
        expect(await agentNamed(world, 'alder')).toMatchObject({ state: 'draining' })
        expect(await start(world, id)).toMatchObject({ agent: { name: 'beech' } })
      }),
    })
    await retireWorker(leaving, world.idle)
    expect(await world.context.store.fleetAgents.live({})).toMatchObject([{ name: 'beech', itemId: id }])
    await assertHooksAgree(world)
  })

  test('waits again after whoever let it go has died or failed', async () => {
    await using world = await idleWorld()
    const reached = Promise.withResolvers<void>()
    const dying = other(world, {
      self: deadSelf(world),
      failpoint: at('retire.reserved', () => {
        reached.resolve()
        return new Promise(() => undefined)
      }),
    })
    void retireWorker(dying, world.idle)
    await reached.promise
    expect(await agentNamed(world, 'alder')).toMatchObject({ state: 'draining' })
    expect((await recoverFleet(world.fleet)).settled).toEqual(['alder'])
    expect(await agentNamed(world, 'alder')).toMatchObject({ state: 'working' })
    expect((await recoverFleet(world.fleet)).settled).toEqual([])
    const failing = other(world, { failpoint: at('session.ended', () => Promise.reject(new Error('disk full'))) })
    await expect(retireWorker(failing, world.idle)).rejects.toThrow('disk full')
    expect(await agentNamed(world, 'alder')).toMatchObject({ state: 'working' })
  })

  test('whose name another agent has by now takes no files with it when it goes', async () => {
    await using world = await idleWorld()
    const stopped = await stopAgent(world.fleet, world.idle, { graceMs: 0 })
    const { id } = await world.addItem('Fix login')
    const slow = other(world, {
      failpoint: at('remove-agent.environment', async () => {
        await removeAgent(world.fleet, stopped.agent)
        expect(await start(world, id)).toMatchObject({ agent: { name: 'alder' } })
      }),
    })
    await removeAgent(slow, stopped.agent)
    expect(existsSync(agentDirectory(world.context.home, 'alder'))).toBe(true)
    expect(await agentNamed(world, 'alder')).toMatchObject({ state: 'working', itemId: id })
  })
})

describe('on PostgreSQL, where another transaction may commit in the middle of ours', () => {
  let server: TestPostgres | undefined
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server?.stop())

  const makePostgresWorld = async (): Promise<FleetWorld> => {
    const postgresUrl = (await server?.freshDatabase()) ?? expect.unreachable('PostgreSQL is not running')
    return makeFleetWorld({ remote: true, pools: [{ done: 'push' }], store: await openStore({ postgresUrl }) })
  }

  /** Does this once, after a transaction has read an item. */
  const afterReadingItem = ({ context: { store } }: FleetWorld, act: () => Promise<unknown>): Store => {
    const actOnce = once(act)
    const read = ({ items, ...inside }: Store): Store => ({
      ...inside,
      items: {
        ...items,
        get: async (id) => {
          const item = await items.get(id)
          await actOnce()
          return item
        },
      },
    })
    return { ...store, transaction: (work) => store.transaction((inside) => work(read(inside))) }
  }

  test('an item that is closed while it is being reopened stays closed', async () => {
    await using world = await makePostgresWorld()
    const { id } = await world.addItem('Fix login')
    await parkByHand(world.fleet, id, { note: undefined, by })
    const reopening = other(world, { store: afterReadingItem(world, () => closeItem(world.fleet, id, by)) })
    await expect(reopenItem(reopening, id, by)).rejects.toMatchObject({ code: 'busy', remedy: 'try again' })
    expect(await world.item(id)).toMatchObject({ state: 'closed' })
  })

  test('`done` leaves the hook as it is if the item changes meanwhile, and settles it the next time', async () => {
    await using world = await makePostgresWorld()
    const { agent, item } = await atWork(world)
    const park = () => parkByHand(world.fleet, item, { note: undefined, by })
    const finishing = other(world, { store: afterReadingItem(world, park) })
    await expect(done(finishing, agentCaller(agent))).rejects.toMatchObject({ code: 'busy' })
    expect(await world.context.store.fleetAgents.get(agent.id)).toMatchObject({ itemId: item })
    expect(await done(world.fleet, agentCaller(agent))).toMatchObject({ outcome: 'done' })
    expect(await world.item(item)).toMatchObject({ state: 'closed' })
    await assertHooksAgree(world)
  })
})
