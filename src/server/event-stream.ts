import type { Change } from '../conversations/changes.ts'
import type { EventRecord } from '../domain/fleet/event-record.ts'
import { eventJson } from '../commands/views/fleet-events.ts'
import type { EventPage } from '../fleet/events/read.ts'
import type { Redact } from '../process/redaction/redact.ts'

/** How many bytes a client may lag behind before it is disconnected, so that slow readers don't use up memory. */
const BUFFER_BYTES = 1_000_000

export type StreamOptions = {
  readonly subscribe: (listener: (change: Change) => void) => () => void
  /** Undefined: without events of the fleet. */
  readonly recorded: RecordedEvents | undefined
  readonly redact: Redact
  readonly stopping: AbortSignal
  /** The session that opened it, unless it was the token. */
  readonly session?: { readonly isLive: () => Promise<boolean>; readonly onEnd: (listener: () => void) => () => void }
  readonly disconnect: () => void
  readonly heartbeatMs: number
  readonly onEnd: () => void
}

/** The events of the fleet: read from the store as fast as the client reads them. */
export type RecordedEvents = {
  /** The number of the last event that the client has. */
  readonly after: number
  readonly read: (after: number) => Promise<EventPage>
  /** Calls back when there may be more. */
  readonly subscribe: (listener: () => void) => () => void
}

/** Subscribes before the first byte goes out: a client that has the response head misses nothing after it. */
export const eventStream = ({
  subscribe,
  recorded,
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
  let onRead: () => void = () => undefined
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
        const writeRecorded = async (record: EventRecord): Promise<void> => {
          const data = redact(JSON.stringify(eventJson(record)))
          const bytes = encoder.encode(`id: ${record.number}\nevent: fleet\ndata: ${data}\n\n`)
          // Room is left for what doesn't wait. The queue takes one that is larger than all of it once it is empty.
          while (!ending.signal.aborted && (controller.desiredSize ?? 0) < Math.min(2 * bytes.length, BUFFER_BYTES)) {
            await new Promise<void>((resolve) => {
              onRead = resolve
            })
          }
          if (!ending.signal.aborted) controller.enqueue(bytes)
        }
        const beat = async (): Promise<void> => {
          // The session may have expired or ended elsewhere. If the store can't tell, the stream ends too.
          const isLive = session === undefined || (await session.isLive().catch(() => false))
          if (isLive) write(': still here\n\n')
          else finish()
        }
        const heartbeat = setInterval(() => void beat(), heartbeatMs).unref()
        const forget = session?.onEnd(finish)
        stopping.addEventListener('abort', finish, { once: true, signal: ending.signal })
        const stopFollowing =
          recorded && follow(recorded, { write: writeRecorded, ending: ending.signal, fail: finish })
        ending.signal.addEventListener('abort', () => {
          unsubscribe()
          stopFollowing?.()
          onRead()
          forget?.()
          clearInterval(heartbeat)
        })
        write('retry: 2000\n: watching\n\n')
        if (stopping.aborted) finish()
      },
      pull: () => onRead(),
      cancel: end,
    },
    new ByteLengthQueuingStrategy({ highWaterMark: BUFFER_BYTES }),
  )
}

type Following = {
  readonly write: (record: EventRecord) => Promise<void>
  readonly ending: AbortSignal
  readonly fail: () => void
}

/** Writes what is recorded from now on, in order. Returns a function that stops. */
const follow = ({ after, read, subscribe }: RecordedEvents, { write, ending, fail }: Following): (() => void) => {
  let position = after
  let isWanted = false
  let running: Promise<void> | undefined
  const run = async (): Promise<void> => {
    do {
      isWanted = false
      const { events, next } = await read(position)
      for (const record of events) await write(record)
      isWanted ||= next !== position
      position = next
    } while (isWanted && !ending.aborted)
    running = undefined
  }
  // If the store fails, the client reconnects with the number of the last event it got.
  const look = (): void => {
    isWanted = true
    running ??= run().catch(fail)
  }
  const unsubscribe = subscribe(look)
  look()
  return unsubscribe
}
