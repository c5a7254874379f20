/*
 * Requests from an agent's commands to their session. Needed because the agent's sandbox blocks the database, the
 * network and processes outside. In: a request in a file that the agent can write, and its name through a FIFO. Out:
 * the answer in a file that the agent can only read. `wrapper.ts` has the shell that listens.
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

/** What the fleet's supervisor may do about other agents. */
export const supervisorCommands = ['nudge', 'item park', 'item reopen', 'land'] as const

/** The agent writes the request, so nothing else is accepted. */
const schema = z.discriminatedUnion('command', [
  z.strictObject({ command: z.literal('prime') }),
  z.strictObject({ command: z.literal('done'), mode: z.string().max(200).optional(), close: z.boolean().optional() }),
  z.strictObject({ command: z.enum(supervisorCommands), words: z.array(z.string().max(5_000)).max(1_000) }),
])

export type SessionRequest = z.infer<typeof schema>

export type SessionAnswer =
  | { readonly text: string; readonly json: unknown; readonly exitCode: number }
  | { readonly error: { readonly code: ErrorCode; readonly message: string; readonly remedy?: Remedy | undefined } }

const MOST_REQUEST_BYTES = 10_000
const MOST_ANSWER_BYTES = 10_000_000

/** How often the caller checks that the session is still listening. */
const LISTENS_MS = 1_000

/** Sends a request, and waits for the answer while the session exists. `id`: a new UUID. */
export const askSession = async (
  requests: string,
  request: SessionRequest,
  { id, signal }: { readonly id: string; readonly signal: AbortSignal },
): Promise<SessionAnswer> => {
  const [requestFile, answerFile, bell] = [
    join(requests, id),
    join(dirname(requests), 'answers', id),
    join(requests, BELL),
  ]
  writeNewFileSync(requestFile, JSON.stringify(request), { mode: 0o600 })
  try {
    await writeFifo(bell, `${id}\n`)
    for (let checkAt = performance.now() + LISTENS_MS; ; await delay(30, undefined, { signal })) {
      const text = readUntrustedTextSync(answerFile, { maxBytes: MOST_ANSWER_BYTES })
      if (text !== undefined) return answerIn(text)
      if (performance.now() < checkAt) continue
      if (!isFifoRead(bell)) throw new AppError('program-failed', 'the session has ended')
      checkAt = performance.now() + LISTENS_MS
    }
  } catch (error) {
    if (signal.aborted) throw new AppError('cancelled', 'cancelled', { cause: error })
    throw error
  } finally {
    // Also tells the session that its answer was read.
    rmSync(requestFile, { force: true })
  }
}

const BELL = 'bell'

const answerIn = (text: string): SessionAnswer => {
  const answer = JSON.parse(text) as Partial<SessionAnswer>
  if ('error' in answer || 'text' in answer) return answer as SessionAnswer
  throw new AppError('program-failed', 'the session failed to do this')
}

/** Throws if the agent wrote anything but a valid request. */
export const takeRequest = (directory: string, id: string): SessionRequest => {
  if (!/^[0-9a-f-]{1,64}$/.test(id)) throw new AppError('usage', 'invalid request')
  try {
    const text = readUntrustedTextSync(join(requestsDirectory(directory), id), { maxBytes: MOST_REQUEST_BYTES })
    return schema.parse(JSON.parse(text ?? ''))
  } catch (cause) {
    throw new AppError('usage', 'invalid request', { cause })
  }
}

/** How long the caller may take to read an answer before the session may end. */
const READ_MS = 2_000

/** Resolves when the answer has been read. */
export const giveAnswer = async (directory: string, id: string, answer: SessionAnswer): Promise<void> => {
  const file = join(answersDirectory(directory), id)
  replaceFileSync(file, JSON.stringify(answer), { mode: 0o600 })
  const deadline = performance.now() + READ_MS
  const request = join(requestsDirectory(directory), id)
  while (lstatIfThere(request) !== undefined && performance.now() < deadline) await delay(20)
  rmSync(file, { force: true })
}
