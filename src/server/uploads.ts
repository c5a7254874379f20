import type { IncomingMessage } from 'node:http'
import type { Clock } from '../domain/clock.ts'
import { HttpError } from './errors.ts'

export type UploadLimits = {
  /** A body that falls below this rate for `patienceMs` is cut off. */
  readonly bytesPerSecond: number
  readonly patienceMs: number
  /** The memory limit for all bodies together. */
  readonly memoryBytes: number
  /** A body up to this size is cut off to make room only if there is no larger one. */
  readonly smallBytes: number
}

export const defaultUploadLimits: UploadLimits = {
  // Slow enough for a bad connection. A slower body below 100 kB finishes before it is cut off.
  bytesPerSecond: 10_000,
  patienceMs: 10_000,
  // Five of GitHub's largest payloads.
  memoryBytes: 128_000_000,
  smallBytes: 1_000_000,
}

export type Uploads = {
  /** Reads the whole body and passes it to `work`. Its memory counts until `work` has ended. */
  withBody<T>(incoming: IncomingMessage, options: UploadOptions, work: (body: Buffer) => Promise<T>): Promise<T>
}

export type UploadOptions = {
  /** The maximum body size. */
  readonly most: number
  /** The sender, as returned by `clientOf`. */
  readonly client: string
}

type Upload = {
  readonly client: string
  bytes: number
  /** Drains over time and refills with what arrives, up to the brim: below the floor the body is too slow. */
  level: number
  at: number
  readonly cutOff: (why: HttpError) => void
}

/**
 * The only reader of request bodies. There is no queue, since a sender that stalls would block the rest: memory is
 * counted in bytes received, not by the announced length. When it is full, the slowest large body of the client that
 * holds most is cut off. All clients behind a proxy count as one, and the slowest is cut off.
 */
export const createUploads = (limits: UploadLimits, clock: Clock): Uploads => {
  const receiving = new Set<Upload>()
  const drainMs = limits.patienceMs / 2
  const floor = limits.bytesPerSecond * (drainMs / 1000)
  // Draining from here to the floor takes exactly `patienceMs`, whatever was sent before: a burst buys no time.
  const brim = floor * Math.exp(limits.patienceMs / drainMs)
  let held = 0
  let timer: NodeJS.Timeout | undefined

  const levelOf = ({ level, at }: Upload, now: number): number => level * Math.exp(-Math.max(0, now - at) / drainMs)

  const cutOffSlow = (): void => {
    const now = clock()
    for (const upload of receiving) if (levelOf(upload, now) < floor) upload.cutOff(tooSlow(limits))
  }

  const makeRoom = (): void => {
    while (held > limits.memoryBytes) {
      const victim = nextVictim([...receiving], limits.smallBytes, (upload) => levelOf(upload, clock()))
      if (victim === undefined) return
      victim.cutOff(noRoom())
    }
  }

  const receive = (incoming: IncomingMessage, { most, client }: UploadOptions): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      const onData = (chunk: Buffer): void => {
        const now = clock()
        chunks.push(chunk)
        upload.level = Math.min(brim, levelOf(upload, now) + chunk.length)
        upload.at = now
        upload.bytes += chunk.length
        held += chunk.length
        if (upload.bytes > most) upload.cutOff(tooLarge(most))
        else makeRoom()
      }
      const onEnd = (): void => {
        leave()
        resolve(Buffer.concat(chunks))
      }
      const onClose = (): void => upload.cutOff(new HttpError(400, 'invalid', 'the request body ended early'))
      const leave = (): void => {
        receiving.delete(upload)
        incoming.off('data', onData).off('end', onEnd).off('close', onClose)
        // Without a listener, a socket error would end the process.
        incoming.off('error', onClose).on('error', () => undefined)
        if (receiving.size === 0) {
          clearInterval(timer)
          timer = undefined
        }
      }
      const upload: Upload = {
        client,
        bytes: 0,
        level: brim,
        at: clock(),
        cutOff: (why) => {
          leave()
          held -= upload.bytes
          chunks.length = 0
          reject(why)
        },
      }
      receiving.add(upload)
      // After this process was paused, read what has arrived meanwhile first: `setImmediate` runs after that.
      timer ??= setInterval(() => setImmediate(cutOffSlow), Math.min(1_000, limits.patienceMs / 5)).unref()
      incoming.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose)
    })

  return {
    withBody: async (incoming, options, work) => {
      // Node's parser reads no further than the announced length, so too large a number is enough to refuse.
      if (Number(incoming.headers['content-length'] ?? 0) > options.most) throw tooLarge(options.most)
      const body = await receive(incoming, options)
      try {
        return await work(body)
      } finally {
        held -= body.length
      }
    },
  }
}

const nextVictim = (
  receiving: readonly Upload[],
  smallBytes: number,
  levelOf: (upload: Upload) => number,
): Upload | undefined => {
  const large = receiving.filter(({ bytes }) => bytes > smallBytes)
  const candidates = large.length > 0 ? large : receiving
  const byClient = Map.groupBy(candidates, ({ client }) => client)
  const [heaviest = []] = [...byClient.values()].toSorted((a, b) => bytesOf(b) - bytesOf(a))
  return heaviest.toSorted((a, b) => levelOf(a) - levelOf(b))[0]
}

const bytesOf = (uploads: readonly Upload[]): number => uploads.reduce((sum, { bytes }) => sum + bytes, 0)

/** The rest of the body isn't read, so the connection can't carry another request. */
const close = { Connection: 'close' }

const tooLarge = (most: number): HttpError =>
  new HttpError(413, 'too-large', `the body is larger than ${most} bytes`, { headers: close })

const tooSlow = ({ bytesPerSecond }: UploadLimits): HttpError =>
  new HttpError(408, 'too-slow', `the body arrived at less than ${bytesPerSecond} bytes per second`, {
    remedy: 'try again over a faster connection',
    headers: close,
  })

const noRoom = (): HttpError =>
  new HttpError(503, 'busy', 'too many large uploads at once', {
    remedy: 'try again later',
    headers: { ...close, 'Retry-After': '10' },
  })
