import { StringDecoder } from 'node:string_decoder'

export type OutputStream = 'stdout' | 'stderr'

export type Output = {
  readonly add: (stream: OutputStream, chunk: Buffer) => void
  readonly result: () => { stdout: string; stderr: string; output: string; truncated: boolean }
}

/** Keeps what a program prints: each stream by itself, and both in the order in which they came. */
export const createOutput = (
  limitBytes: number,
  onOutput: ((text: string, stream: OutputStream) => void) | undefined,
): Output => {
  const kept = { stdout: createTail(limitBytes), stderr: createTail(limitBytes) }
  const both = createTail(limitBytes)
  // a character of several bytes may be split between two chunks
  const decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
  return {
    add: (stream, chunk) => {
      kept[stream].add(chunk)
      both.add(chunk)
      const text = decoders[stream].write(chunk)
      if (text !== '') onOutput?.(text, stream)
    },
    result: () => ({
      stdout: kept.stdout.text(),
      stderr: kept.stderr.text(),
      output: both.text(),
      truncated: both.truncated(),
    }),
  }
}

type Tail = { add: (chunk: Buffer) => void; text: () => string; truncated: () => boolean }

/** The end is kept, not the beginning: a program says last why it failed. */
const createTail = (limitBytes: number): Tail => {
  let chunks: Buffer[] = []
  let size = 0
  let cut = false
  const trim = () => {
    const all = Buffer.concat(chunks)
    cut ||= all.length > limitBytes
    const end = all.subarray(Math.max(0, all.length - limitBytes))
    chunks = [end]
    size = end.length
  }
  return {
    add: (chunk) => {
      chunks.push(chunk)
      size += chunk.length
      // only at twice the limit, so that each byte is copied once on average
      if (size > limitBytes * 2) trim()
    },
    text: () => {
      trim()
      return (chunks[0] ?? Buffer.alloc(0)).toString('utf8')
    },
    truncated: () => cut || size > limitBytes,
  }
}
