import { hasCode } from '../domain/error-code.ts'
import type { Readable } from 'node:stream'

export type Collecting = {
  /** Gets the chunks instead of the result, with backpressure. */
  readonly take?: ((chunk: Buffer) => void | Promise<void>) | undefined
  readonly watch?: ((chunk: Buffer) => void) | undefined
  readonly limit?: number
}

/** Reads a stream to its end. Beyond `limit` bytes, drops the middle: the start and the end matter most. */
export const collect = async (stream: Readable | null, { take, watch, limit }: Collecting = {}): Promise<Buffer> => {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of (stream ?? []) as AsyncIterable<Buffer>) {
      watch?.(chunk)
      if (take) await take(chunk)
      else chunks.push(chunk)
      size += chunk.length
      if (limit === undefined || size < 4 * limit) continue
      chunks.splice(0, chunks.length, withoutMiddle(Buffer.concat(chunks), limit))
      size = limit
    }
  } catch (error) {
    // We closed the pipe after the process exited: all its output has been read.
    if (!hasCode(error, 'ERR_STREAM_PREMATURE_CLOSE')) throw error
  }
  const all = Buffer.concat(chunks)
  return limit === undefined || all.length <= limit ? all : withoutMiddle(all, limit)
}

const withoutMiddle = (bytes: Buffer, limit: number): Buffer =>
  Buffer.concat([bytes.subarray(0, limit / 2), Buffer.from('\n'), bytes.subarray(-limit / 2)])
