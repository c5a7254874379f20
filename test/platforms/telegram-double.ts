import { createServer, type IncomingMessage as HttpRequest, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/* A Telegram of our own, for what the public one cannot do: long polls with confirmation, failures, webhooks. */

export const TOKEN = '123456:AAtest-token_x'
export const BOT = { id: 123_456, is_bot: true, first_name: 'Coppice', username: 'coppice_bot' }
export const ada = { id: 7, is_bot: false, first_name: 'Ada', username: 'ada_l' }
export const mallory = { id: 666, is_bot: false, first_name: 'Mallory' }
export const group = { id: -1_001_234, type: 'supergroup', title: 'Team' }

export type Message = {
  readonly id: number
  readonly chat: number
  readonly thread: number | undefined
  /** As it is shown. */
  text: string
  /** As it came. */
  raw: string
}

export type Failing =
  | { readonly how: 'refused'; readonly code: number; readonly description: string; readonly parameters?: object }
  /** A page of whatever stands before it. */
  | { readonly how: 'page'; readonly status: number }
  /** Done, and the connection breaks before it is said. */
  | { readonly how: 'lost' }
  | { readonly how: 'silent' }

type Payload = Readonly<Record<string, unknown>>
type Update = { readonly update_id: number; readonly message: Payload }

export type Saying = {
  readonly from?: object
  readonly chat?: { readonly id: number; readonly type: string }
  readonly message?: Payload
  readonly updateId?: number
}

export type TelegramDouble = {
  readonly apiUrl: string
  readonly messages: Message[]
  readonly calls: { readonly method: string; readonly payload: Payload }[]
  /** What is not confirmed yet. */
  readonly waiting: readonly Update[]
  webhook: Payload | undefined
  fail: (method: string, payload: Payload) => Failing | undefined
  /** Long polls that are open now. */
  readonly polls: number
  /** They come to their end with nothing to say. */
  endPolls(): void
  /** What the bot has said in a chat, as it is shown. */
  said(chat: number, thread?: number): string[]
  say(text: string, how?: Saying): number
  updateOf(text: string, how?: Saying): Update
  close(): Promise<void>
}

export const startTelegramDouble = async (): Promise<TelegramDouble> => {
  let waiting: Update[] = []
  let nextUpdate = 1_000
  let nextMessage = 1
  const polls = new Set<() => void>()
  const messages: Message[] = []
  const calls: TelegramDouble['calls'] = []

  const getUpdates = async ({ offset, timeout }: Payload, gone: AbortSignal): Promise<unknown> => {
    if (typeof offset === 'number') waiting = waiting.filter(({ update_id: id }) => id >= offset)
    if (waiting.length === 0 && Number(timeout) > 0) await opened(Number(timeout) * 1000, gone)
    return ok(waiting.slice(0, 100))
  }
  const opened = (ms: number, gone: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer)
        polls.delete(end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      polls.add(end)
      gone.addEventListener('abort', end)
    })
  const methods: Record<string, (payload: Payload, gone: AbortSignal) => unknown> = {
    getMe: () => ok(BOT),
    getUpdates: (payload, gone) => (double.webhook === undefined ? getUpdates(payload, gone) : no(409, 'Conflict')),
    setWebhook: (payload) => {
      if (!String(payload['url']).startsWith('http')) return no(400, 'Bad Request: bad webhook')
      double.webhook = payload
      return ok(true)
    },
    deleteWebhook: () => {
      double.webhook = undefined
      return ok(true)
    },
    setMyCommands: () => ok(true),
    sendMessage: (payload) => {
      const shown = shownOf(payload)
      if (shown === undefined) return unreadable
      const thread = payload['message_thread_id'] as number | undefined
      const id = nextMessage++
      messages.push({ id, chat: Number(payload['chat_id']), thread, text: shown, raw: String(payload['text']) })
      return ok({ message_id: id, date: 1, chat: { id: payload['chat_id'], type: 'private' } })
    },
    editMessageText: (payload) => {
      const shown = shownOf(payload)
      if (shown === undefined) return unreadable
      const found = messages.find(({ id }) => id === payload['message_id'])
      if (found === undefined) return no(400, 'Bad Request: message to edit not found')
      if (found.text === shown) return no(400, 'Bad Request: message is not modified')
      found.text = shown
      found.raw = String(payload['text'])
      return ok(true)
    },
    deleteMessage: (payload) => {
      const at = messages.findIndex(({ id }) => id === payload['message_id'])
      if (at === -1) return no(400, 'Bad Request: message to delete not found')
      messages.splice(at, 1)
      return ok(true)
    },
  }
  const answer = async (request: HttpRequest, response: ServerResponse): Promise<void> => {
    const [, token, method = ''] = /^\/bot([^/]+)\/(\w+)$/.exec(request.url ?? '') ?? []
    const payload = JSON.parse((await bodyOf(request)) || '{}') as Payload
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    if (token !== TOKEN) return end(response, no(401, 'Unauthorized'))
    calls.push({ method, payload })
    const failing = double.fail(method, payload)
    if (failing?.how === 'silent') return
    if (failing?.how === 'page') {
      response.writeHead(failing.status, { 'content-type': 'text/html' }).end('<html>sorry</html>')
      return
    }
    if (failing?.how === 'refused') return end(response, no(failing.code, failing.description, failing.parameters))
    const result = await (methods[method] ?? (() => no(404, 'Not Found')))(payload, gone.signal)
    if (failing?.how === 'lost') response.destroy()
    else end(response, result)
  }
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  const updateOf: TelegramDouble['updateOf'] = (text, how = {}) => ({
    update_id: how.updateId ?? nextUpdate++,
    message: {
      message_id: nextMessage++,
      date: Math.floor(Date.now() / 1000),
      from: how.from ?? ada,
      chat: how.chat ?? { id: 7, type: 'private', first_name: 'Ada' },
      text,
      entities: [...text.matchAll(/(?<!\w)@\w+/g)].map(({ index, 0: found }) => ({
        type: 'mention',
        offset: index,
        length: found.length,
      })),
      ...how.message,
    },
  })
  const double: TelegramDouble = {
    apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    messages,
    calls,
    webhook: undefined,
    fail: () => undefined,
    get waiting() {
      return waiting
    },
    get polls() {
      return polls.size
    },
    endPolls: () => {
      for (const end of polls) end()
    },
    said: (chat, thread) =>
      messages.filter((one) => one.chat === chat && one.thread === thread).map(({ text }) => text),
    updateOf,
    say: (text, how) => {
      const update = updateOf(text, how)
      waiting.push(update)
      for (const end of polls) end()
      return update.update_id
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
  return double
}

const ok = (result: unknown): object => ({ ok: true, result })
const no = (code: number, description: string, parameters?: object): object => ({
  ok: false,
  error_code: code,
  description,
  ...(parameters !== undefined && { parameters }),
})

const unreadable = no(400, "Bad Request: can't parse entities: unsupported start tag")

const end = (response: ServerResponse, result: unknown): void => {
  const status = (result as { readonly error_code?: number }).error_code ?? 200
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(result))
}

/** What is seen of it; undefined where Telegram could not read it. */
const shownOf = ({ text, parse_mode: mode }: Payload): string | undefined => {
  const given = String(text)
  if (mode !== 'HTML') return given
  const open: string[] = []
  for (const [, closing, name = ''] of given.matchAll(/<(\/?)([a-z]*)[^<>]*>/g)) {
    if (!['b', 'i', 's', 'a', 'code', 'pre', 'blockquote'].includes(name)) return undefined
    if (closing === '') open.push(name)
    else if (open.pop() !== name) return undefined
  }
  const bare = given.replaceAll(/<[^<>]*>/g, '')
  if (open.length > 0 || /[<>]/.test(bare)) return undefined
  return bare.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&')
}

const bodyOf = async (request: HttpRequest): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
