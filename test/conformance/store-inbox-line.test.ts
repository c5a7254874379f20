import { sql } from 'kysely'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { Database } from '../../src/store/engine.ts'
import type { Store } from '../../src/store/store.ts'
import { type EngineUnderTest, onEachEngine } from '../helpers/store-engines.ts'
import { aHolder, aMessage } from '../helpers/store-values.ts'

/** Two change one conversation's line at the same moment: each half-way when the other begins. */

const me = aHolder(1)
type Opened = Store & { readonly database: Database }

const start = async (engine: EngineUnderTest): Promise<[Opened, Opened]> => {
  const target = await engine.fresh()
  return [await engine.open(target), await engine.open(target)]
}

const next = async ({ inbox }: Store): Promise<string | undefined> =>
  (await inbox.claim({ lane: 'turn', holder: me }))?.id.replace('message-', '')

onEachEngine((engine) => {
  describe('a line', () => {
    test('does not forget who joins while the first leaves', async () => {
      const [left, right] = await start(engine)
      await left.inbox.accept([aMessage('a')])
      expect(await next(left)).toBe('a')
      const leaving = await left.transaction(async (inside) => {
        await inside.inbox.accept([aMessage('b')])
        return begun(right, right.inbox.transition('message-a', 'running', 'done', me))
      })
      expect(await leaving()).toBe(true)
      expect(await next(right)).toBe('b')
    })

    test('does not forget who joins after the first has left and before that is seen', async () => {
      const [left, right] = await start(engine)
      await left.inbox.accept([aMessage('a')])
      expect(await next(left)).toBe('a')
      const joining = await left.transaction(async (inside) => {
        await inside.inbox.transition('message-a', 'running', 'done', me)
        return begun(right, right.inbox.accept([aMessage('b')]))
      })
      expect(await joining()).toEqual(new Set(['message-b']))
      expect(await next(right)).toBe('b')
    })

    test('keeps the order of two that join at once', async () => {
      const [left, right] = await start(engine)
      const joining = await left.transaction(async (inside) => {
        await inside.inbox.accept([aMessage('a')])
        return begun(right, right.inbox.accept([aMessage('b')]))
      })
      await joining()
      expect(await next(right)).toBe('a')
      expect(await next(right)).toBeUndefined()
      await right.inbox.transition('message-a', 'running', 'done', me)
      expect(await next(right)).toBe('b')
    })

    test('is locked with others in one order, whatever the order of the messages', async () => {
      const [left, right] = await start(engine)
      const threads = Array.from({ length: 300 }, (_, index) => `thread-${index}`)
      const batch = (key: string, order: readonly string[]) =>
        order.map((conversationId) => aMessage(`${key}-${conversationId}`, { conversationId }))
      for (const round of ['1', '2', '3']) {
        const answers = await Promise.all([
          left.inbox.accept(batch(`l${round}`, threads)),
          right.inbox.accept(batch(`r${round}`, threads.toReversed())),
        ])
        expect(answers.map(({ size }) => size)).toEqual([300, 300])
      }
    })
  })
})

/** Answers once it is over or waits for a lock. SQLite's other connection cannot have begun while we write. */
const begun = async <T>({ database }: Opened, work: Promise<T>): Promise<() => Promise<T>> => {
  const ended = Promise.allSettled([work]).then(() => 'ended')
  const waits = async (): Promise<boolean> => {
    const { rows } = await sql<{ n: number }>`
      select count(*) as n from pg_locks as l join pg_database as d on d.oid = l.database
      where not l.granted and d.datname = current_database()`.execute(database.db)
    return (rows[0]?.n ?? 0) > 0
  }
  if (database.engine.name === 'postgres') {
    while ((await Promise.race([ended, pause(2)])) !== 'ended' && !(await waits()));
  }
  // Wrapped: a promise that is returned from inside the transaction would be waited for there.
  return () => work
}
