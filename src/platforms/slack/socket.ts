import { backoff } from '../../domain/backoff.ts'
import { untilAborted } from '../../domain/until-aborted.ts'
import { setTimeout as delay } from 'node:timers/promises'
import { SocketModeReceiver, type webApi } from '@slack/bolt'
import type { Logger } from '../../process/log.ts'
import type { SlackAnswer, SlackDelivery } from './delivery.ts'
import { isRefusal, sdkLogger, toDeliveryError } from './client.ts'

export type SocketParts = {
  readonly appToken: string
  readonly options: webApi.WebClientOptions
  readonly log: Logger
  /** Resolves when the delivery is durable; only then is it acknowledged, with what this resolves to. */
  readonly onDelivery: (delivery: SlackDelivery) => Promise<SlackAnswer>
  readonly onState: (state: 'connected' | 'connecting' | 'disconnected', problem?: string) => void
}

export type Socket = {
  /** Resolves once connected or waiting for Slack; throws if Slack refuses. Reconnects by itself. */
  start(): Promise<void>
  stop(): Promise<void>
}

/** From the call until Slack's `hello`. */
const HELLO_MS = 15_000
const FIRST_PAUSE_MS = 1_000
const MAX_PAUSE_MS = 30_000
/** How long to wait for Slack to close. */
const CLOSE_MS = 2_000

/**
 * Socket Mode with a new connection each time. The SDK can reconnect by itself, but its failures are then unhandled
 * rejections, which end the process: an hour of trouble at Slack would end the server.
 */
export const createSocket = ({ appToken, options, log, onDelivery, onState }: SocketParts): Socket => {
  let stopping: AbortController | undefined
  let accepting = false
  let working: Promise<void> | undefined
  const inFlight = new Set<Promise<void>>()

  const connect = (): Connection => {
    const receiver = new SocketModeReceiver({
      appToken,
      logger: sdkLogger(log),
      autoReconnectEnabled: false,
      // A copy: the SDK modifies it.
      installerOptions: { clientOptions: { ...options } },
    })
    const { client } = receiver
    const ended = new Promise<void>((resolve) => client.once('disconnected', () => resolve()))
    client.on('slack_event', (delivery: SocketDelivery) => {
      if (!accepting) return
      const work = receive(delivery)
      inFlight.add(work)
      void work.finally(() => inFlight.delete(work))
    })
    let closed = false
    const close = async (): Promise<void> => {
      closed = true
      await Promise.race([client.disconnect(), delay(CLOSE_MS, undefined, { ref: false })])
    }
    const start = async (signal: AbortSignal): Promise<void> => {
      const hello = async (): Promise<void> => {
        await client.start()
        // It connected after the timeout.
        if (closed) await close()
      }
      await Promise.race([hello(), tooLong(HELLO_MS), untilAborted(signal)])
      signal.throwIfAborted()
    }
    return { ended, start, close }
  }

  const receive = async ({ type, body, retry_num: retry, ack }: SocketDelivery): Promise<void> => {
    try {
      const kind = kinds[type]
      await ack(kind === undefined ? undefined : await onDelivery({ kind, body, retry }))
    } catch (error) {
      // Not acknowledged: Slack redelivers events, and duplicates are recognised. After a button or a slash command it
      // says that it didn't work.
      log.warn('a Slack delivery was not accepted', { type, error })
    }
  }

  const once = async (first: PromiseWithResolvers<void>, signal: AbortSignal): Promise<boolean> => {
    const connection = connect()
    const close = (): void => void connection.close().catch(() => undefined)
    try {
      await connection.start(signal)
      onState('connected')
      first.resolve()
      signal.addEventListener('abort', close, { once: true })
      if (signal.aborted) close()
      await connection.ended
      return true
    } catch (error) {
      close()
      if (isRefusal(error)) first.reject(error)
      first.resolve()
      if (!signal.aborted)
        onState('connecting', toDeliveryError(error ?? new Error('the connection was closed')).message)
      return false
    } finally {
      signal.removeEventListener('abort', close)
    }
  }

  const run = async (first: PromiseWithResolvers<void>, signal: AbortSignal): Promise<void> => {
    for (let failed = 0; !signal.aborted;) {
      // Slack recycles each connection after some hours, and says so: reconnect at once.
      failed = (await once(first, signal)) ? 0 : failed + 1
      if (signal.aborted) break
      onState('connecting')
      const pause = failed === 0 ? 0 : backoff(failed, { firstMs: FIRST_PAUSE_MS, longestMs: MAX_PAUSE_MS })
      await delay(pause, undefined, { signal }).catch(() => undefined)
    }
  }

  const stop = async (): Promise<void> => {
    accepting = false
    // Acknowledge them over the connection they came on, while it exists.
    await Promise.allSettled(inFlight)
    stopping?.abort()
    await working
    working = undefined
  }
  return {
    start: async () => {
      const first = Promise.withResolvers<void>()
      stopping = new AbortController()
      accepting = true
      onState('connecting')
      working = run(first, stopping.signal)
      try {
        await first.promise
      } catch (error) {
        await stop()
        throw error
      }
    },
    stop,
  }
}

type Connection = {
  readonly ended: Promise<void>
  readonly start: (signal: AbortSignal) => Promise<void>
  readonly close: () => Promise<void>
}

type SocketDelivery = {
  readonly type: string
  readonly body: unknown
  readonly retry_num?: number
  readonly ack: (answer?: SlackAnswer) => Promise<void>
}

/** Slack's names for them in Socket Mode. */
const kinds: Readonly<Record<string, SlackDelivery['kind']>> = {
  events_api: 'event',
  interactive: 'interaction',
  slash_commands: 'command',
}

const tooLong = async (ms: number): Promise<never> => {
  await delay(ms, undefined, { ref: false })
  throw new Error('Slack did not say hello in time')
}
