import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { createEndRun } from '../../src/runs/end-run.ts'
import { createStoreQueue, type StoreQueueDependencies } from '../../src/conversations/inbox/store-queue.ts'
import { AppError } from '../../src/domain/errors.ts'
import type { IncomingMessage, Lane } from '../../src/domain/message.ts'
import { identifySync, liveness, selfIdentity } from '../../src/process/identity.ts'
import { createLogger } from '../../src/process/log.ts'
import { runMarkId, runVariable } from '../../src/process/run-mark.ts'
import type { Store } from '../../src/store/store.ts'
import { onEachEngine } from '../helpers/store-engines.ts'

const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })

const HOME = '/home/of/this/test'

const queueOver = (store: Store, over: Partial<StoreQueueDependencies> = {}) =>
  createStoreQueue({
    store,
    host: 'this-host',
    self: selfIdentity(),
    clock: Date.now,
    ids: randomUUID,
    log,
    failpoint: async () => undefined,
    endRun: createEndRun({
      store,
      host: 'this-host',
      home: HOME,
      self: selfIdentity(),
      clock: Date.now,
      log,
      git: { running: new Set() },
    }),
    ...over,
  })

const aMessage = (conversationId: string, text: string, lane: Lane = 'turn'): IncomingMessage & { lane: Lane } => ({
  platform: 'test',
  conversationId,
  deliveryId: randomUUID(),
  kind: 'message',
  text,
  details: {},
  lane,
})

/** A process that has ended: nobody has its identity any more. */
const aDeadProcess = async () => {
  const child = spawn('sleep', ['60'])
  const identity = identifySync(child.pid ?? 0)
  child.kill('SIGKILL')
  await once(child, 'exit')
  if (identity === undefined) throw new Error('it could not be identified')
  return identity
}

