import type { Accepted, Platform, PlatformInbox } from '../../src/platforms/platform.ts'
import type { TelegramSettings } from '../../src/platforms/telegram/settings.ts'
import { createTelegramPlatform } from '../../src/platforms/telegram/platform.ts'
import { createLogger } from '../../src/process/log.ts'
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
}

/** Not started yet. */
export const telegramScene = async (options: TelegramSceneOptions = {}): Promise<TelegramScene> => {
  const telegram = await startTelegramDouble()
  const received: Received[] = []
  const log: string[] = []
  const time = { offset: 0 }
  const settings = { apiUrl: telegram.apiUrl, ...options.settings }
  const platform = await telegramOver(settings, log, () => Date.now() + time.offset)
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
      await telegram.close()
    },
  }
}

/** In a hurry: what takes seconds with the real one takes milliseconds here. */
export const telegramOver = (
  telegram: TelegramSettings,
  log: string[] = [],
  clock: () => number = Date.now,
): Promise<Platform> =>
  createTelegramPlatform(
    { botToken: TOKEN, allowedUsers: [String(ada.id)], ...telegram },
    {
      clock,
      log: createLogger({ write: (line) => log.push(line), level: 'debug', clock: Date.now, redact: (text) => text }),
    },
    { requestTimeoutMs: 1_500, previewEveryMs: 20, pauseMs: 10, retryMs: 20 },
  )
