import type { Context } from 'hono'
import { isIP } from 'node:net'
import type { ServerEnv } from './server-env.ts'
import { HttpError } from './errors.ts'

export type HostCheck = {
  /** Throws 403 unless the request was sent to one of our names. */
  host(c: Context<ServerEnv>): void
  /**
   * Throws 403 if the sending page isn't ours. For everything that changes state, and everything with a cookie.
   * `required`: also if the page is unknown.
   */
  origin(c: Context<ServerEnv>, options?: { readonly required: boolean }): void
}

/**
 * DNS rebinding: a page on evil.example, whose name now points at 127.0.0.1, could talk to us as its own server. Its
 * requests still carry its name as Host, so only names that nobody else can point at us are accepted.
 */
export const createHostCheck = (allowedHosts: readonly string[]): HostCheck => {
  const configured = new Set(allowedHosts.map((name) => name.toLowerCase()))
  const isConfigured = (host: string): boolean => configured.has(host) || configured.has(nameOf(host))
  const isOurs = (host: string, port: number | undefined): boolean =>
    isConfigured(host) || (isLoopbackName(nameOf(host)) && portOf(host) === port)
  return {
    host: (c) => {
      const host = hostOf(c)
      if (host !== undefined && isOurs(host, c.env.incoming.socket.localPort)) return
      throw new HttpError(403, 'forbidden', 'this host name is not allowed', {
        remedy:
          "use http://127.0.0.1 or http://localhost with the server's port, or start the server with --allow-host",
      })
    },
    origin: (c, { required } = { required: false }) => {
      const host = hostOf(c) ?? ''
      const origin = c.req.header('origin')
      // A proxy in front of a configured name may use TLS; there is none on the loopback.
      const own = [`http://${host}`, ...(isConfigured(host) ? [`https://${host}`] : [])]
      const site = c.req.header('sec-fetch-site')
      const foreign =
        (origin !== undefined && !own.includes(origin.toLowerCase())) ||
        (site !== undefined && site !== 'same-origin' && site !== 'none')
      if (foreign) throw new HttpError(403, 'forbidden', 'cross-origin request refused')
      if (required && origin === undefined) {
        throw new HttpError(403, 'forbidden', 'a request that changes state with the cookie needs an Origin header', {
          remedy:
            "send the request from the server's own page, or use the token in the Authorization header instead of the cookie",
        })
      }
    },
  }
}

export const isLoopbackAddress = (address: string): boolean =>
  isIP(address) === 4 ? address.startsWith('127.') : address === '::1' || /^::ffff:127\./i.test(address)

const isLoopbackName = (name: string): boolean =>
  name === 'localhost' || isLoopbackAddress(name.replace(/^\[(.*)\]$/, '$1'))

const hostOf = (c: Context<ServerEnv>): string | undefined => c.req.header('host')?.toLowerCase()

/** `[::1]:4780` contains other colons. */
const nameOf = (host: string): string => host.replace(/:\d*$/, '')

const portOf = (host: string): number => {
  const [, port = ''] = /:(\d*)$/.exec(host.replace(/^\[.*\]/, '')) ?? []
  return port === '' ? 80 : Number(port)
}
