/*
 * What an agent's commands ask of their session, because their own sandbox keeps them from the database, the network and
 * the processes outside. In: a request, as a file that the agent may write, and its name through a FIFO. Out: the answer,
 * as a file that it may only read. `wrapper.ts` has the shell that listens.
 */
import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { AppError, type ErrorCode } from '../../domain/errors.ts'
import type { Remedy } from '../../domain/remedy.ts'
import { isFifoRead, writeFifo } from '../../process/files/fifo.ts'
import { lstatIfThere } from '../../process/files/lstat-if-there.ts'
import { readUntrustedTextSync } from '../../process/files/read-untrusted.ts'
import { replaceFileSync, writeNewFileSync } from '../../process/files/replace-file.ts'
import { answersDirectory, requestsDirectory } from './paths.ts'

/** Names the directory of requests to the commands of the session. Without it they do their work themselves. */
export const REQUESTS = 'COPPICE_REQUESTS'

/** Nothing else can be asked for: the agent writes the request. */
const schema = z.discriminatedUnion('command', [
  z.strictObject({ command: z.literal('prime') }),
  z.strictObject({ command: z.literal('done'), mode: z.string().max(200).optional(), close: z.boolean().optional() }),
])

export type SessionRequest = z.infer<typeof schema>

export type SessionAnswer =
  | { readonly text: string; readonly json: unknown; readonly exitCode: number }
  | { readonly error: { readonly code: ErrorCode; readonly message: string; readonly remedy?: Remedy | undefined } }

const MOST_REQUEST_BYTES = 10_000
const MOST_ANSWER_BYTES = 10_000_000

/** How often the asker looks whether anybody still listens. */
const LISTENS_MS = 1_000

/** Asks, and waits for the answer as long as the session lasts. `id`: a new UUID. */
export const askSession = async (
  requests: string,
  request: SessionRequest,
  { id, signal }: { readonly id: string; readonly signal: AbortSignal },
): Promise<SessionAnswer> => {
  const [asked, answered, bell] = [join(requests, id), join(dirname(requests), 'answers', id), join(requests, BELL)]
  writeNewFileSync(asked, JSON.stringify(request), { mode: 0o600 })
  try {
    await writeFifo(bell, `${id}\n`)
    for (let lookAt = performance.now() + LISTENS_MS; ; await delay(30, undefined, { signal })) {
      const text = readUntrustedTextSync(answered, { maxBytes: MOST_ANSWER_BYTES })
      if (text !== undefined) return answerIn(text)
      if (performance.now() < lookAt) continue
      if (!isFifoRead(bell)) throw new AppError('program-failed', 'the session has ended')
      lookAt = performance.now() + LISTENS_MS
    }
  } catch (error) {
    if (signal.aborted) throw new AppError('cancelled', 'cancelled', { cause: error })
    throw error
  } finally {
    // This also tells the session that its answer has arrived.
    rmSync(asked, { force: true })
  }
}

const BELL = 'bell'

const answerIn = (text: string): SessionAnswer => {
  const answer = JSON.parse(text) as Partial<SessionAnswer>
  if ('error' in answer || 'text' in answer) return answer as SessionAnswer
  throw new AppError('program-failed', 'the session failed to do this')
}

/** The agent may have written anything. */
export const takeRequest = (directory: string, id: string): SessionRequest => {
  if (!/^[0-9a-f-]{1,64}$/.test(id)) throw new AppError('usage', 'invalid request')
  try {
    const text = readUntrustedTextSync(join(requestsDirectory(directory), id), { maxBytes: MOST_REQUEST_BYTES })
    return schema.parse(JSON.parse(text ?? ''))
  } catch (cause) {
    throw new AppError('usage', 'invalid request', { cause })
  }
}

/** How long the asker may take to read an answer before the session may end. */
const READ_MS = 2_000

/** Resolves when the answer has been read. */
export const giveAnswer = async (directory: string, id: string, answer: SessionAnswer): Promise<void> => {
  const place = join(answersDirectory(directory), id)
  replaceFileSync(place, JSON.stringify(answer), { mode: 0o600 })
  const deadline = performance.now() + READ_MS
  const request = join(requestsDirectory(directory), id)
  while (lstatIfThere(request) !== undefined && performance.now() < deadline) await delay(20)
  rmSync(place, { force: true })
}
