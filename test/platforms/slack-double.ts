import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { slackScopes } from '../../src/platforms/slack/setup.ts'

import { BOT, type Posted } from './slack-payloads.ts'

export { BOT, mentionOf, type Posted, pressOf, signedRequest, slashOf } from './slack-payloads.ts'

/*
 * A Slack of our own, for what no public one has: Socket Mode, and every way to fail. It speaks Slack's wire protocol:
 * the Web API over HTTP, `apps.connections.open`, and envelopes with acknowledgements over a WebSocket. Its rules are
 * those of docs.slack.dev; where a rule isn't obvious, the page is named beside it.
 */

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
  /** Seen by one person each. */
  readonly whispers: Readonly<Record<string, string>>[]
  /** `eyes C1 1712345679.000100` */
  readonly reactions: string[]
  /** Statuses by `channel:thread`. */
  readonly statuses: Map<string, string>
  /** Threads of an assistant, in direct messages. */
  readonly assistantThreads: Set<string>
  /** The bot token's. */
  readonly scopes: Set<string>
  /** Said by a person, so that it is found in the thread. */
  say(channel: string, user: string, text: string, threadTs?: string, more?: Partial<Posted>): Posted
  /**
   * What a person types in the client. Undefined: the client took it for a slash command, and no message came of it.
   * Slackbot says so: `all messages that start with the "/" character are interpreted as commands`.
   */
  type(channel: string, user: string, text: string, threadTs?: string): Posted | undefined
  /** A file as it stands in a message's `files`. */
  upload(name: string, content: string, more?: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>
  /** The next calls of this method go wrong in these ways, one after the other; `for ever`: until healed. */
  fail(method: string, faults: readonly Fault[], forEver?: boolean): void
  heal(): void
  /** Over the newest connection, as Slack does it; answers with the acknowledgement's payload. */
  deliver(payload: unknown, more?: Readonly<Record<string, unknown>>): Promise<unknown>
  /** Over the newest connection, without an envelope around it. */
  push(message: unknown): void
  /** Answers when this many connections have been opened since the beginning. */
  opened(count: number): Promise<void>
  /** Breaks all connections without a word. */
  drop(): void
  readonly open: () => number
  [Symbol.asyncDispose](): Promise<void>
}

export const BOT_TOKEN = 'xoxb-double-0001'
export const APP_TOKEN = 'xapp-double-0001'

