import { untilAborted } from '../../domain/until-aborted.ts'
import { setTimeout as delay } from 'node:timers/promises'
import { dirname } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { client, type ClientApp, ndJsonStream, RequestError } from '@agentclientprotocol/sdk'
import type { AgentRequest } from '../agent.ts'
import type { ReplyText } from '../reply.ts'
import type { AcpAgentOptions } from './options.ts'
import { converse, type Session } from './converse.ts'
import { readTextInside, writeTextInside } from './confined-files.ts'
import type { TurnEnd } from './outcome.ts'
import { answerPermission } from './permissions.ts'
import { createSilence, type Silence } from './silence.ts'
import { createTerminals, type Terminals } from './terminals.ts'
import { createUpdates, type Updates } from './updates.ts'

export type TurnParts = {
  readonly options: AcpAgentOptions
  readonly request: AgentRequest
  readonly reply: ReplyText
  readonly environment: Readonly<Record<string, string>>
  readonly stdin: Writable
  readonly stdout: Readable
  /** Aborted to stop the program and everything it started. */
  readonly end: AbortController
}

/** Time to stop after a cancel request, and to exit once stdin is closed. */
const CANCEL_MS = 1_000
const EXIT_MS = 1_500
/** One message: a file's content, with room for JSON escaping. */
const MAX_MESSAGE_BYTES = 32 * 1024 * 1024

/** Runs one prompt to completion. Never rejects. */
export const takeTurn = async (parts: TurnParts): Promise<TurnEnd> => {
  const { options, request, environment, stdin, stdout, end } = parts
  const { directory: root, signal } = request
  const session: Session = { id: undefined }
  const updates = createUpdates({ root, reply: parts.reply })
  const terminals = createTerminals({
    root,
    environment,
    clock: options.clock,
    mark: request.mark,
    launch: request.launch,
  })
  const silence = createSilence(options, () => updates.toolRunning() || terminals.busy())
  const stream = ndJsonStream(Writable.toWeb(stdin), webStream(stdout, silence), {
    maxMessageBytes: MAX_MESSAGE_BYTES,
  })
  const connection = createClient(parts, { updates, terminals, silence }).connect(stream)
  const turn = converse({ options, request, agent: connection.agent, updates, session })
  const gone = connection.closed.then((): TurnEnd => ({ kind: 'gone' }))
  const stopped = untilAborted(signal).then(async (): Promise<TurnEnd> => {
    // Cancel through the protocol first, so the agent can clean up.
    if (session.id !== undefined) {
      await connection.agent.notify('session/cancel', { sessionId: session.id }).catch(() => undefined)
      await Promise.race([turn, delay(CANCEL_MS)])
    }
    return { kind: 'gone' }
  })
  const answer = await Promise.race([turn, gone, silence.stalled, stopped])
  silence.end()
  await terminals.end()
  stdin.end()
  // If the agent has answered or is exiting, let it exit by itself: its exit code says more, and anything it left
  // running on purpose survives.
  if (!signal.aborted && (answer.kind === 'done' || answer.kind === 'gone')) {
    setTimeout(() => end.abort(), EXIT_MS).unref()
  } else {
    end.abort()
  }
  void gone.then(() => connection.close())
  return answer
}

/** Any output counts as activity. */
const webStream = (stdout: Readable, silence: Silence): ReadableStream<Uint8Array> => {
  stdout.on('data', silence.onActivity)
  return Readable.toWeb(stdout) as ReadableStream<Uint8Array>
}

type TurnState = { readonly updates: Updates; readonly terminals: Terminals; readonly silence: Silence }

/** Our side of the protocol: the requests an agent may make during a turn. */
const createClient = (
  { options, request, reply }: TurnParts,
  { updates, terminals, silence }: TurnState,
): ClientApp => {
  const { directory: root, rules } = request
  const policy = { root, rules, permissions: options.permissions }
  const requireWriteAccess = (): void => {
    // It gets a moment to stop by itself, but can't do anything else.
    if (request.signal.aborted) throw RequestError.invalidRequest(undefined, 'the run was stopped')
    if (rules.access === 'read') throw RequestError.invalidRequest(undefined, 'this run is read-only')
  }
  const readable = new Set(request.outside?.readable)
  const isAttached = (path: string): boolean =>
    readable.has(dirname(path)) || request.attachments?.some((one) => one.path === path) === true
  return client({ name: 'coppice' })
    .onNotification('session/update', ({ params }) => updates.handle(params.update))
    .onRequest('fs/read_text_file', async ({ params }) => ({
      content: await readTextInside(isAttached(params.path) ? dirname(params.path) : root, params.path, params),
    }))
    .onRequest('fs/write_text_file', async ({ params }) => {
      requireWriteAccess()
      await writeTextInside(root, params.path, params.content)
      return {}
    })
    .onRequest('session/request_permission', async ({ params, signal: withdrawn }) => ({
      outcome: await silence.pausedFor(() =>
        answerPermission(
          { policy, request, agent: options.name, withdrawn, onAllowed: updates.allowed, onDenied: reply.tool },
          params,
        ),
      ),
    }))
    .onRequest('terminal/create', async ({ params }) => {
      requireWriteAccess()
      return { terminalId: await terminals.create(params) }
    })
    .onRequest('terminal/output', ({ params }) => terminals.output(params.terminalId))
    .onRequest('terminal/wait_for_exit', ({ params }) => terminals.waitForExit(params.terminalId))
    .onRequest('terminal/kill', async ({ params }) => {
      await terminals.kill(params.terminalId)
      return {}
    })
    .onRequest('terminal/release', async ({ params }) => {
      await terminals.release(params.terminalId)
      return {}
    })
}
