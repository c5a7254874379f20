import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What a model is asked, whoever's wire it came by. */
export type Asked = {
  /** Everything in the request, in the order of the conversation, as text. */
  readonly whole: string
  readonly system: string
  /** What the user said, message by message; what the program itself put around it is in there too. */
  readonly said: readonly string[]
  /** What the tools answered since the user last spoke. */
  readonly results: readonly string[]
  readonly tools: readonly string[]
}

export type Call = { readonly tool: string; readonly input: Readonly<Record<string, unknown>> }

/** What the model does next. */
export type Step =
  | { readonly say: string; readonly call?: Call }
  | { readonly call: Call; readonly say?: string }
  /** Says this much and then nothing any more, without hanging up. */
  | { readonly stall: string }
  | { readonly status: number; readonly type: string; readonly message: string }

export type Script = (asked: Asked) => Step

export type ModelServer = {
  readonly url: string
  /** Of the conversation itself; what the program asks on the side (a title, a quota) is not among them. */
  readonly asked: Asked[]
  /** Every header of every request, for what must not be among them. */
  readonly headers: string[]
  [Symbol.asyncDispose](): Promise<void>
}

export type Wire = {
  readonly path: RegExp
  /** Undefined for a request on the side. */
  readonly read: (body: unknown) => Asked | undefined
  /** `offered`: the tools of the request. */
  readonly stream: (
    response: ServerResponse,
    step: Exclude<Step, { readonly status: number }>,
    offered: readonly string[],
  ) => void
  readonly refuse: (response: ServerResponse, step: Extract<Step, { readonly status: number }>) => void
}

/** A model that follows a script, on loopback, by the vendor's own wire protocol. */
export const startModelServer = async (wire: Wire, script: Script): Promise<ModelServer> => {
  const asked: Asked[] = []
  const headers: string[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    headers.push(JSON.stringify(request.headers))
    const body = await bodyOf(request)
    if (request.method !== 'POST' || !wire.path.test(request.url ?? '')) {
      response.writeHead(request.method === 'HEAD' ? 200 : 404).end()
      return
    }
    const main = wire.read(body)
    if (main !== undefined) asked.push(main)
    const step = main === undefined ? { say: 'ok' } : script(main)
    if ('status' in step) wire.refuse(response, step)
    else wire.stream(response, step, main?.tools ?? [])
  }
  // A program that was ended in the middle of its question needs no answer.
  const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    headers,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const bodyOf = async (request: IncomingMessage): Promise<unknown> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown
  } catch {
    return undefined
  }
}

export const sendEvent = (
  response: ServerResponse,
  data: { readonly type: string } & Record<string, unknown>,
): void => {
  response.write(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`)
}

/** As a model streams: in pieces. */
export const piecesOf = (text: string): string[] => text.match(/.{1,12}/gsu) ?? []

export const asRecord = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}

export const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** The text of a content that is a string or a list of blocks. */
export const textOfContent = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : asList(content)
        .map((block) => {
          const { text, content: inner } = asRecord(block)
          if (typeof text === 'string') return text
          return inner === undefined ? '' : textOfContent(inner)
        })
        .join('\n')
