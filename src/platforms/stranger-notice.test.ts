import { expect, test } from 'vitest'
import { memoryForTest } from '../../test/helpers/platform-memory.ts'
import { createLogger } from '../process/log.ts'
import { tellStranger } from './stranger-notice.ts'

const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })
const HOUR_MS = 60 * 60 * 1000

test('a stranger is told once a day, separately from others, with the ID to allow', async () => {
  let now = 0
  const told: string[] = []
  const parts = { memory: memoryForTest([], () => now), log }
  const tell = (userId: string | undefined): Promise<void> =>
    tellStranger(parts, userId, async (text) => void told.push(text))
  for (const at of [0, 1, 23]) {
    now = at * HOUR_MS
    await tell('U1')
  }
  await tell('U2')
  await tell(undefined)
  expect(told.map((text) => /user ID, (\w+)\./.exec(text)?.[1])).toEqual(['U1', 'U2'])
  now = 25 * HOUR_MS
  await tell('U1')
  expect(told).toHaveLength(3)
})

test('a whisper that fails is not repeated with the next message, and fails nothing', async () => {
  const parts = { memory: memoryForTest(), log }
  let tries = 0
  for (const _ of [1, 2]) {
    await tellStranger(parts, 'U1', () => {
      tries += 1
      return Promise.reject(new Error('no such channel'))
    })
  }
  expect(tries).toBe(1)
})
