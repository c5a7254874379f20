import { App, type Receiver, type webApi } from '@slack/bolt'
import type { Logger } from '../../process/log.ts'
import { sdkLogger } from './client.ts'
import type { SlackSelf } from './message/parse.ts'

export type Events = {
  /** Resolves when every listener has; throws what a listener threw. */
  process(body: unknown, retry: number | undefined): Promise<void>
}

export type EventsParts = {
  readonly self: SlackSelf
  readonly botToken: string
  readonly options: webApi.WebClientOptions
  readonly log: Logger
  readonly onMessage: (body: unknown) => Promise<void>
}

/**
 * Bolt acknowledges an event before it calls a listener, when nothing is durable yet. So it gets a receiver whose
 * acknowledgement does nothing, and the caller acknowledges when processing is done.
 */
export const createEvents = ({ self, botToken, options, log, onMessage }: EventsParts): Events => {
  const receiver: Receiver = {
    init: () => undefined,
    start: async () => undefined,
    stop: async () => undefined,
  }
  const { userId: botUserId, botId, teamId } = self
  const app = new App({
    receiver,
    logger: sdkLogger(log),
    clientOptions: { ...options },
    convoStore: false,
    authorize: async () => ({ botToken, botUserId, teamId, ...(botId !== undefined && { botId }) }),
  })
  // Bolt's own handler rethrows too, after logging; we depend on the throw.
  app.error(async (error) => {
    throw error
  })
  app.event('app_mention', ({ body }) => onMessage(body))
  app.event('message', ({ body }) => onMessage(body))
  return {
    process: (body, retry) =>
      app.processEvent({
        body: body ?? {},
        ack: async () => undefined,
        ...(retry !== undefined && { retryNum: retry }),
      }),
  }
}
