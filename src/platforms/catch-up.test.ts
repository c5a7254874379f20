import { expect, test } from 'vitest'
import { memoryForTest } from '../../test/helpers/platform-memory.ts'
import { catchUp, createLastSeen } from './catch-up.ts'

const isLater = (mark: string, than: string): boolean => Number(mark) > Number(than)

const after = (all: readonly string[]) =>
  async function* (since: string) {
    for (const one of all) if (isLater(one, since)) yield one
  }

test('a mark moves forward only, also when events arrive together and out of order', async () => {
  const seen = createLastSeen(memoryForTest(), isLater)
  await Promise.all(['10', '9', '12', '11'].map((mark) => seen.advance('C1', mark)))
  expect(await seen.get('C1')).toBe('12')
  expect(await seen.get('C2')).toBe(undefined)
})

test('what was missed is handled once, oldest first, and what could not be stored is read again', async () => {
  const memory = memoryForTest()
  const handled: string[] = []
  let fails = true
  const run = () =>
    catchUp({
      // As after a restart.
      lastSeen: createLastSeen(memory, isLater),
      place: 'C1',
      read: after(['1', '2', '3', '4']),
      markOf: (message) => message,
      handle: async (message) => {
        if (message === '3' && fails) throw new Error('the store is away')
        handled.push(message)
      },
    })
  expect(await run()).toEqual({ handled: 0, complete: true })
  await createLastSeen(memory, isLater).advance('C1', '1')
  await expect(run()).rejects.toThrow('the store is away')
  fails = false
  expect(await run()).toEqual({ handled: 2, complete: true })
  expect(await run()).toEqual({ handled: 0, complete: true })
  expect(handled).toEqual(['2', '3', '4'])
})

test('no more is read than asked for, and it is said that there was more', async () => {
  const lastSeen = createLastSeen(memoryForTest(), isLater)
  await lastSeen.advance('C1', '0')
  const handled: string[] = []
  const parts = { lastSeen, place: 'C1', read: after(['1', '2', '3']), markOf: (mark: string) => mark }
  const handle = async (mark: string): Promise<void> => void handled.push(mark)
  expect(await catchUp({ ...parts, handle, most: 2 })).toEqual({ handled: 2, complete: false })
  expect(await catchUp({ ...parts, handle, most: 2 })).toEqual({ handled: 1, complete: true })
  expect(handled).toEqual(['1', '2', '3'])
})
