import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { z } from 'zod'
import type { Clock } from '../../domain/clock.ts'
import type { Logger } from '../../process/log.ts'
import { createLastSeen, missedSince } from '../catch-up.ts'
import type { PlatformMemory } from '../memory.ts'
import type { GatewaySession } from './gateway.ts'
import { isLater, snowflakeAt, snowflakeTime } from './snowflake.ts'

/** Our position, kept across restarts: the gateway's session, and the newest event that was passed on. */
export type Checkpoint = {
  /** The session that an earlier process saved. */
  load(): Promise<Resumable | undefined>
  /** The ID of something that arrived. */
  note(id: string): void
  /** Where reading begins after a gap; undefined: this is the first start. */
  since(): Promise<string | undefined>
  /** Only while connected, and once all gaps are read. `settled`: everything that arrived so far is passed on. */
  save(resumable: Resumable, settled: () => Promise<void>): Promise<void>
}

/** A session, and what its READY said. */
export type Resumable = { readonly session: GatewaySession; readonly self: string; readonly application: string }

const PLACE = 'gateway'
const KEY = 'session'

const stored = z.object({
  /** Which bot's it is: the token may have been replaced. */
  bot: z.string(),
  self: z.string(),
  application: z.string(),
  session: z.object({
    sessionId: z.string(),
    resumeURL: z.string(),
    sequence: z.int(),
    shardCount: z.int(),
  }),
})

export const createCheckpoint = (
  memory: Pick<PlatformMemory, 'get' | 'set'>,
  { token, clock, log }: { readonly token: string; readonly clock: Clock; readonly log: Logger },
): Checkpoint => {
  const lastSeen = createLastSeen(memory, { isLater, msOf: snowflakeTime })
  const bot = createHash('sha256').update(token).digest('base64url').slice(0, 16)
  let newest = ''
  return {
    load: async () => {
      try {
        const text = await memory.get(KEY)
        const found = text === undefined ? undefined : stored.parse(JSON.parse(text))
        return found?.bot === bot ? found : undefined
      } catch (error) {
        log.warn("the previous connection to Discord can't be resumed", { error })
        return undefined
      }
    },
    note: (id) => {
      if (/^\d{1,20}$/.test(id) && isLater(id, newest)) newest = id
    },
    since: async () => {
      const mark = await lastSeen.get(PLACE)
      return mark === undefined ? undefined : snowflakeAt(missedSince(snowflakeTime(mark), clock(), MINUTE_MS))
    },
    save: async (resumable, settled) => {
      const mark = newest
      // The SDK counts an event a moment before it passes it on.
      await setImmediate()
      await settled()
      await memory.set(KEY, JSON.stringify({ ...resumable, bot }))
      if (mark !== '') await lastSeen.advanceLive(PLACE, mark)
      else await lastSeen.advance(PLACE, snowflakeAt(clock() - MINUTE_MS))
    },
  }
}

/** Our clock may differ from Discord's. */
const MINUTE_MS = 60_000
