import { setTimeout as delay } from 'node:timers/promises'
import type { Change } from '../../conversations/changes.ts'
import { AppError } from '../../domain/errors.ts'
import type { HistoryEntry } from '../../platforms/history.ts'
import { readEventStream } from '../event-stream.ts'
import { answersTo, type Exchange } from './exchange.ts'
import { coppice, remedy } from '../../domain/remedy.ts'

export type ServerAddress = { readonly url: string; readonly token: string }

/**
 * Sends the message to the running server, follows its events and reads the reply from the record. A broken stream
 * costs only the live view: the record is polled until the message is done.
 */
export const exchangeThrough =
  ({ url, token }: ServerAddress): Exchange =>
  async ({ conversationId, deliveryId, text, codebase, move, agent }, watch, signal) => {
    const call = caller(url, token)
    const path = `/api/conversations/${encodeURIComponent(conversationId)}`
    const watching = new AbortController()
    const stream = await openEvents(call, `cli:${conversationId}`, AbortSignal.any([signal, watching.signal]))
    try {
      const body = {
        message: text,
        deliveryId,
        ...(codebase !== undefined && { codebase }),
        ...(move && { move }),
        ...(agent !== undefined && { agent }),
      }
      const accepted = (await call(`${path}/messages?platform=cli`, { method: 'POST', body })) as { id: string }
      const done = follow(stream, accepted.id, watch)
      const onAbort = (): void => void call(`${path}/stop?platform=cli`, { method: 'POST' }).catch(() => undefined)
      signal.addEventListener('abort', onAbort, { once: true })
      for (;;) {
        await within(done, LOOK_MS)
        const told = (await call(`${path}/messages?platform=cli`, {})) as (Omit<HistoryEntry, 'at'> & { at: string })[]
        const history = told.map((entry) => ({ ...entry, at: Date.parse(entry.at) }))
        const answers = answersTo(history, accepted.id)
        if (answers !== undefined) return answers
        await delay(SHORT_MS)
      }
    } finally {
      watching.abort()
    }
  }

const LOOK_MS = 2_000
const SHORT_MS = 30

/** Until done or timed out. A leftover timer would keep the process alive. */
const within = async (done: Promise<void>, ms: number): Promise<void> => {
  const timer = new AbortController()
  await Promise.race([done, delay(ms, undefined, { signal: timer.signal }).catch(() => undefined)])
  timer.abort()
}

type Caller = (path: string, request: { method?: string; body?: unknown }) => Promise<unknown>

const caller = (
  url: string,
  token: string,
): Caller & { raw: (path: string, signal: AbortSignal) => Promise<Response> } => {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const call: Caller = async (path, { method = 'GET', body }) => {
    const response = await fetch(new URL(path, url), {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }).catch((cause: unknown) => {
      throw new AppError('unexpected', `no response from the server at ${url}`, {
        cause,
        remedy: remedy`check that it is running; if you stop it, ${coppice('chat')} does the work itself`,
      })
    })
    const answer: unknown = await response.json().catch(() => undefined)
    if (!response.ok) throw refusal(response.status, answer)
    return answer
  }
  return Object.assign(call, {
    raw: (path: string, signal: AbortSignal) => fetch(new URL(path, url), { headers, signal }),
  })
}

const refusal = (status: number, answer: unknown): AppError => {
  const error = (answer as { error?: { message?: unknown; remedies?: unknown } } | undefined)?.error
  const message = typeof error?.message === 'string' ? error.message : `the server returned status ${status}`
  const [remedy]: unknown[] = Array.isArray(error?.remedies) ? error.remedies : []
  return new AppError(status === 400 ? 'usage' : 'unexpected', message, typeof remedy === 'string' ? { remedy } : {})
}

const openEvents = async (
  call: ReturnType<typeof caller>,
  conversation: string,
  signal: AbortSignal,
): Promise<Response> => {
  const response = await call
    .raw(`/api/events?conversation=${encodeURIComponent(conversation)}`, signal)
    .catch((cause: unknown) => {
      throw new AppError('unexpected', 'no response from the server', { cause, remedy: 'check that it is running' })
    })
  if (!response.ok) throw refusal(response.status, await response.json().catch(() => undefined))
  return response
}

/** Forwards events; resolves when the message is done or the stream ends. */
const follow = (response: Response, id: string, watch: (change: Change) => void): Promise<void> => {
  const done = Promise.withResolvers<void>()
  void readEventStream(response, (data) => {
    const change = data as Change
    watch(change)
    if (change.type === 'message' && change.id === id && change.state === 'done') done.resolve()
  }).then(done.resolve)
  return done.promise
}
