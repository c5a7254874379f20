import { createHmac } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'

/*
 * A Slack of our own, for what no public one has: Socket Mode, and every way to fail. It speaks Slack's wire protocol:
 * the Web API over HTTP, `apps.connections.open`, and envelopes with acknowledgements over a WebSocket.
 */

export type Posted = {
  readonly channel: string
  readonly ts: string
  readonly thread_ts: string | undefined
  readonly user: string
  text: string
  metadata: unknown
}

/** `lose`: it is done, and the answer is lost. `hang`: nothing is ever answered. */
export type Fault =
  | { readonly error: string }
  | { readonly status: number; readonly retryAfter?: number }
  | { readonly page: string }
  | 'lose'
  | 'hang'

export type SlackDouble = {
  /** For SLACK_API_URL. */
  readonly apiUrl: string
  readonly calls: { readonly method: string; readonly body: Readonly<Record<string, string>>; readonly token: string }[]
  /** What stands in the workspace, in order. */
  readonly messages: Posted[]
  /** Said by a person, so that it is found in the thread. */
  say(channel: string, user: string, text: string, threadTs?: string): Posted
  /** The next calls of this method go wrong in these ways, one after the other; `for ever`: until healed. */
  fail(method: string, faults: readonly Fault[], forEver?: boolean): void
  heal(): void
  /** Over the newest connection, as Slack does it; answers when it is acknowledged. */
  deliver(payload: unknown, more?: Readonly<Record<string, unknown>>): Promise<void>
  /** Over the newest connection, without an envelope around it. */
  push(message: unknown): void
  /** Answers when this many connections have been opened since the beginning. */
  opened(count: number): Promise<void>
  /** Breaks all connections without a word. */
  drop(): void
  readonly open: () => number
  [Symbol.asyncDispose](): Promise<void>
}

export const BOT = { user: 'U0BOT', bot: 'B0BOT', team: 'T0TEAM', name: 'coppice' }
export const BOT_TOKEN = 'xoxb-double-0001'
export const APP_TOKEN = 'xapp-double-0001'

