import type { IncomingMessage, ServerResponse } from 'node:http'
import { applicationId, guildId, type Message, type Row, self, type State } from './state.ts'

export type Call = { readonly method: string; readonly path: string; readonly body: Record<string, unknown> }

/** How the service fails, while it does. `lost`: it does what is asked, and the answer never arrives. */
export type Failing =
  | { readonly how: 'error'; readonly status: number }
  | { readonly how: 'refused'; readonly status: number; readonly code: number }
  | { readonly how: 'limited'; readonly seconds: number }
  | { readonly how: 'silent' }
  | { readonly how: 'lost' }

export type RestDouble = {
  readonly calls: Call[]
  /** Asked at each call; undefined: it is answered as usual. */
  fail: (call: Call) => Failing | undefined
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>
}

type Answer = { readonly status: number; readonly body?: unknown }
type Tell = (event: string, data: unknown) => void

/** Discord's REST API, version 10: the few routes that the bot uses, with the answers of the real one. */
export const createRest = (state: State, token: string, tell: Tell): RestDouble => {
  const double: RestDouble = {
    calls: [],
    fail: () => undefined,
    handle: async (request, response) => {
      const url = new URL(request.url ?? '/', 'http://double')
      const text = await bodyOf(request)
      const body = (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>
      const call = { method: request.method ?? '', path: url.pathname.replace(/^\/api\/v10/, ''), body }
      double.calls.push(call)
      const failing = double.fail(call)
      if (failing !== undefined && failing.how !== 'lost') return fail(request, response, failing)
      const known = request.headers.authorization === `Bot ${token}` || isOpenToAll(call)
      const answer = known
        ? route(state, call, url, tell)
        : { status: 401, body: { message: '401: Unauthorized', code: 0 } }
      if (failing?.how === 'lost') return void request.socket.destroy()
      send(response, answer)
    },
  }
  return double
}

const isOpenToAll = ({ path }: Call): boolean => path.startsWith('/interactions/') || path.startsWith('/webhooks/')

const fail = (request: IncomingMessage, response: ServerResponse, failing: Failing): void => {
  switch (failing.how) {
    case 'error':
      response.writeHead(failing.status, { 'content-type': 'text/html' }).end('<h1>Sorry</h1>')
      return
    case 'refused':
      return send(response, { status: failing.status, body: { message: 'No', code: failing.code } })
    // "Rate limits": the seconds to wait, in the header and in the body.
    case 'limited':
      response
        .writeHead(429, { 'content-type': 'application/json', 'retry-after': String(failing.seconds) })
        .end(JSON.stringify({ message: 'You are being rate limited.', retry_after: failing.seconds, global: false }))
      return
    case 'silent':
    case 'lost':
      // Whoever waits long enough gives up.
      request.socket.setTimeout(60_000)
  }
}

const route = (state: State, { method, path, body }: Call, url: URL, tell: Tell): Answer => {
  const parts = path.slice(1).split('/')
  const [first = '', second = '', third = '', fourth = '', fifth = ''] = parts
  const what = `${method} ${first}`
  if (path === '/users/@me') return fine(self)
  if (what === 'PUT applications' && second === applicationId) {
    state.commands.splice(0, state.commands.length, ...(body as unknown as unknown[]))
    return fine(body)
  }
  if (what === 'POST interactions') return callback(state, second, third, body)
  // "Create Followup Message": only once the interaction is acknowledged.
  if (what === 'POST webhooks') {
    const id = state.tokens.get(third)?.id
    if (id === undefined || !state.callbacks.some((one) => one.id === id)) {
      return { status: 404, body: { message: 'Unknown Webhook', code: 10_015 } }
    }
    const whispered = body['flags'] !== undefined && (Number(body['flags']) & EPHEMERAL) !== 0
    state.callbacks.push({ id: `${id}:later`, type: 4, content: textOf(body['content']), whispered })
    return fine({})
  }
  if (what === 'PATCH webhooks') {
    const id = state.tokens.get(third)?.id
    const answered = state.callbacks.find((one) => one.id === id)
    if (answered === undefined) return { status: 404, body: { message: 'Unknown Webhook', code: 10_015 } }
    answered.content = textOf(body['content'])
    return fine({})
  }
  if (first !== 'channels') return { status: 404, body: { message: '404: Not Found', code: 0 } }
  const channel = state.channels.get(second)
  if (channel === undefined) return { status: 404, body: { message: 'Unknown Channel', code: 10_003 } }
  if (third === '' && method === 'GET') return fine(channel)
  if (third === 'typing') return { status: 204 }
  if (third !== 'messages') return { status: 404, body: { message: '404: Not Found', code: 0 } }
  if (fourth === '') return method === 'GET' ? list(state, second, url) : post(state, second, body)
  const message = state.of(second).find(({ id }) => id === fourth)
  if (message === undefined) return { status: 404, body: { message: 'Unknown Message', code: 10_008 } }
  if (fifth === 'threads') return startThread(state, message, body, tell)
  // "Create Reaction": the emoji is URL encoded; it needs the permission to add reactions.
  if (fifth === 'reactions') {
    if (state.denied.has('reactions')) return forbidden
    message.reactions?.push(decodeURIComponent(parts[5] ?? ''))
    return { status: 204 }
  }
  if (method === 'GET') return fine(asRead(message))
  if (method === 'DELETE') {
    state.messages.set(
      second,
      state.of(second).filter((one) => one !== message),
    )
    return { status: 204 }
  }
  if (!areButtons(body['components'])) return invalidForm
  // "Edit Message": what isn't given stays as it is.
  if (body['content'] !== undefined) message.content = textOf(body['content'])
  if (body['components'] !== undefined) message.components = body['components'] as readonly Row[]
  message.edited_timestamp = new Date().toISOString()
  return fine(message)
}

const EPHEMERAL = 64

/** "JSON error codes". */
const forbidden: Answer = { status: 403, body: { message: 'Missing Permissions', code: 50_013 } }
const invalidForm: Answer = { status: 400, body: { message: 'Invalid Form Body', code: 50_035 } }

/** "Get Channel Messages": unlike in an event, a message doesn't say which server it is from. */
const asRead = ({ guild_id: _guild, ...message }: Message): unknown => message

/** "Component reference": five buttons in a row, five rows, 80 characters on a button, 100 in its custom_id. */
const areButtons = (components: unknown): boolean => {
  const rows = (components ?? []) as readonly Row[]
  const isFine = ({ label, custom_id: id }: Row['components'][number]): boolean =>
    label !== '' && label.length <= 80 && id !== '' && id.length <= 100
  return rows.length <= 5 && rows.every((row) => row.components.length <= 5 && row.components.every(isFine))
}

const list = (state: State, channel: string, url: URL): Answer => {
  const before = url.searchParams.get('before')
  const after = url.searchParams.get('after')
  const limit = Number(url.searchParams.get('limit') ?? 50)
  // "Get Channel Messages": newest first; with `after`, of the oldest ones after that message.
  if (after !== null) {
    const later = state.of(channel).filter(({ id }) => BigInt(id) > BigInt(after))
    return fine(later.slice(0, limit).toReversed().map(asRead))
  }
  const all = state.of(channel).filter(({ id }) => before === null || BigInt(id) < BigInt(before))
  return fine(all.toReversed().slice(0, limit).map(asRead))
}

const post = (state: State, channel: string, body: Record<string, unknown>): Answer => {
  const content = textOf(body['content'])
  if (content.trim() === '') return { status: 400, body: { message: 'Cannot send an empty message', code: 50_006 } }
  if (content.length > 2_000) return { status: 400, body: { message: 'Invalid Form Body', code: 50_035 } }
  const nonce = body['nonce'] as string | undefined
  if ((nonce?.length ?? 0) > 25) return { status: 400, body: { message: 'Invalid Form Body', code: 50_035 } }
  if (!areButtons(body['components'])) return invalidForm
  // "Create Message": with `enforce_nonce`, a nonce of the last minutes returns the message that it was used for.
  const enforced = body['enforce_nonce'] === true ? nonce : undefined
  const known = state.of(channel).find((one) => enforced !== undefined && one.nonce === enforced)
  if (known !== undefined) return fine(known)
  return fine(
    state.add({
      id: state.snowflake(),
      channel_id: channel,
      author: self,
      content,
      type: 0,
      mentions: [],
      allowed_mentions: body['allowed_mentions'],
      ...(body['components'] !== undefined && { components: body['components'] as readonly Row[] }),
      ...(nonce !== undefined && { nonce }),
      ...(body['message_reference'] !== undefined && {
        message_reference: body['message_reference'] as { message_id: string },
      }),
    }),
  )
}

const startThread = (state: State, { id, channel_id }: Message, body: Record<string, unknown>, tell: Tell): Answer => {
  if (state.denied.has('threads')) return forbidden
  if (state.channels.has(id)) {
    return { status: 400, body: { message: 'A thread has already been created for this message', code: 160_004 } }
  }
  const name = textOf(body['name'])
  if (name === '' || name.length > 100) return { status: 400, body: { message: 'Invalid Form Body', code: 50_035 } }
  const thread = {
    id,
    type: 11,
    guild_id: guildId,
    parent_id: channel_id,
    owner_id: self.id,
    name,
    thread_metadata: {
      archived: false,
      auto_archive_duration: 1440,
      archive_timestamp: new Date().toISOString(),
      locked: false,
    },
    message_count: 0,
    member_count: 1,
  }
  state.addChannel(thread)
  tell('THREAD_CREATE', { ...thread, newly_created: true })
  return { status: 201, body: thread }
}

/** "Receiving and Responding": an interaction waits three seconds for its first response. */
const ACKNOWLEDGE_WITHIN_MS = 3_000

const callback = (state: State, id: string, token: string, body: Record<string, unknown>): Answer => {
  const known = state.tokens.get(token)
  if (known?.id !== id || Date.now() - known.at > ACKNOWLEDGE_WITHIN_MS)
    return { status: 404, body: { message: 'Unknown interaction', code: 10_062 } }
  if (state.callbacks.some((one) => one.id === id)) {
    return { status: 400, body: { message: 'Interaction has already been acknowledged.', code: 40_060 } }
  }
  const data = body['data'] as { content?: string; flags?: number } | undefined
  const whispered = ((data?.flags ?? 0) & EPHEMERAL) !== 0
  state.callbacks.push({ id, type: Number(body['type']), content: data?.content, ...(whispered && { whispered }) })
  return { status: 204 }
}

/** Discord takes off what is white at both ends. */
const textOf = (value: unknown): string => (typeof value === 'string' ? value.trim() : '')

const fine = (body: unknown): Answer => ({ status: 200, body })

const send = (response: ServerResponse, { status, body }: Answer): void => {
  if (body === undefined) response.writeHead(status).end()
  else response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
