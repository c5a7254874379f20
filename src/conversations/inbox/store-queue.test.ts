import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { selfIdentity } from '../../process/identity.ts'
import { createLogger } from '../../process/log.ts'
import { openStore } from '../../store/open.ts'
import type { Store } from '../../store/store.ts'
import { createStoreQueue } from './store-queue.ts'

test('what arrives while the sockets are being read is written with one flush, in the order of arrival', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'coppice-queue-'))
  const store = await openStore({ sqliteFile: join(directory, 'coppice.db') })
  try {
    const batches: number[] = []
    const accept: Store['inbox']['accept'] = (messages) => {
      batches.push(messages.length)
      return store.inbox.accept(messages)
    }
    const queue = queueOver({ ...store, inbox: { ...store.inbox, accept } })
    // Each in a turn of its own, as requests of different connections are.
    const answers = await Promise.all(
      Array.from(
        { length: 20 },
        (_, n) =>
          new Promise((resolve) => {
            setImmediate(() => resolve(queue.accept(message(n))))
          }),
      ),
    )
    expect(answers).toEqual(Array.from({ length: 20 }, (_, n) => ({ outcome: 'accepted', id: `id-${n}` })))
    expect(batches).toEqual([20])
    const kept = await store.inbox.ofConversation({ platform: 'test', conversationId: 'c' }, 100)
    expect(kept.map(({ text }) => text)).toEqual(Array.from({ length: 20 }, (_, n) => `text ${n}`))
  } finally {
    await store.close()
    rmSync(directory, { recursive: true, force: true })
  }
})

const queueOver = (store: Store) => {
  let made = 0
  return createStoreQueue({
    store,
    host: 'this-host',
    self: selfIdentity(),
    clock: Date.now,
    ids: () => `id-${made++}`,
    log: createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text }),
    failpoint: async () => undefined,
    endRun: async () => true,
  })
}

const message = (n: number) =>
  ({
    platform: 'test',
    conversationId: 'c',
    deliveryId: `d${n}`,
    kind: 'message',
    text: `text ${n}`,
    details: {},
    lane: 'turn',
  }) as const
