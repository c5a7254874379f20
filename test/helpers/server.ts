import { randomBytes, randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { type Changes, createChanges } from '../../src/conversations/changes.ts'
import type { ConversationsContext } from '../../src/conversations/context.ts'
import type { Conversations } from '../../src/conversations/conversations.ts'
import { nothingRunning } from '../../src/runs/stop-run.ts'
import { createStoreQueue } from '../../src/conversations/inbox/store-queue.ts'
import { createRunTokens, type RunTokens } from '../../src/runs/tokens.ts'
import { knownPlatforms } from '../../src/platforms/capabilities.ts'
import { localPlatforms } from '../../src/platforms/registry.ts'
import { startPlatforms } from '../../src/platforms/start.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'
import type { ServerDeps } from '../../src/server/deps.ts'
import { type ListenOptions, type RunningServer, startServer } from '../../src/server/listen.ts'
import { createMetrics } from '../../src/server/metrics.ts'
import { ensureToken } from '../../src/server/token-file.ts'
import type { IncomingMessage } from '../../src/domain/message.ts'
import { makeWorld, type World, type WorldOptions } from './world.ts'
import { fleetIn } from './fleet.ts'

/** A listening server over a real store and real git. Messages are accepted durably and worked on by nobody. */
export type ServerUnderTest = {
  readonly world: World
  readonly server: RunningServer
  readonly token: string
  readonly changes: Changes
  readonly accepted: IncomingMessage[]
  readonly woken: { count: number }
  readonly platforms: ServerDeps['platforms']
  readonly runTokens: RunTokens
  /** With the token unless told otherwise. */
  call(path: string, init?: RequestInit & { readonly token?: string | null }): Promise<Response>
  post(path: string, body: unknown, init?: RequestInit & { readonly token?: string | null }): Promise<Response>
  /** One request over a socket of its own, written byte by byte as given; answers all that came back. */
  raw(text: string): Promise<string>
  [Symbol.asyncDispose](): Promise<void>
}

export type ServerTestOptions = {
  readonly deps?: Partial<ServerDeps>
  readonly listen?: Partial<ListenOptions>
  readonly testPlatform?: boolean
  readonly secret?: string
  readonly world?: WorldOptions
}

export const makeServer = async (options: ServerTestOptions = {}): Promise<ServerUnderTest> => {
  const world = await makeWorld(options.world)
  const { token } = ensureToken(world.context.home)
  const changes = createChanges()
  const accepted: IncomingMessage[] = []
  const woken = { count: 0 }
  const conversations = recording(world, changes, accepted)
  const platforms = new Map([
    ['web', localPlatforms.web()] as const,
    ['cli', localPlatforms.cli()] as const,
    ...(options.testPlatform === false ? [] : [['test', localPlatforms.test()] as const]),
  ])
  const metrics = createMetrics(changes)
  await startPlatforms(
    platforms.values(),
    metrics.countAccepted((message) => conversations.accept(message)),
    world.context,
  )
  const secrets = createSecrets([options.secret ?? 'never-to-be-seen', token])
  let url: string | undefined
  const random = (): string => randomBytes(32).toString('hex')
  const runTokens = createRunTokens({ secrets, random, url: () => url })
  const context = { ...conversationsContext(world, changes), runTokens, isolation: { ...world.context, secrets } }
  const server = await startServer(
    {
      context,
      conversations,
      platforms,
      token,
      version: '1.2.3',
      databaseName: 'SQLite',
      metrics,
      redact: secrets.redact,
      wake: () => {
        woken.count += 1
      },
      ready: () => true,
      ...options.deps,
    },
    { host: '127.0.0.1', port: 0, ...options.listen },
  )
  url = server.url
  const call: ServerUnderTest['call'] = (path, { token: given = token, ...init } = {}) => {
    const headers = new Headers(init.headers)
    if (given !== null) headers.set('authorization', `Bearer ${given}`)
    return fetch(`${server.url}${path}`, { ...init, headers })
  }
  return {
    world,
    server,
    token,
    changes,
    accepted,
    woken,
    platforms,
    runTokens,
    call,
    post: (path, body, init = {}) =>
      call(path, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...init,
        headers: { 'content-type': 'application/json', ...(init.headers as Record<string, string> | undefined) },
      }),
    raw: (text) => rawRequest(server.port, text),
    [Symbol.asyncDispose]: async () => {
      await server.stop(1_000)
      await world[Symbol.asyncDispose]()
    },
  }
}

/** The real queue, so that what is accepted is durable; nothing takes it up. */
const recording = ({ context }: World, changes: Changes, accepted: IncomingMessage[]): Conversations => {
  const queue = createStoreQueue({ ...context, endRun: async () => true })
  return {
    accept: async (message) => {
      const answer = await queue.accept({ ...message, lane: 'turn' })
      if (answer.outcome === 'accepted') {
        accepted.push(message)
        const { platform, conversationId } = message
        changes.emit({ type: 'message', platform, conversationId, id: answer.id, state: 'waiting' })
      }
      return answer
    },
    start: async () => undefined,
    stop: async () => ({ finished: 0, left: 0 }),
    stopRun: async () => nothingRunning,
    wake: () => undefined,
  }
}

const conversationsContext = ({ box, context, provider }: World, changes: Changes): ConversationsContext => ({
  isolation: context,
  environments: async () => provider,
  fleet: async () => fleetIn(context, box.env),
  queue: createStoreQueue({ ...context, ids: randomUUID, endRun: async () => true }),
  agents: new Map(),
  deliveries: new Map(),
  platforms: async () => knownPlatforms,
  changes,
  redact: (text) => text,
  repoCommands: new Map(),
  cgroup: undefined,
  keepSpares: () => undefined,
})

export const rawRequest = (port: number, text: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket: Socket = connect(port, '127.0.0.1', () => socket.write(text))
    let answer = ''
    socket.setTimeout(20_000, () => {
      socket.destroy()
      reject(new Error(`no end of the answer: ${answer.slice(0, 500)}`))
    })
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1')
    })
    socket.on('close', () => resolve(answer))
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' ? resolve(answer) : reject(error),
    )
  })

export const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0)
