import { createRoute, z } from '@hono/zod-openapi'
import type { Change } from '../conversations/changes.ts'
import type { Redact } from '../process/redaction/redact.ts'
import type { ServerDeps } from './deps.ts'
import type { App } from './server-env.ts'
import { HttpError } from './errors.ts'
import { defaultLimits } from './limits.ts'
import { failures } from './routes.ts'
import { line } from './schemas.ts'
import type { Sessions } from './sessions.ts'

/** How many bytes a client may lag behind before it is disconnected, so that slow readers don't use up memory. */
const BUFFER_BYTES = 1_000_000

const route = createRoute({
  method: 'get',
  path: '/api/events',
  summary: 'Stream changes as server-sent events',
  description:
    'One event per change, named after its type. Earlier events are not replayed, and ' +
    '`Last-Event-ID` is ignored: after reconnecting, read the resources again. A comment every 15 s keeps the ' +
    "connection alive; a client that doesn't read is disconnected.",
  request: {
    query: z.strictObject({
      conversation: line(540)
        .refine((text) => /^[a-z][a-z0-9-]*:./.test(text), 'must be platform:id')
        .optional()
        .openapi({ description: 'Only this conversation: `platform:id`' }),
    }),
  },
  responses: {
    200: { description: 'The stream', content: { 'text/event-stream': { schema: z.string() } } },
    ...failures,
  },
})

export const addEvents = (
  app: App,
  { context: { changes, isolation }, stopping, limits }: ServerDeps,
  sessions: Sessions,
): void => {
  const most = limits?.eventStreams ?? defaultLimits.eventStreams
  let open = 0
  app.openapi(route, (c) => {
    if (open >= most) {
      throw new HttpError(429, 'too-many-requests', `too many event streams (limit: ${most})`, {
        headers: { 'Retry-After': '10' },
      })
    }
    const { conversation } = c.req.valid('query')
    const { outgoing } = c.env
    const { authenticated } = c.var
    const session = authenticated?.by === 'cookie' ? authenticated.session : undefined
    open += 1
    const stream = eventStream({
      subscribe: (listener) => changes.subscribe((change) => isAbout(change, conversation) && listener(change)),
      redact: isolation.secrets.redactKnown,
      stopping,
      ...(session !== undefined && {
        session: { isLive: () => sessions.isLive(session), onEnd: (listener) => sessions.onEnd(session, listener) },
      }),
      // Closing the stream would first wait for everything unread.
      disconnect: () => outgoing.destroy(),
      heartbeatMs: limits?.heartbeatMs ?? defaultLimits.heartbeatMs,
      onEnd: () => {
        open -= 1
      },
    })
    return c.body(stream, 200, { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' })
  })
}

const isAbout = (change: Change, conversation: string | undefined): boolean =>
  conversation === undefined ||
  ('conversationId' in change && `${change.platform}:${change.conversationId}` === conversation)

type StreamOptions = {
  readonly subscribe: (listener: (change: Change) => void) => () => void
  readonly redact: Redact
  readonly stopping: AbortSignal
  /** The session that opened it, unless it was the token. */
  readonly session?: { readonly isLive: () => Promise<boolean>; readonly onEnd: (listener: () => void) => () => void }
  readonly disconnect: () => void
  readonly heartbeatMs: number
  readonly onEnd: () => void
}

/** Subscribes before the first byte goes out: a client that has the response head misses nothing after it. */
const eventStream = ({
  subscribe,
  redact,
  stopping,
  session,
  disconnect,
  heartbeatMs,
  onEnd,
}: StreamOptions): ReadableStream<Uint8Array> => {
  const encoder = new TextEncoder()
  const ending = new AbortController()
  const end = (): void => {
    if (ending.signal.aborted) return
    ending.abort()
    onEnd()
  }
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        const write = (text: string): void => {
          if (ending.signal.aborted) return
          const bytes = encoder.encode(text)
          if ((controller.desiredSize ?? 0) >= bytes.length) return controller.enqueue(bytes)
          end()
          disconnect()
        }
        const finish = (): void => {
          if (ending.signal.aborted) return
          end()
          controller.close()
        }
        const unsubscribe = subscribe((change) =>
          write(`event: ${change.type}\ndata: ${redact(JSON.stringify(change))}\n\n`),
        )
        const beat = async (): Promise<void> => {
          // The session may have expired or ended elsewhere. If the store can't tell, the stream ends too.
          const isLive = session === undefined || (await session.isLive().catch(() => false))
          if (isLive) write(': still here\n\n')
          else finish()
        }
        const heartbeat = setInterval(() => void beat(), heartbeatMs).unref()
        const forget = session?.onEnd(finish)
        stopping.addEventListener('abort', finish, { once: true, signal: ending.signal })
        ending.signal.addEventListener('abort', () => {
          unsubscribe()
          forget?.()
          clearInterval(heartbeat)
        })
        write('retry: 2000\n: watching\n\n')
        if (stopping.aborted) finish()
      },
      cancel: end,
    },
    new ByteLengthQueuingStrategy({ highWaterMark: BUFFER_BYTES }),
  )
}
