import { randomUUID } from 'node:crypto'
import { createDiscordPlatform } from '../../../src/platforms/discord/platform.ts'
import type { Platform } from '../../../src/platforms/platform.ts'
import { createLogger } from '../../../src/process/log.ts'
import { memoryForTest } from '../platform-memory.ts'
import { until } from '../server-process.ts'
import { startDiscord } from './double.ts'
import { alice, mallory } from './state.ts'

type Delivered = { readonly conversationId: string; readonly deliveryId: string; readonly text: string }

/**
 * Discord for the suite over all platforms. Its gateway is not acknowledged to; what a person sees is: the bot begins to
 * write once their message is durable, or says that it could not be recorded.
 */
export const discordCandidate = async (): Promise<{
  readonly platform: Platform
  readonly deliver: (message: Delivered) => Promise<void>
  readonly deliverFromStranger: (text: string) => Promise<void>
  readonly arrived: () => readonly { readonly conversationId: string; readonly text: string }[]
  readonly sendsOnce: boolean
  readonly breakService: (how: 'refused' | 'unreachable') => void
  readonly close: () => Promise<void>
}> => {
  const discord = await startDiscord()
  const conversationId = 'conversation-1'
  discord.state.addChannel({ id: conversationId, type: 1 })
  const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })
  const own = { botToken: discord.token, allowedUsers: [alice.id], apiUrl: discord.apiUrl }
  const platform = await createDiscordPlatform(
    own,
    { log, clock: Date.now, ids: randomUUID, memory: memoryForTest() },
    { requestTimeoutMs: 1_000 },
  )
  const written = (): number => discord.rest.calls.filter(({ path }) => path.endsWith('/typing')).length
  // What was shown for the first delivery isn't shown again for the second.
  let repeated = 0
  const adapted: Platform = {
    ...platform,
    start: (inbox) =>
      platform.start({
        ...inbox,
        accept: async (order, by) => {
          const accepted = await inbox.accept(order, by)
          if (accepted.outcome === 'duplicate') repeated += 1
          return accepted
        },
      }),
  }
  return {
    platform: adapted,
    deliver: async ({ conversationId: channel, deliveryId, text }) => {
      if (discord.gateway.connections === 0) throw new Error('the bot is not there')
      const before = { repeated, written: written(), said: discord.saidIn(channel).length }
      discord.say(text, { in: channel, direct: true, message: { id: deliveryId } })
      await until('the bot has answered', async () => {
        if (discord.saidIn(channel).length > before.said) throw new Error(discord.saidIn(channel).at(-1))
        return written() > before.written || repeated > before.repeated || undefined
      })
    },
    // What allowed users say in the channel afterwards is handed over after it.
    deliverFromStranger: async (text) => {
      discord.say(text, { in: conversationId, by: mallory, direct: true })
    },
    arrived: () => discord.saidIn(conversationId).map((text) => ({ conversationId, text })),
    sendsOnce: true,
    breakService: (how) =>
      discord.breakSending(how === 'refused' ? { how, status: 403, code: 50_013 } : { how: 'error', status: 500 }),
    close: () => discord.close(),
  }
}
