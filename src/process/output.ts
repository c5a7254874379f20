import { StringDecoder } from 'node:string_decoder'
import type { Secrets } from './redaction/redact.ts'

export type OutputStream = 'stdout' | 'stderr'

export type Output = {
  readonly add: (stream: OutputStream, chunk: Buffer) => void
  /** Ignores further output and flushes what redaction held back. */
  readonly end: () => void
  readonly result: () => { stdout: string; stderr: string; output: string; truncated: boolean }
}

export type OutputOptions = {
  readonly limitBytes: number
  readonly onOutput?: ((text: string, stream: OutputStream) => void) | undefined
  /** Called for every chunk, even if it is held back. */
  readonly onActivity?: (() => void) | undefined
  /** Hides secrets before output is kept, passed on or truncated. */
  readonly redact?: Redacted | undefined
}

export type Redacted = { readonly secrets: Pick<Secrets, 'stream'>; readonly streams: readonly OutputStream[] }

/** Collects a program's output: each stream separately, and both in order. */
export const createOutput = ({ limitBytes, onOutput, onActivity, redact }: OutputOptions): Output => {
  const kept = { stdout: createTail(limitBytes), stderr: createTail(limitBytes) }
  const both = createTail(limitBytes)
  // a multi-byte character may be split between chunks
  const decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
  const keep = (stream: OutputStream, chunk: Buffer): void => {
    kept[stream].add(chunk)
    both.add(chunk)
  }
  const redactedStream = (stream: OutputStream) => {
    if (redact?.streams.includes(stream) !== true) return undefined
    return redact.secrets.stream((text) => {
      keep(stream, Buffer.from(text))
      onOutput?.(text, stream)
    })
  }
  const redacted = { stdout: redactedStream('stdout'), stderr: redactedStream('stderr') }
  return {
    add: (stream, chunk) => {
      onActivity?.()
      const text = decoders[stream].write(chunk)
      const hidden = redacted[stream]
      if (hidden !== undefined) return hidden.push(text)
      keep(stream, chunk)
      if (text !== '') onOutput?.(text, stream)
    },
    end: () => {
      redacted.stdout?.end()
      redacted.stderr?.end()
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

/** Keeps the end: programs say last why they failed. */
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
      // trimming at twice the limit copies each byte once on average
      if (size > limitBytes * 2) trim()
    },
    text: () => {
      trim()
      return (chunks[0] ?? Buffer.alloc(0)).toString('utf8')
    },
    truncated: () => cut || size > limitBytes,
  }
}
