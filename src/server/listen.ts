import { lookup } from 'node:dns/promises'
import { createServer, type Server } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { AppError } from '../domain/errors.ts'
import { createApp } from './app.ts'
import { defaultMaxConnections, type Connections, createConnections } from './connections.ts'
import type { ServerDeps } from './deps.ts'
import type { App } from './server-env.ts'
import { isLoopbackAddress } from './host-check.ts'

export type ListenOptions = {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** Must be set explicitly to listen beyond this machine. */
  readonly allowRemote?: boolean
  readonly timeouts?: Partial<Timeouts>
  readonly maxConnections?: number
}

export type Timeouts = {
  /** How long a client may take to send a request head, and between two requests. */
  readonly headersMs: number
  readonly keepAliveMs: number
  /** How long a response may wait for a client that doesn't read it. */
  readonly unreadMs: number
  /** How often the first two are checked. */
  readonly checkMs: number
}

const defaultTimeouts: Timeouts = { headersMs: 10_000, keepAliveMs: 10_000, unreadMs: 30_000, checkMs: 2_000 }

export type RunningServer = {
  readonly app: App
  readonly port: number
  readonly url: string
  /** Refuses new connections, ends the event streams, and lets requests finish for `graceMs`. */
  stop(graceMs: number): Promise<void>
}

export const startServer = async (
  deps: Omit<ServerDeps, 'stopping'>,
  { host, port, allowRemote = false, timeouts, maxConnections = defaultMaxConnections() }: ListenOptions,
): Promise<RunningServer> => {
  const address = await addressOf(host, allowRemote)
  const stopping = new AbortController()
  const own = isLoopbackAddress(address) || anyAddress.has(host) ? [] : [host]
  const app = createApp({ ...deps, stopping: stopping.signal, allowedHosts: [...(deps.allowedHosts ?? []), ...own] })
  const server = newServer(app, createConnections(maxConnections), { ...defaultTimeouts, ...timeouts })
  await listening(server, address, port)
  const bound = server.address()
  const actual = typeof bound === 'object' && bound !== null ? bound.port : port
  return {
    app,
    port: actual,
    url: `http://${address.includes(':') ? `[${address}]` : address}:${actual}`,
    stop: async (graceMs) => {
      stopping.abort()
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeIdleConnections()
      const timer = setTimeout(() => server.closeAllConnections(), graceMs)
      await closed
      clearTimeout(timer)
    },
  }
}

const loopback = new Set(['127.0.0.1', '::1', 'localhost'])
/** Not usable as Host: names must be configured. */
const anyAddress = new Set(['0.0.0.0', '::'])

/** `localhost` is whatever the hosts file says, so it is looked up and we listen on that address. */
const addressOf = async (host: string, allowRemote: boolean): Promise<string> => {
  if (!loopback.has(host)) {
    if (allowRemote && host !== '') return host
    throw beyondLoopback(host)
  }
  if (host !== 'localhost') return host
  const { address } = await lookup(host)
  if (!allowRemote && !isLoopbackAddress(address)) throw beyondLoopback(`${host} (${address})`)
  return address
}

const beyondLoopback = (host: string): AppError =>
  new AppError(
    'usage',
    `listening on ${host === '' ? 'every address' : host} would expose this server to other machines`,
    {
      remedy: 'keep 127.0.0.1 and connect through ssh or a TLS proxy; to listen anyway, pass --allow-remote',
    },
  )

const newServer = (
  app: App,
  connections: Connections,
  { headersMs, keepAliveMs, unreadMs, checkMs }: Timeouts,
): Server => {
  const answer = getRequestListener(app.fetch)
  const server = createServer(
    {
      ...connections.options,
      headersTimeout: headersMs,
      // A body is limited by its rate: a large one may take minutes; a stalled one is cut off within seconds.
      requestTimeout: 0,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: checkMs,
    },
    connections.inTurn((request, response) => void answer(request, response)),
  )
  server.setTimeout(unreadMs)
  connections.guard(server)
  return server
}

const listening = (server: Server, host: string, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const failed = (cause: NodeJS.ErrnoException): void => reject(cannotListen(cause, host, port))
    server.once('error', failed)
    server.listen(port, host, () => {
      server.off('error', failed)
      resolve()
    })
  })

const cannotListen = (cause: NodeJS.ErrnoException, host: string, port: number): AppError => {
  switch (cause.code) {
    case 'EADDRINUSE':
      return new AppError('busy', `port ${port} on ${host} is in use`, {
        cause,
        remedy: 'another server may be using it; choose another port with --port',
      })
    case 'EACCES':
      return new AppError('usage', `no permission to listen on port ${port}`, {
        cause,
        remedy: 'choose a port above 1023 with --port',
      })
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new AppError('usage', `${host} isn't an address of this machine`, {
        cause,
        remedy: 'choose another with --host',
      })
    default:
      return new AppError('unexpected', `can't listen on ${host}:${port}: ${cause.message}`, { cause })
  }
}