export const startSlackDouble = async (): Promise<SlackDouble> => {
  const calls: SlackDouble['calls'] = []
  const messages: Posted[] = []
  const faults = new Map<string, { list: Fault[]; forEver: boolean }>()
  const sockets: WebSocket[] = []
  const waiting = new Map<string, (payload: unknown) => void>()
  const whispers: Readonly<Record<string, string>>[] = []
  const reactions: string[] = []
  const statuses = new Map<string, string>()
  const assistantThreads = new Set<string>()
  const scopes = new Set<string>(slackScopes)
  const uploads = new Map<string, { readonly content: string; readonly type: string }>()
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
        ? {
            ok: true,
            user_id: BOT.user,
            bot_id: BOT.bot,
            team_id: BOT.team,
            user: BOT.name,
            team: 'Team',
            url: 'https://team.slack.com/',
          }
        : { ok: false, error: 'invalid_auth' },
    'apps.connections.open': (_body, token) =>
      token === APP_TOKEN
        ? { ok: true, url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/link?ticket=1` }
        : { ok: false, error: 'invalid_auth' },
    'chat.postMessage': (body) => {
      const { channel = '', text = '', thread_ts: threadTs, metadata, attachments } = body
      const posted: Posted = {
        channel,
        ts: nextTs(),
        thread_ts: threadTs,
        user: BOT.user,
        text,
        metadata: parsed(metadata),
        ...(attachments !== undefined && { attachments: parsed(attachments) }),
      }
      messages.push(posted)
      return { ok: true, channel, ts: posted.ts, message: posted }
    },
    // reference/methods/chat.update: attachments that aren't mentioned are retained, and an empty list removes them.
    'chat.update': ({ ts, text = '', metadata, attachments }) => {
      const found = messages.find((message) => message.ts === ts)
      if (found === undefined) return { ok: false, error: 'message_not_found' }
      if (Buffer.byteLength(text) > 4_000) return { ok: false, error: 'msg_too_long' }
      found.text = text
      if (metadata !== undefined) found.metadata = parsed(metadata)
      if (attachments === '[]') delete found.attachments
      else if (attachments !== undefined) found.attachments = parsed(attachments)
      return { ok: true, ts, text }
    },
    'chat.postEphemeral': (body) => {
      whispers.push(body)
      return { ok: true, message_ts: nextTs() }
    },
    'reactions.add': ({ channel, timestamp, name }) => {
      if (!messages.some((one) => one.channel === channel && one.ts === timestamp)) {
        return { ok: false, error: 'message_not_found' }
      }
      const reaction = `${name} ${channel} ${timestamp}`
      if (reactions.includes(reaction)) return { ok: false, error: 'already_reacted' }
      reactions.push(reaction)
      return { ok: true }
    },
    // reference/methods/assistant.threads.setStatus, changelog/2026/03/05/set-status-scope-update: in channels too. Which
    // direct messages are refused isn't documented; here, those outside an assistant's threads.
    'assistant.threads.setStatus': ({ channel_id: channel = '', thread_ts: threadTs, status = '' }) => {
      if (!messages.some((one) => one.channel === channel && one.ts === threadTs))
        return { ok: false, error: 'invalid_thread_ts' }
      if (channel.startsWith('D') && !assistantThreads.has(`${channel}:${threadTs}`))
        return { ok: false, error: 'method_not_supported_for_channel_type' }
      statuses.set(`${channel}:${threadTs}`, status)
      return { ok: true }
    },
    'users.conversations': () => ({
      ok: true,
      channels: [...new Set(messages.map(({ channel }) => channel))].map((id) => ({ id })),
      response_metadata: { next_cursor: '' },
    }),
    'files.info': ({ file = '' }) => {
      const found = [...uploads.keys()].find((path) => path.includes(file))
      return found === undefined
        ? { ok: false, error: 'file_not_found' }
        : { ok: true, file: { id: file, url_private_download: `${origin()}${found}` } }
    },
    // reference/methods/conversations.history: the most recent first, `oldest` excluded, and no replies in threads.
    'conversations.history': ({ channel, oldest = '0', limit = '100', cursor = '0' }) => {
      const found = messages
        .filter((one) => one.channel === channel && Number(one.ts) > Number(oldest))
        .filter((one) => one.thread_ts === undefined || one.thread_ts === one.ts)
        .toReversed()
      return pageOf(found, limit, cursor, (one) => ({ ...asTheySee(one), ...repliesTo(one) }))
    },
    'chat.delete': ({ ts }) => {
      const at = messages.findIndex((message) => message.ts === ts)
      if (at === -1) return { ok: false, error: 'message_not_found' }
      messages.splice(at, 1)
      return { ok: true, ts }
    },
    // reference/methods/conversations.replies: the earliest first; the parent comes with every page in time.
    'conversations.replies': (body) => {
      const { channel, ts, oldest = '0', latest = 'Infinity', limit = '1000', cursor = '0' } = body
      const thread = messages.filter(
        (one) =>
          one.channel === channel &&
          (one.ts === ts || (one.thread_ts === ts && Number(one.ts) > Number(oldest))) &&
          Number(one.ts) < Number(latest),
      )
      const isMarked = body['include_all_metadata'] === 'true'
      return pageOf(thread, limit, cursor, (one) => {
        const { metadata, ...rest } = asTheySee(one)
        return isMarked ? { ...rest, metadata } : rest
      })
    },
  }
  const pageOf = <T>(all: readonly T[], limit: string, cursor: string, show: (one: T) => unknown): unknown => {
    const end = Number(cursor) + Number(limit)
    const next = end < all.length ? String(end) : ''
    const page = all.slice(Number(cursor), end).map((one) => show(one))
    return { ok: true, messages: page, has_more: next !== '', response_metadata: { next_cursor: next } }
  }
  /** What an app posts has its user and its bot ID. */
  const asTheySee = (one: Posted): Posted => (one.user === BOT.user ? { ...one, bot_id: BOT.bot } : one)
  const repliesTo = ({ channel, ts }: Posted): Readonly<Record<string, unknown>> => {
    const replies = messages.filter((one) => one.channel === channel && one.thread_ts === ts && one.ts !== ts)
    const latest = replies.at(-1)
    return latest === undefined ? {} : { reply_count: replies.length, latest_reply: latest.ts }
  }
  const origin = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  /**
   * reference/objects/file-object: `url_private_download` wants the token in the header. Without `files:read`, Slack
   * redirects to its sign-in page, which answers 200.
   */
  const sendFile = (path: string, token: string, response: ServerResponse): void => {
    const file = uploads.get(path)
    if (path === '/sign-in') response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<html>')
    else if (file === undefined) response.writeHead(404).end()
    else if (token !== BOT_TOKEN || !scopes.has('files:read')) response.writeHead(302, { location: '/sign-in' }).end()
    else response.writeHead(200, { 'content-type': file.type }).end(file.content)
  }

  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy())
  })
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url ?? ''
    const method = path.replace(/^\/api\//, '')
    const token = (request.headers.authorization ?? '').replace(/^Bearer /, '')
    if (path === method) return sendFile(path, token, response)
    const body = Object.fromEntries(new URLSearchParams(await textOf(request)))
    calls.push({ method, body, token })
    const fault = faultFor(method)
    if (fault === 'hang') return
    const result =
      fault === undefined || fault === 'lose' ? (lacking(method, body) ?? methods[method]?.(body, token)) : undefined
    if (fault === 'lose') {
      response.destroy()
      return
    }
    // apis/web-api/rate-limits: 429, with the seconds to wait in `Retry-After`.
    if (fault !== undefined && 'status' in fault) {
      const retry = fault.retryAfter === undefined ? {} : { 'retry-after': String(fault.retryAfter) }
      response.writeHead(fault.status, retry).end('')
      return
    }
    response.writeHead(200, { 'content-type': 'application/json', 'x-oauth-scopes': [...scopes].join(',') })
    if (fault !== undefined && 'page' in fault) response.end(fault.page)
    else response.end(JSON.stringify(fault ?? result ?? { ok: false, error: 'unknown_method' }, withOk))
  }

  const live = new WebSocketServer({ server })
  live.on('connection', (socket) => {
    sockets.push(socket)
    openedCount += 1
    socket.on('close', () => sockets.splice(sockets.indexOf(socket), 1))
    socket.on('message', (data: Buffer) => {
      const { envelope_id: id, payload } = JSON.parse(data.toString()) as { envelope_id: string; payload?: unknown }
      waiting.get(id)?.(payload)
      waiting.delete(id)
    })
    socket.send(JSON.stringify({ type: 'hello', num_connections: 1, connection_info: { app_id: 'A0APP' } }))
    arrivals.emit('opened')
  })

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  /** The token's scopes say what a method may do: each method's page names those it needs. */
  const lacking = (method: string, { channel = '' }: Readonly<Record<string, string>>): unknown => {
    const kind = channel.startsWith('D') ? 'im' : channel.startsWith('G') ? 'groups' : 'channels'
    const needed = needs[method]?.map((scope) => scope.replace('*', kind)).filter((scope) => !scopes.has(scope)) ?? []
    return needed.length === 0
      ? undefined
      : { ok: false, error: 'missing_scope', needed: needed.join(','), provided: [...scopes].join(',') }
  }
  const push = (message: unknown): void => {
    const socket = sockets.at(-1)
    if (socket === undefined) throw new Error('nobody is connected')
    socket.send(JSON.stringify(message))
  }
  const say: SlackDouble['say'] = (channel, user, text, threadTs, more = {}) => {
    const said = { channel, ts: nextTs(), thread_ts: threadTs, user, text, metadata: undefined, ...more }
    messages.push(said)
    return said
  }
  return {
    apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`,
    calls,
    messages,
    whispers,
    reactions,
    statuses,
    assistantThreads,
    scopes,
    say,
    type: (channel, user, text, threadTs) => (text.startsWith('/') ? undefined : say(channel, user, text, threadTs)),
    upload: (name, content, more = {}) => {
      const id = `F0${uploads.size + 1}`
      const path = `/files-pri/${BOT.team}-${id}/download/${name}`
      uploads.set(path, { content, type: 'application/octet-stream' })
      const size = Buffer.byteLength(content)
      return {
        id,
        name,
        mimetype: 'image/png',
        mode: 'hosted',
        size,
        url_private_download: `${origin()}${path}`,
        ...more,
      }
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

const needs: Readonly<Record<string, readonly string[]>> = {
  'chat.postMessage': ['chat:write'],
  'chat.update': ['chat:write'],
  'chat.delete': ['chat:write'],
  'chat.postEphemeral': ['chat:write'],
  'reactions.add': ['reactions:write'],
  'assistant.threads.setStatus': ['chat:write'],
  'users.conversations': ['channels:read', 'groups:read', 'im:read', 'mpim:read'],
  'conversations.history': ['*:history'],
  'conversations.replies': ['*:history'],
  'files.info': ['files:read'],
}

const withOk = (key: string, value: unknown): unknown =>
  key === '' && typeof value === 'object' && value !== null && !('ok' in value) ? { ok: false, ...value } : value

const parsed = (text: string | undefined): unknown => (text === undefined ? undefined : JSON.parse(text))

const textOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
