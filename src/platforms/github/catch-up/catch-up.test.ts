import { RequestError } from 'octokit'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { memoryForTest } from '../../../../test/helpers/platform-memory.ts'
import { createLogger } from '../../../process/log.ts'
import { createCatchUp } from './catch-up.ts'
import type { CatchUpClient } from './client.ts'

/* When it looks; what it finds is in test/platforms/github-catch-up.test.ts. */

const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })
const MINUTE = 60_000

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const limited = (seconds: number): RequestError =>
  new RequestError('rate limit', 429, {
    request: { method: 'GET', url: 'https://api.github.com/app/hook/deliveries', headers: {} },
    response: {
      status: 429,
      url: 'https://api.github.com/app/hook/deliveries',
      headers: { 'retry-after': String(seconds) },
      data: {},
    },
  })

test('looks every ten minutes, but not before GitHub allows it again', async () => {
  const looks: number[] = []
  const start = Date.now()
  const attempts: CatchUpClient['attempts'] = async () => {
    looks.push((Date.now() - start) / MINUTE)
    if (looks.length === 1) throw limited(1_800)
    return { attempts: [], next: undefined }
  }
  const memory = memoryForTest()
  await memory.set('deliveries-looked-at', String(start - MINUTE))
  const catchUp = createCatchUp({
    client: { attempts } as CatchUpClient,
    isApp: true,
    memory,
    bot: () => 'coppice',
    handle: async () => undefined,
    clock: Date.now,
    log,
  })
  catchUp.start()
  await vi.advanceTimersByTimeAsync(51 * MINUTE)
  catchUp.stop()
  expect(looks).toEqual([0, 30, 40, 50])
})
