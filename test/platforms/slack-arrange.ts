import type { Accepted, Platform, PlatformInbox } from '../../src/platforms/platform.ts'
import type { SlackSettings } from '../../src/platforms/slack/settings.ts'
import { createSlackPlatform } from '../../src/platforms/slack/platform.ts'
import { createLogger } from '../../src/process/log.ts'
import type { PlatformMemory } from '../../src/platforms/memory.ts'
import { inboxOf, type Received } from '../helpers/inbox.ts'
import { memoryForTest } from '../helpers/platform-memory.ts'
import { APP_TOKEN, BOT_TOKEN, type SlackDouble, startSlackDouble } from './slack-double.ts'

export const SECRET = 'slack-signing-secret'

export type SlackScene = {
  readonly slack: SlackDouble
  readonly platform: Platform
  readonly received: Received[]
  readonly log: string[]
  readonly inbox: PlatformInbox
  /** How far the platform's clock is ahead. */
  readonly time: { offset: number }
  [Symbol.asyncDispose](): Promise<void>
}

export type SlackSceneOptions = {
  readonly settings?: SlackSettings
  readonly accept?: (message: Received, nth: number) => Promise<Accepted>
  readonly slack?: SlackDouble
  /** Of an earlier scene: it outlives the platform. */
  readonly memory?: PlatformMemory
}

/** Socket Mode and signed HTTP at once, over a Slack of our own. Not started yet. */
export const slackScene = async (options: SlackSceneOptions = {}): Promise<SlackScene> => {
  const slack = options.slack ?? (await startSlackDouble())
  const received: Received[] = []
  const log: string[] = []
  const time = { offset: 0 }
  const platform = await createSlackPlatform(
    {
      botToken: BOT_TOKEN,
      appToken: APP_TOKEN,
      signingSecret: SECRET,
      allowedUsers: ['U1', 'U2'],
      apiUrl: slack.apiUrl,
      ...options.settings,
    },
    {
      clock: () => Date.now() + time.offset,
      memory: options.memory ?? memoryForTest(),
      log: createLogger({ write: (line) => log.push(line), level: 'debug', clock: Date.now, redact: (text) => text }),
    },
  )
  const accept = options.accept ?? (async (_message, nth) => ({ outcome: 'accepted', id: `id-${nth}` }))
  const inbox = inboxOf((message) => {
    received.push(message)
    return accept(message, received.length)
  })
  return {
    slack,
    platform,
    received,
    log,
    inbox,
    time,
    [Symbol.asyncDispose]: async () => {
      await platform.stop()
      await slack[Symbol.asyncDispose]()
    },
  }
}
