import { readFileSync } from 'node:fs'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { clientOf } from './limits.ts'

type Connection = {
  readonly socket: Socket
  readonly client: string
  /** Those that have a head and no complete answer yet: several when a client pipelines. */
  readonly requests: Set<IncomingMessage>
  /** Since when it is idle, or when its latest request began. */
  since: number
}

/**
 * Keeps connections that do nothing from crowding out the others. A full server would refuse everybody, so a newcomer
 * takes the place of the least useful ones, of the client that has most of them.
 */
export const guardConnections = (server: Server, most: number): void => {
  const connections = new Map<Socket, Connection>()

  const makeRoom = (): boolean => {
    if (connections.size < most) return true
    const victims = leastUseful([...connections.values()], most)
    for (const { socket } of victims) {
      // Not when it has closed: many may come before that.
      connections.delete(socket)
      socket.destroy()
    }
    return victims.length > 0
  }

  server.on('connection', (socket: Socket) => {
    if (!makeRoom()) return socket.destroy()
    const client = clientOf(socket.remoteAddress)
    connections.set(socket, { socket, client, requests: new Set(), since: performance.now() })
    return socket.once('close', () => connections.delete(socket))
  })

  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const connection = connections.get(request.socket)
    if (connection === undefined) return
    connection.requests.add(request)
    connection.since = performance.now()
    response.once('close', () => {
      connection.requests.delete(request)
      connection.since = performance.now()
      // The adaptor ends what is left of other bodies; nobody reads one of these, and it may never end.
      if (!request.complete && bodiless.has(request.method ?? '')) request.socket.destroySoon()
    })
  })

  // Also called when a kept-alive connection has waited long enough for its next request.
  server.on('timeout', (socket: Socket) => {
    const isAnswering = (connections.get(socket)?.requests.size ?? 0) > 0 && socket.writableLength === 0
    // Work of ours may take its time. An answer that nobody reads may not.
    if (!isAnswering) socket.destroy()
  })
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
