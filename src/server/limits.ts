import type { Clock } from '../domain/clock.ts'
import { HttpError } from './errors.ts'
import { defaultUploadLimits, type UploadLimits } from './uploads.ts'

export type Rate = { readonly perSecond: number; readonly burst: number }

/** Per client address. Behind a proxy all clients are one. */
export type RequestLimits = {
  readonly bodyBytes: number
  readonly uploads: UploadLimits
  /** Without the right token, where one is needed. */
  readonly refused: Rate
  /** Where none is needed. */
  readonly open: Rate
  /** Services deliver in bursts, often all through one tunnel, and GitHub does not try again what was turned away. */
  readonly webhooks: Rate
  /** With the token: only what a program gone wild would reach. Accepting messages is measured at 5,000 per second. */
  readonly authenticated: Rate
  /** Per run, with its token: an agent that asks in a loop keeps nobody else waiting. */
  readonly run: Rate
  readonly eventStreams: number
  /** How often an event stream says that it is alive, and looks whether its session is. */
  readonly heartbeatMs: number
}

export const defaultLimits: RequestLimits = {
  bodyBytes: 1_000_000,
  uploads: defaultUploadLimits,
  refused: { perSecond: 10, burst: 200 },
  open: { perSecond: 200, burst: 1_000 },
  webhooks: { perSecond: 1_000, burst: 10_000 },
  authenticated: { perSecond: 20_000, burst: 40_000 },
  run: { perSecond: 20, burst: 200 },
  eventStreams: 200,
  heartbeatMs: 15_000,
}

export type Bucket = {
  /** Throws 429 when this client has none left. */
  take(client: string): void
}

/** More clients than that at once are not remembered: the oldest begins anew. */
const CLIENTS = 10_000

/** A token bucket per client. */
export const createBucket = ({ perSecond, burst }: Rate, clock: Clock): Bucket => {
  const clients = new Map<string, { left: number; at: number }>()
  return {
    take: (client) => {
      const now = clock()
      const known = clients.get(client)
      const filled = known === undefined ? burst : known.left + (Math.max(0, now - known.at) / 1000) * perSecond
      const left = Math.min(burst, filled)
      if (left < 1) {
        const wait = Math.max(1, Math.ceil((1 - left) / perSecond))
        throw new HttpError(429, 'too-many-requests', 'too many requests', {
          remedy: `wait ${wait} s and try again`,
          headers: { 'Retry-After': String(wait) },
        })
      }
      if (known === undefined && clients.size >= CLIENTS) {
        const [oldest] = clients.keys()
        if (oldest !== undefined) clients.delete(oldest)
      }
      clients.set(client, { left: left - 1, at: now })
    },
  }
}

/** Whoever has one IPv6 address has the other 2^64 of its network as well. */
export const clientOf = (address: string | undefined): string => {
  if (address === undefined) return ''
  if (!address.includes(':') || /^::ffff:/i.test(address)) return address
  return address.split(':').slice(0, 4).join(':')
}