export const startSlackDouble = async (): Promise<SlackDouble> => {
  const calls: SlackDouble['calls'] = []
  const messages: Posted[] = []
  const faults = new Map<string, { list: Fault[]; forEver: boolean }>()
  const sockets: WebSocket[] = []
  const waiting = new Map<string, () => void>()
  let openedCount = 0
  let envelopes = 0
  let clock = 1_712_345_678
  const arrivals = new EventEmitter()
  const nextTs = (): string => `${(clock += 1)}.000100`

  const faultFor = (method: string): Fault | undefined => {
    const planned = faults.get(method) ?? faults.get('*')
    return planned?.forEver === true ? planned.list[0] : planned?.list.shift()
  }
  const methods: Record<string, (body: Readonly<Record<string, string>>, token: string) => unknown> = {
    'auth.test': (_body, token) =>
      token === BOT_TOKEN
        ? { ok: true, user_id: BOT.user, bot_id: BOT.bot, team_id: BOT.team, user: BOT.name, team: 'Team' }
        : { ok: false, error: 'invalid_auth' },
    'apps.connections.open': (_body, token) =>
      token === APP_TOKEN
        ? { ok: true, url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/link?ticket=1` }
        : { ok: false, error: 'invalid_auth' },
    'chat.postMessage': (body) => {
      const { channel = '', text = '', thread_ts: threadTs, metadata } = body
      const posted = { channel, ts: nextTs(), thread_ts: threadTs, user: BOT.user, text, metadata: parsed(metadata) }
      messages.push(posted)
      return { ok: true, channel, ts: posted.ts, message: posted }
    },
    'chat.update': ({ ts, text = '', metadata }) => {
      const found = messages.find((message) => message.ts === ts)
      if (found === undefined) return { ok: false, error: 'message_not_found' }
      if (Buffer.byteLength(text) > 4_000) return { ok: false, error: 'msg_too_long' }
      found.text = text
      if (metadata !== undefined) found.metadata = parsed(metadata)
      return { ok: true, ts, text }
    },
    'chat.delete': ({ ts }) => {
      const at = messages.findIndex((message) => message.ts === ts)
      if (at === -1) return { ok: false, error: 'message_not_found' }
      messages.splice(at, 1)
      return { ok: true, ts }
    },
    'conversations.replies': ({ channel, ts, latest, limit = '1000', cursor = '0', include_all_metadata: marked }) => {
      const thread = messages.filter(
        (one) =>
          one.channel === channel &&
          (one.ts === ts || one.thread_ts === ts) &&
          (latest === undefined || Number(one.ts) < Number(latest)),
      )
      const end = Number(cursor) + Number(limit)
      const next = end < thread.length ? String(end) : ''
      const page = thread.slice(Number(cursor), end)
      const shown = marked === 'true' ? page : page.map(({ metadata: _metadata, ...rest }) => rest)
      return { ok: true, messages: shown, has_more: next !== '', response_metadata: { next_cursor: next } }
    },
  }

  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy())
  })
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const method = (request.url ?? '').replace(/^\/api\//, '')
    const token = (request.headers.authorization ?? '').replace(/^Bearer /, '')
    const body = Object.fromEntries(new URLSearchParams(await textOf(request)))
    calls.push({ method, body, token })
    const fault = faultFor(method)
    if (fault === 'hang') return
    const result = fault === undefined || fault === 'lose' ? methods[method]?.(body, token) : undefined
    if (fault === 'lose') {
      response.destroy()
      return
    }
    if (fault !== undefined && 'status' in fault) {
      const retry = fault.retryAfter === undefined ? {} : { 'retry-after': String(fault.retryAfter) }
      response.writeHead(fault.status, retry).end('')
      return
    }
    response.writeHead(200, { 'content-type': 'application/json' })
    if (fault !== undefined && 'page' in fault) response.end(fault.page)
    else response.end(JSON.stringify(fault ?? result ?? { ok: false, error: 'unknown_method' }, withOk))
  }

  const live = new WebSocketServer({ server })
  live.on('connection', (socket) => {
    sockets.push(socket)
    openedCount += 1
    socket.on('close', () => sockets.splice(sockets.indexOf(socket), 1))
    socket.on('message', (data: Buffer) => {
      const { envelope_id: id } = JSON.parse(data.toString()) as { envelope_id: string }
      waiting.get(id)?.()
      waiting.delete(id)
    })
    socket.send(JSON.stringify({ type: 'hello', num_connections: 1, connection_info: { app_id: 'A0APP' } }))
    arrivals.emit('opened')
  })

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const push = (message: unknown): void => {
    const socket = sockets.at(-1)
    if (socket === undefined) throw new Error('nobody is connected')
    socket.send(JSON.stringify(message))
  }
  return {
    apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`,
    calls,
    messages,
    say: (channel, user, text, threadTs) => {
      const said = { channel, ts: nextTs(), thread_ts: threadTs, user, text, metadata: undefined }
      messages.push(said)
      return said
    },
    fail: (method, list, forEver = false) => void faults.set(method, { list: [...list], forEver }),
    heal: () => faults.clear(),
    deliver: (payload, more = {}) =>
      new Promise((resolve) => {
        const id = `envelope-${(envelopes += 1)}`
        waiting.set(id, resolve)
        push({ type: 'events_api', envelope_id: id, accepts_response_payload: false, payload, ...more })
      }),
    push,
    opened: async (count) => {
      for (let missing = count - openedCount; missing > 0; missing = count - openedCount) await once(arrivals, 'opened')
    },
    drop: () => sockets.forEach((socket) => socket.terminate()),
    open: () => sockets.length,
    [Symbol.asyncDispose]: async () => {
      sockets.forEach((socket) => socket.terminate())
      live.close()
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

/** A mention in a channel, as the Events API delivers it. */
export const mentionOf = (said: Posted, eventId: string, more: Record<string, unknown> = {}): unknown => ({
  type: 'event_callback',
  team_id: BOT.team,
  api_app_id: 'A0APP',
  event_id: eventId,
  event_time: Math.floor(Number(said.ts)),
  authorizations: [{ team_id: BOT.team, user_id: BOT.user, is_bot: true, is_enterprise_install: false }],
  event: {
    type: said.channel.startsWith('D') ? 'message' : 'app_mention',
    ...(said.channel.startsWith('D') && { channel_type: 'im' }),
    user: said.user,
    text: said.text,
    ts: said.ts,
    event_ts: said.ts,
    channel: said.channel,
    team: BOT.team,
    ...(said.thread_ts !== undefined && { thread_ts: said.thread_ts }),
    ...more,
  },
})

/** Signed as Slack signs what it posts. */
export const signedRequest = (
  payload: unknown,
  secret: string,
  at = Date.now(),
): { readonly headers: Record<string, string>; readonly body: Uint8Array<ArrayBuffer> } => {
  const body = new TextEncoder().encode(typeof payload === 'string' ? payload : JSON.stringify(payload))
  const timestamp = String(Math.floor(at / 1000))
  const mac = createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest('hex')
  const type = { 'content-type': 'application/json' }
  return { headers: { ...type, 'x-slack-request-timestamp': timestamp, 'x-slack-signature': `v0=${mac}` }, body }
}

const withOk = (key: string, value: unknown): unknown =>
  key === '' && typeof value === 'object' && value !== null && !('ok' in value) ? { ok: false, ...value } : value

const parsed = (text: string | undefined): unknown => (text === undefined ? undefined : JSON.parse(text))

const textOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
