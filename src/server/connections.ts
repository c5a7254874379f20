import { readFileSync } from 'node:fs'
import { IncomingMessage, type RequestListener, type Server, type ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import { clientOf } from './limits.ts'

type Connection = {
  readonly socket: Socket
  readonly client: string
  /** Those that have a head and no complete answer yet: several when a client pipelines. */
  readonly requests: Set<IncomingMessage>
  /** Answers those whose turn has not come. */
  readonly waiting: (() => void)[]
  /** Since when it is idle, or when its latest request began. */
  since: number
}

export type Connections = {
  /** With these the server stops reading from a connection that was cut off. */
  readonly options: Pick<ServerOptions, 'IncomingMessage' | 'shouldUpgradeCallback'>
  /** Hands on one request of a connection at a time. */
  inTurn(answer: RequestListener): RequestListener
  guard(server: Server): void
}

/** Most clients send a request when they have the answer to the one before; a few libraries send some ahead. */
export const mostUnanswered = 16

/**
 * How many requests that were sent ahead are answered before the event loop looks at the other connections: a thousand
 * connections may have sent some, and an answer takes several turns.
 */
const sentAheadPerTurn = 8

/**
 * Keeps connections that do nothing from crowding out the others. A full server would refuse everybody, so a newcomer
 * takes the place of the least useful ones, of the client that has most of them.
 *
 * Keeps those that do too much from the same: Node would hand on all the requests that it finds in what it has read, some
 * thousands, and everybody else would wait for all of their answers.
 */
export const createConnections = (most: number): Connections => {
  const connections = new Map<Socket, Connection>()

  // Not when it has closed: many may come before that, and Node hands on what it had read from it.
  const cutOff = ({ socket }: Connection): void => {
    connections.delete(socket)
    socket.destroy()
  }

  /** How many requests were read from a connection in this turn of the event loop. */
  const readInTurn = new Map<Socket, number>()
  const count = (socket: Socket): void => {
    if (readInTurn.size === 0) setImmediate(() => readInTurn.clear())
    const read = (readInTurn.get(socket) ?? 0) + 1
    readInTurn.set(socket, read)
    const connection = connections.get(socket)
    if (connection !== undefined && read > mostUnanswered) cutOff(connection)
  }

  /*
   * Node reads all the requests in a piece of 64 kB before it looks at the socket again, and small ones take 30 ms. It
   * does stop at a request to speak another protocol, and closes the connection when nobody here speaks it. Counted here,
   * since Node answers some by itself: those without a host, and those that expect what it does not know.
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
    for (const { socket, answer } of ready.splice(0, sentAheadPerTurn)) if (connections.has(socket)) answer()
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
    if (requests.size > mostUnanswered) return cutOff(connection)
    connection.since = performance.now()
    response.once('close', () => {
      requests.delete(request)
      connection.since = performance.now()
      // The adaptor ends what is left of other bodies; nobody reads one of these, and it may never end.
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
    // Also called when a kept-alive connection has waited long enough for its next request.
    server.on('timeout', (socket: Socket) => {
      const isAnswering = (connections.get(socket)?.requests.size ?? 0) > 0 && socket.writableLength === 0
      // Work of ours may take its time. An answer that nobody reads may not.
      if (!isAnswering) socket.destroy()
    })
  }

  return { options, inTurn, guard }
}

const bodiless = new Set(['GET', 'HEAD'])

/**
 * Idle connections go first, but not before there are many: one that has just come is idle too. Then the one that sends
 * slowest, then one that does not read its answer. One that waits for our answer never goes.
 *
 * Several at a time: looking at 2,000 connections takes about a millisecond, and 10,000 may come within a second.
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

/** Each is an open file, and git needs some too: where few are allowed, no more than half of them. */
export const defaultMostConnections = (): number => Math.min(2_000, Math.floor(openFiles() / 2))

const openFiles = (): number => {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? Infinity : Number(soft)
  } catch {
    return Infinity
  }
}
