import type { Clock } from '../domain/clock.ts'
import { HttpError } from './errors.ts'
import { defaultUploadLimits, type UploadLimits } from './uploads.ts'

export type Rate = { readonly perSecond: number; readonly burst: number }

/** Per client address. All clients behind a proxy count as one. */
export type RequestLimits = {
  readonly bodyBytes: number
  readonly uploads: UploadLimits
  /** Without the right token, where one is required. */
  readonly refused: Rate
  /** Where none is required. */
  readonly open: Rate
  /** Services deliver in bursts, often through one tunnel, and GitHub doesn't retry rejected deliveries. */
  readonly webhooks: Rate
  /** With the token: stops only a runaway program. Accepting messages was measured at 5,000 per second. */
  readonly authenticated: Rate
  /** Per run, with its token: an agent polling in a loop delays nobody else. */
  readonly run: Rate
  readonly eventStreams: number
  /** How often an event stream sends a heartbeat and checks its session. */
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
  /** Throws 429 when this client has no tokens left. */
  take(client: string): void
}

/** The most clients to remember; beyond that, the oldest is forgotten. */
const MAX_CLIENTS = 10_000

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
      if (known === undefined && clients.size >= MAX_CLIENTS) {
        const [oldest] = clients.keys()
        if (oldest !== undefined) clients.delete(oldest)
      }
      clients.set(client, { left: left - 1, at: now })
    },
  }
}

/** One IPv6 address usually comes with 2^64 others in its network. */
export const clientOf = (address: string | undefined): string => {
  if (address === undefined) return ''
  if (!address.includes(':') || /^::ffff:/i.test(address)) return address
  return address.split(':').slice(0, 4).join(':')
}
