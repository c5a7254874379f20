import type { Accepted, Platform, PlatformInbox } from '../../src/platforms/platform.ts'
import type { TelegramSettings } from '../../src/platforms/telegram/settings.ts'
import { createTelegramPlatform, type Pace } from '../../src/platforms/telegram/platform.ts'
import { createLogger } from '../../src/process/log.ts'
import type { PlatformMemory } from '../../src/platforms/memory.ts'
import { memoryForTest } from '../helpers/platform-memory.ts'
import { inboxOf, type Received } from '../helpers/inbox.ts'
import { ada, startTelegramDouble, type TelegramDouble, TOKEN } from './telegram-double.ts'

export type TelegramScene = {
  readonly telegram: TelegramDouble
  readonly platform: Platform
  readonly received: Received[]
  readonly log: string[]
  /** How far the platform's clock is ahead. */
  readonly time: { offset: number }
  readonly inbox: PlatformInbox
  [Symbol.asyncDispose](): Promise<void>
}

export type TelegramSceneOptions = {
  readonly settings?: TelegramSettings
  readonly accept?: (message: Received, nth: number) => Promise<Accepted>
  readonly memory?: PlatformMemory
  readonly pace?: Partial<Pace>
  /** One that outlives the scene. */
  readonly telegram?: TelegramDouble
}

/** Not started yet. */
export const telegramScene = async (options: TelegramSceneOptions = {}): Promise<TelegramScene> => {
  const telegram = options.telegram ?? (await startTelegramDouble())
  const received: Received[] = []
  const log: string[] = []
  const time = { offset: 0 }
  const settings = { apiUrl: telegram.apiUrl, ...options.settings }
  const platform = await telegramOver(settings, log, { ...options, clock: () => Date.now() + time.offset })
  const accept = options.accept ?? (async (_message, nth) => ({ outcome: 'accepted', id: `id-${nth}` }))
  return {
    telegram,
    platform,
    received,
    log,
    time,
    inbox: inboxOf((message) => {
      received.push(message)
      return accept(message, received.length)
    }),
    [Symbol.asyncDispose]: async () => {
      await platform.stop()
      if (options.telegram === undefined) await telegram.close()
    },
  }
}

/** In a hurry: what takes seconds with the real one takes milliseconds here. */
export const telegramOver = (
  telegram: TelegramSettings,
  log: string[] = [],
  {
    clock = Date.now,
    memory = memoryForTest(),
    pace = {},
  }: { clock?: () => number; memory?: PlatformMemory; pace?: Partial<Pace> } = {},
): Promise<Platform> =>
  createTelegramPlatform(
    { botToken: TOKEN, allowedUsers: [String(ada.id)], ...telegram },
    {
      clock,
      memory,
      log: createLogger({ write: (line) => log.push(line), level: 'debug', clock: Date.now, redact: (text) => text }),
    },
    { requestTimeoutMs: 1_500, previewEveryMs: 20, pauseMs: 10, retryMs: 20, joinMs: 50, ...pace },
  )
