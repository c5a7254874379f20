import { readFileSync } from 'node:fs'
import { IncomingMessage, type RequestListener, type Server, type ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import { clientOf } from './limits.ts'

type Connection = {
  readonly socket: Socket
  readonly client: string
  /** Requests with a head but no complete response: several when a client pipelines. */
  readonly requests: Set<IncomingMessage>
  /** Starts each request whose turn hasn't come. */
  readonly waiting: (() => void)[]
  /** When it became idle, or when its latest request began. */
  since: number
}

export type Connections = {
  /** Make the server stop reading from a connection that was cut off. */
  readonly options: Pick<ServerOptions, 'IncomingMessage' | 'shouldUpgradeCallback'>
  /** Passes on one request per connection at a time. */
  inTurn(answer: RequestListener): RequestListener
  guard(server: Server): void
}

/** Most clients wait for a response before the next request; a few libraries pipeline some. */
export const maxUnanswered = 16

/**
 * How many pipelined requests to handle before the event loop serves the other connections: a thousand connections may
 * have sent some, and a response takes several turns.
 */
const pipelinedPerTurn = 8

/**
 * Keeps idle connections from crowding out the others. When the server is full, a new connection replaces the least
 * useful ones of the client that has most of them.
 *
 * Also limits pipelining: Node would pass on every request in what it has read, some thousands, and everybody else
 * would wait for all the responses.
 */
export const createConnections = (most: number): Connections => {
  const connections = new Map<Socket, Connection>()

  // Not only on close: many may arrive before that, and Node passes on what it has read.
  const cutOff = ({ socket }: Connection): void => {
    connections.delete(socket)
    socket.destroy()
  }

  /** How many requests were read per connection in this turn of the event loop. */
  const readInTurn = new Map<Socket, number>()
  const count = (socket: Socket): void => {
    if (readInTurn.size === 0) setImmediate(() => readInTurn.clear())
    const read = (readInTurn.get(socket) ?? 0) + 1
    readInTurn.set(socket, read)
    const connection = connections.get(socket)
    if (connection !== undefined && read > maxUnanswered) cutOff(connection)
  }

  /*
   * Node reads all requests in a 64 kB chunk before it checks the socket again, and small ones take 30 ms. It does stop
   * at an upgrade request, and closes the connection if nobody handles it. Counted here because Node answers some
   * requests itself: those without a Host and those with an unknown Expect.
   */
  class Request extends IncomingMessage {
    wantsUpgrade: boolean | null = null
    constructor(socket: Socket) {
      super(socket)
      count(socket)
    }
    get upgrade(): boolean | null {
      return connections.has(this.socket) ? this.wantsUpgrade : true
    }
    set upgrade(wanted: boolean | null) {
      this.wantsUpgrade = wanted
    }
  }
  const options = {
    IncomingMessage: Request,
    shouldUpgradeCallback: ({ socket }: IncomingMessage) => !connections.has(socket),
  }

  const makeRoom = (): boolean => {
    if (connections.size < most) return true
    const victims = leastUseful([...connections.values()], most)
    for (const victim of victims) cutOff(victim)
    return victims.length > 0
  }

  const ready: { readonly socket: Socket; readonly answer: () => void }[] = []
  const answerSome = (): void => {
    for (const { socket, answer } of ready.splice(0, pipelinedPerTurn)) if (connections.has(socket)) answer()
    if (ready.length > 0) setImmediate(answerSome)
  }
  const takeNext = ({ socket, waiting }: Connection): void => {
    const answer = waiting.shift()
    if (answer === undefined) return
    ready.push({ socket, answer })
    if (ready.length === 1) setImmediate(answerSome)
  }

  const inTurn: Connections['inTurn'] = (answer) => (request, response) => {
    const connection = connections.get(request.socket)
    if (connection === undefined) return
    const { requests, waiting } = connection
    requests.add(request)
    if (requests.size > maxUnanswered) return cutOff(connection)
    connection.since = performance.now()
    response.once('close', () => {
      requests.delete(request)
      connection.since = performance.now()
      // The adaptor ends other unfinished bodies; nobody reads this one, and it may never end.
      if (!request.complete && bodiless.has(request.method ?? '')) request.socket.destroySoon()
      takeNext(connection)
    })
    if (requests.size === 1) answer(request, response)
    else waiting.push(() => answer(request, response))
  }

  const guard: Connections['guard'] = (server) => {
    server.on('connection', (socket: Socket) => {
      if (!makeRoom()) return socket.destroy()
      const client = clientOf(socket.remoteAddress)
      connections.set(socket, { socket, client, requests: new Set(), waiting: [], since: performance.now() })
      return socket.once('close', () => connections.delete(socket))
    })
    // Also fires when a kept-alive connection has waited too long for its next request.
    server.on('timeout', (socket: Socket) => {
      const isAnswering = (connections.get(socket)?.requests.size ?? 0) > 0 && socket.writableLength === 0
      // Our own work may take its time; a response that nobody reads may not.
      if (!isAnswering) socket.destroy()
    })
  }

  return { options, inTurn, guard }
}

const bodiless = new Set(['GET', 'HEAD'])

/**
 * Idle connections first, but only once there are many: a new one is idle too. Then the one that sends slowest, then
 * one that doesn't read its response. A connection waiting for our response is never cut off.
 *
 * Several at a time: examining 2,000 connections takes about a millisecond, and 10,000 may arrive within a second.
 */
const leastUseful = (connections: readonly Connection[], most: number): readonly Connection[] => {
  const now = performance.now()
  const idle = connections.filter(({ requests }) => requests.size === 0)
  const rate = ({ socket, since }: Connection): number => socket.bytesRead / (now - since + 1_000)
  const age = ({ since }: Connection): number => since
  const groups: [readonly Connection[], (one: Connection) => number][] = [
    [idle.length > most / 4 ? idle : [], age],
    [connections.filter(({ requests }) => [...requests].some(({ complete }) => !complete)), rate],
    [connections.filter(({ socket }) => socket.writableLength > 0), age],
    [idle, age],
  ]
  const [candidates, worth] = groups.find(([group]) => group.length > 0) ?? [[], age]
  const byClient = Map.groupBy(candidates, ({ client }) => client)
  const [largest = []] = [...byClient.values()].toSorted((a, b) => b.length - a.length)
  return largest.toSorted((a, b) => worth(a) - worth(b)).slice(0, Math.ceil(most / 50))
}

/** Each is an open file, and git needs some too: at most half of the limit. */
export const defaultMaxConnections = (): number => Math.min(2_000, Math.floor(openFiles() / 2))

const openFiles = (): number => {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? Infinity : Number(soft)
  } catch {
    return Infinity
  }
}
