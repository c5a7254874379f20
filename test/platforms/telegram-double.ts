import { createServer, type IncomingMessage as HttpRequest, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/*
 * A Telegram of our own, for what the public one cannot do: long polls with confirmation, failures, webhooks. Its rules
 * are those of core.telegram.org/bots/api; a rule of Telegram's clients names where it was found.
 */

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
  /** Below it. */
  buttons: Button[]
}

export type Button = { readonly text: string; readonly callback_data: string; readonly row?: number }

export type Failing =
  | { readonly how: 'refused'; readonly code: number; readonly description: string; readonly parameters?: object }
  /** A page of whatever stands before it. */
  | { readonly how: 'page'; readonly status: number }
  /** Done, and the connection breaks before it is said. */
  | { readonly how: 'lost' }
  | { readonly how: 'silent' }

type Payload = Readonly<Record<string, unknown>>
type Update = { readonly update_id: number; readonly message?: Payload; readonly callback_query?: Payload }

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
  /** The clients send a text over 4,096 characters as several messages (Telegram Desktop, `TextUtilities::CutPart`). */
  say(text: string, how?: Saying): number
  /**
   * Somebody chooses a command in the menu. In a group with one bot, it is sent without the bot's name (Telegram Desktop,
   * `WrapCommandInChat`).
   */
  choose(command: string, how?: Saying): number
  updateOf(text: string, how?: Saying): Update
  /** Somebody presses a button that is shown in a chat. */
  press(label: string, how?: { readonly from?: object; readonly chat?: { readonly id: number } }): string
  /** What was answered to presses, by their id. */
  readonly answered: Map<string, string | undefined>
  /** Reactions of the bot, by `chat:message`. */
  readonly reactions: Map<string, string>
  /** By file id. */
  readonly files: Map<string, { readonly path: string; readonly bytes: Uint8Array; readonly size?: number }>
  close(): Promise<void>
}