onEachEngine((engine) => {
  const open = async () => engine.open(await engine.fresh())

  test('what is accepted can be claimed once, in order, one at a time per conversation', async () => {
    const queue = queueOver(await open())
    for (const text of ['one', 'two']) await queue.accept(aMessage('a', text))
    await queue.accept(aMessage('b', 'other'))
    const first = await queue.claim('turn')
    const second = await queue.claim('turn')
    expect([first?.text, second?.text]).toEqual(['one', 'other'])
    expect(await queue.claim('turn')).toBeUndefined()
    if (first === undefined) throw new Error('nothing was claimed')
    expect(await queue.finish(first, async () => {})).toBe(true)
    expect((await queue.claim('turn'))?.text).toBe('two')
  })

  test('a delivery that is known is a duplicate, also within one batch and after it was done', async () => {
    const queue = queueOver(await open())
    const message = aMessage('a', 'once')
    const answers = await Promise.all([queue.accept(message), queue.accept(message), queue.accept(message)])
    expect(answers.map(({ outcome }) => outcome).toSorted()).toEqual(['accepted', 'duplicate', 'duplicate'])
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1)
    const claimed = await queue.claim('turn')
    if (claimed === undefined) throw new Error('nothing was claimed')
    await queue.finish(claimed, async () => {})
    expect(await queue.accept(message)).toEqual({ outcome: 'duplicate', id: claimed.id })
    expect(await queue.claim('turn')).toBeUndefined()
  })

  test('many at once are each durable when accepted and keep the order of their conversation', async () => {
    const store = await open()
    const queue = queueOver(store)
    const all = Array.from({ length: 600 }, (_, n) => aMessage(`c${n % 7}`, String(n)))
    const answers = await Promise.all(all.map((message) => queue.accept(message)))
    expect(new Set(answers.map(({ id }) => id)).size).toBe(600)
    expect(await store.inbox.counts()).toEqual({ waiting: 600, running: 0 })
    const seen = new Map<string, number>()
    for (let message = await queue.claim('turn'); message !== undefined; message = await queue.claim('turn')) {
      expect(Number(message.text)).toBeGreaterThan(seen.get(message.conversationId) ?? -1)
      seen.set(message.conversationId, Number(message.text))
      await queue.finish(message, async () => {})
    }
    expect(await store.inbox.counts()).toEqual({ waiting: 0, running: 0 })
  })

  test('one that the database refuses does not take the others with it', async () => {
    const store = await open()
    const queue = queueOver(store)
    const bad = { ...aMessage('a', 'bad'), platform: null as unknown as string }
    const results = await Promise.allSettled([
      queue.accept(aMessage('a', 'first')),
      queue.accept(aMessage('a', 'second')),
      queue.accept(bad),
      queue.accept(aMessage('a', 'third')),
    ])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
  })

  test('what is recorded with the end is written exactly if the message is still ours', async () => {
    const store = await open()
    const queue = queueOver(store)
    await queue.accept(aMessage('a', 'hello'))
    const message = await queue.claim('turn')
    if (message === undefined) throw new Error('nothing was claimed')
    const said = {
      role: 'agent',
      text: 'hi',
      platform: 'test',
      conversationId: 'a',
      nextAttemptAt: 0,
      createdAt: 0,
    } as const
    await expect(
      queue.finish(message, async (inside) => {
        await inside.outbox.append([{ ...said, id: 'r1', inboxId: message.id, key: 'reply' }])
        throw new AppError('illegal-transition', 'in the middle')
      }),
    ).rejects.toThrow('in the middle')
    expect(await store.outbox.ofConversation(message, 10)).toEqual([])
    expect((await store.inbox.get(message.id))?.state).toBe('running')
    await queue.putBack(message)
    const late = await queue.finish(message, async (inside) => {
      await inside.outbox.append([{ ...said, id: 'r2', inboxId: message.id, key: 'reply' }])
    })
    expect(late).toBe(false)
    expect(await store.outbox.ofConversation(message, 10)).toEqual([])
  })

  test('what a dead holder had is put back, and its agent is ended first, with the children that lost it', async () => {
    const store = await open()
    const message = aMessage('a', 'hello')
    const gone = queueOver(store, { self: await aDeadProcess() })
    const { id } = await gone.accept(message)
    const claimed = await gone.claim('turn')
    if (claimed === undefined) throw new Error('nothing was claimed')
    // The agent has started a tool in a session of its own, which outlives it.
    const agent = spawn('sh', ['-c', 'setsid sleep 300 & echo $!; exec sleep 300'], {
      detached: true,
      env: { ...process.env, [runVariable]: runMarkId(HOME, id, 1) },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const [printed] = (await once(agent.stdout, 'data')) as [Buffer]
    const [child, orphan] = [identifySync(agent.pid ?? 0), identifySync(Number(String(printed).trim()))]
    if (child === undefined || orphan === undefined) throw new Error('they could not be identified')
    await gone.began(claimed, child)
    const queue = queueOver(store)
    expect(await queue.recover()).toEqual({ putBack: 1, left: 0 })
    expect([liveness(child), liveness(orphan)]).toEqual(['dead', 'dead'])
    const again = await queue.claim('turn')
    expect(again).toMatchObject({ id, attempts: 2, child: undefined })
    expect(await queue.recover()).toEqual({ putBack: 0, left: 0 })
  })

  test('what is put back in good order is run again and does not count as a run that ended us', async () => {
    const queue = queueOver(await open())
    await queue.accept(aMessage('a', 'long'))
    for (const time of [1, 2, 3, 4]) {
      const message = await queue.claim('turn')
      if (message === undefined) throw new Error('nothing was claimed')
      expect(message).toMatchObject({ attempts: time, putBacks: time - 1 })
      await queue.putBack(message)
    }
  })

  test("another host's message is left, since its process cannot be asked", async () => {
    const store = await open()
    const other = queueOver(store, { host: 'other-host', self: await aDeadProcess() })
    await other.accept(aMessage('a', 'hello'))
    await other.claim('turn')
    expect(await queueOver(store).recover()).toEqual({ putBack: 0, left: 1 })
  })

  test('a message whose agent cannot be ended is left', async () => {
    const store = await open()
    const gone = queueOver(store, { self: await aDeadProcess() })
    await gone.accept(aMessage('a', 'hello'))
    await gone.claim('turn')
    expect(await queueOver(store, { endRun: async () => false }).recover()).toEqual({ putBack: 0, left: 1 })
  })

  test('who waits is woken by an acceptance, an end and a recovery', async () => {
    const queue = queueOver(await open())
    let woken = 0
    const end = queue.onWake(() => (woken += 1))
    await queue.accept(aMessage('a', 'hello'))
    expect(woken).toBe(1)
    const message = await queue.claim('turn')
    if (message !== undefined) await queue.finish(message, async () => {})
    expect(woken).toBe(2)
    end()
    await queue.accept(aMessage('a', 'hello'))
    expect(woken).toBe(2)
  })

  test('a command that does not wait its turn is claimed beside a running message', async () => {
    const queue = queueOver(await open())
    await queue.accept(aMessage('a', 'work'))
    await queue.accept(aMessage('a', '/stop', 'at-once'))
    expect((await queue.claim('turn'))?.text).toBe('work')
    expect((await queue.claim('at-once'))?.text).toBe('/stop')
  })
})
