import { createRoute, z } from '@hono/zod-openapi'
import { eventJson } from '../commands/views/fleet-events.ts'
import type { Change } from '../conversations/changes.ts'
import { type EventFilter, eventFilters } from '../domain/fleet/event-record.ts'
import { eventsAfter } from '../fleet/events/read.ts'
import type { ServerDeps } from './deps.ts'
import type { EventFeed } from './event-feed.ts'
import { eventStream } from './event-stream.ts'
import type { App } from './server-env.ts'
import { HttpError } from './errors.ts'
import { defaultLimits } from './limits.ts'
import { failures } from './routes.ts'
import { line } from './schemas.ts'
import type { Sessions } from './sessions.ts'

/** An event's number. */
const numberText = z
  .string()
  .regex(/^\d{1,15}$/, 'must be a whole number')
  .transform(Number)

const filter = z.enum(eventFilters as [EventFilter, ...EventFilter[]])

/** Stream at most this many in one piece. */
const STREAM_PAGE = 50

const route = createRoute({
  method: 'get',
  path: '/api/events',
  summary: 'Stream changes as server-sent events, or list events of the fleet',
  description:
    'One event per change, named after its type. Events of the fleet are named `fleet` and have their number as `id`: ' +
    '`Last-Event-ID` (or `after`) continues after that number. Other changes are not replayed: after reconnecting, ' +
    'read the resources again. With `after` or `kind`, only events of the fleet are streamed; with `conversation`, ' +
    "none of them. A comment every 15 s keeps the connection alive; a client that doesn't read is disconnected. " +
    'With `limit`, events of the fleet are returned as JSON instead.',
  request: {
    query: z.strictObject({
      conversation: line(540)
        .refine((text) => /^[a-z][a-z0-9-]*:./.test(text), 'must be platform:id')
        .optional()
        .openapi({ description: 'Only this conversation: `platform:id`' }),
      after: numberText.optional().openapi({ description: 'Only events after this number' }),
      limit: numberText
        .refine((limit) => limit >= 1 && limit <= 1_000, 'must be from 1 to 1000')
        .optional()
        .openapi({ description: 'Return at most this many as JSON' }),
      kind: z
        .union([filter, z.array(filter).max(eventFilters.length)])
        .optional()
        .openapi({ description: 'Only events of this kind (repeatable), or those that need a person: `needs-you`' }),
    }),
  },
  responses: {
    200: {
      description: 'The stream; with `limit`, the events, and the number to continue after',
      content: {
        'text/event-stream': { schema: z.string() },
        'application/json': {
          schema: z.object({ events: z.array(z.record(z.string(), z.unknown())), next: z.number() }),
        },
      },
    },
    ...failures,
  },
})

export const addEvents = (
  app: App,
  { context: { changes, isolation }, stopping, limits }: ServerDeps,
  sessions: Sessions,
  feed: EventFeed,
): void => {
  const most = limits?.eventStreams ?? defaultLimits.eventStreams
  const { store, secrets } = isolation
  let open = 0
  app.openapi(route, async (c) => {
    const { conversation, after, limit, kind = [] } = c.req.valid('query')
    const wanted = Array.isArray(kind) ? kind : [kind]
    const read = (from: number, atMost: number) => eventsAfter(store, from, { limit: atMost, wanted })
    if (limit !== undefined) {
      const { events, next } = await read(after ?? 0, limit)
      return c.json({ events: events.map(eventJson), next }, 200)
    }
    if (open >= most) {
      throw new HttpError(429, 'too-many-requests', `too many event streams (limit: ${most})`, {
        headers: { 'Retry-After': '10' },
      })
    }
    open += 1
    const close = (): void => {
      open -= 1
    }
    // A client that reconnects has read more than its URL says.
    const seen = numberText.safeParse(c.req.header('last-event-id')).data ?? after
    const start = seen ?? (await store.events.latest().catch(failAfter(close)))
    const { outgoing } = c.env
    const { authenticated } = c.var
    const session = authenticated?.by === 'cookie' ? authenticated.session : undefined
    const onlyRecorded = after !== undefined || wanted.length > 0
    const stream = eventStream({
      subscribe: (listener) =>
        onlyRecorded
          ? () => undefined
          : changes.subscribe((change) => isAbout(change, conversation) && listener(change)),
      recorded:
        conversation === undefined
          ? { after: start, read: (from) => read(from, STREAM_PAGE), subscribe: (listener) => feed.subscribe(listener) }
          : undefined,
      redact: secrets.redactKnown,
      stopping,
      ...(session !== undefined && {
        session: { isLive: () => sessions.isLive(session), onEnd: (listener) => sessions.onEnd(session, listener) },
      }),
      // Closing the stream would first wait for everything unread.
      disconnect: () => outgoing.destroy(),
      heartbeatMs: limits?.heartbeatMs ?? defaultLimits.heartbeatMs,
      onEnd: close,
    })
    return c.body(stream, 200, { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' })
  })
}

const failAfter =
  (close: () => void) =>
  (error: unknown): never => {
    close()
    throw error
  }

const isAbout = (change: Change, conversation: string | undefined): boolean =>
  conversation === undefined ||
  ('conversationId' in change && `${change.platform}:${change.conversationId}` === conversation)