export const startTelegramDouble = async (): Promise<TelegramDouble> => {
  let waiting: Update[] = []
  let nextUpdate = 1_000
  let nextMessage = 1
  const polls = new Set<() => void>()
  const messages: Message[] = []
  const calls: TelegramDouble['calls'] = []
  const answered: TelegramDouble['answered'] = new Map()
  const presses = new Set<string>()
  const reactions: TelegramDouble['reactions'] = new Map()
  const files: TelegramDouble['files'] = new Map()

  const offer = (update: Update): void => {
    // "allowed_updates": what wasn't asked for isn't sent.
    const asked = calls.findLast(({ method }) => method === 'getUpdates')?.payload['allowed_updates']
    const kind = update.callback_query === undefined ? 'message' : 'callback_query'
    if (Array.isArray(asked) && !asked.includes(kind)) return
    waiting.push(update)
    for (const end of polls) end()
  }
  // "getUpdates": an update is confirmed by an offset above its ID; "setWebhook": the two exclude each other.
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
      const buttons = buttonsOf(payload)
      if (buttons === undefined) return no(400, 'Bad Request: BUTTON_DATA_INVALID')
      const thread = payload['message_thread_id'] as number | undefined
      const id = nextMessage++
      const chat = Number(payload['chat_id'])
      messages.push({ id, chat, thread, text: shown, raw: String(payload['text']), buttons })
      return ok({ message_id: id, date: 1, chat: { id: payload['chat_id'], type: 'private' } })
    },
    editMessageText: (payload) => {
      const shown = shownOf(payload)
      if (shown === undefined) return unreadable
      const found = messages.find(({ id }) => id === payload['message_id'])
      if (found === undefined) return no(400, 'Bad Request: message to edit not found')
      const buttons = buttonsOf(payload)
      if (buttons === undefined) return no(400, 'Bad Request: BUTTON_DATA_INVALID')
      if (found.text === shown && JSON.stringify(found.buttons) === JSON.stringify(buttons)) {
        return no(400, 'Bad Request: message is not modified')
      }
      found.text = shown
      // "editMessageText": without reply_markup the keyboard goes.
      found.buttons = buttons
      found.raw = String(payload['text'])
      return ok(true)
    },
    editMessageReplyMarkup: (payload) => {
      const found = messages.find(({ id }) => id === payload['message_id'])
      if (found === undefined) return no(400, 'Bad Request: message to edit not found')
      found.buttons = buttonsOf(payload) ?? []
      return ok(true)
    },
    // Bot API, "answerCallbackQuery": once, within some seconds, up to 200 characters.
    answerCallbackQuery: (payload) => {
      const id = String(payload['callback_query_id'])
      if (!presses.delete(id)) {
        return no(400, 'Bad Request: query is too old and response timeout expired or query ID is invalid')
      }
      const text = payload['text'] as string | undefined
      if (text !== undefined && text.length > 200) return no(400, 'Bad Request: MESSAGE_TOO_LONG')
      answered.set(id, text)
      return ok(true)
    },
    // Bot API, "ReactionTypeEmoji": only some emoji; 👀 and 👍 are among them.
    setMessageReaction: (payload) => {
      const [{ emoji } = { emoji: '' }] = payload['reaction'] as { emoji: string }[]
      if (!['👀', '👍'].includes(emoji)) return no(400, 'Bad Request: REACTION_INVALID')
      reactions.set(`${String(payload['chat_id'])}:${String(payload['message_id'])}`, emoji)
      return ok(true)
    },
    // Bot API, "getFile": up to 20 MB; then at /file/bot<token>/<file_path>.
    getFile: (payload) => {
      const file = files.get(String(payload['file_id']))
      if (file === undefined) return no(400, 'Bad Request: invalid file_id')
      if ((file.size ?? file.bytes.length) > 20_000_000) return no(400, 'Bad Request: file is too big')
      return ok({ file_id: payload['file_id'], file_path: file.path })
    },
    getWebhookInfo: () => ok(double.webhook ?? { url: '' }),
    deleteMessage: (payload) => {
      const at = messages.findIndex(({ id }) => id === payload['message_id'])
      if (at === -1) return no(400, 'Bad Request: message to delete not found')
      messages.splice(at, 1)
      return ok(true)
    },
  }
  const answer = async (request: HttpRequest, response: ServerResponse): Promise<void> => {
    const [, fileToken, path] = /^\/file\/bot([^/]+)\/(.+)$/.exec(request.url ?? '') ?? []
    if (fileToken !== undefined) {
      const file = [...files.values()].find((one) => fileToken === TOKEN && one.path === path)
      response.writeHead(file === undefined ? 404 : 200).end(file?.bytes)
      return
    }
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
    // "ResponseParameters": `retry_after` in seconds, with the error 429.
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
      const parts = text.match(/[^]{1,4096}/g) ?? ['']
      const updates = parts.map((part) => updateOf(part, how))
      for (const update of updates) offer(update)
      return updates.at(-1)?.update_id ?? 0
    },
    choose: (command, how) => double.say(`/${command}`, how),
    press: (label, { from = ada, chat = { id: ada.id } } = {}) => {
      const shown = messages.findLast((one) => one.chat === chat.id && one.buttons.some(({ text }) => text === label))
      const button = shown?.buttons.find(({ text }) => text === label)
      if (shown === undefined || button === undefined) throw new Error(`there is no button ${label}`)
      const id = `press-${nextUpdate}`
      presses.add(id)
      const topic = shown.thread === undefined ? {} : { is_topic_message: true, message_thread_id: shown.thread }
      const type = chat.id < 0 ? 'supergroup' : 'private'
      const message = { message_id: shown.id, date: 1, chat: { id: chat.id, type }, ...topic }
      const query = { id, from, chat_instance: '1', data: button.callback_data, message }
      offer({ update_id: nextUpdate++, callback_query: query })
      return id
    },
    answered,
    reactions,
    files,
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

/** Bot API, "InlineKeyboardButton": callback_data has 1 to 64 bytes. Undefined: one hasn't. */
const buttonsOf = (payload: Payload): Button[] | undefined => {
  const markup = payload['reply_markup'] as { readonly inline_keyboard: Button[][] } | undefined
  const all = markup?.inline_keyboard.flatMap((row, at) => row.map((button) => ({ ...button, row: at }))) ?? []
  const isFine = ({ callback_data: data }: Button): boolean => data !== '' && Buffer.byteLength(data) <= 64
  return all.every(isFine) ? all : undefined
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
