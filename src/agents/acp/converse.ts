import type { Ids } from '../../domain/clock.ts'
import {
  type AgentCapabilities,
  type ClientContext,
  type InitializeRequest,
  type NewSessionRequest,
  PROTOCOL_VERSION,
  RequestError,
} from '@agentclientprotocol/sdk'
import { setTimeout as delay } from 'node:timers/promises'
import type { AgentRequest } from '../agent.ts'
import type { TurnEnd } from './outcome.ts'
import { promptOf } from './prompt.ts'
import { enterReadOnly, type SessionModes } from './read-only.ts'
import type { Updates } from './updates.ts'

/** The agent's session, needed to cancel it. */
export type Session = { id: string | undefined }

export type ConverseParts = {
  readonly options: { readonly name: string; readonly ids: Ids }
  readonly request: Pick<
    AgentRequest,
    'directory' | 'session' | 'emit' | 'rules' | 'context' | 'prompt' | 'attachments'
  >
  readonly agent: ClientContext
  readonly updates: Updates
  readonly session: Session
}

/**
 * Reading isn't offered: we have no unsaved buffers, and Gemini CLI 0.61 treats our "no such file" as a fault and then
 * can't create the file. Writing and terminals are, so both stay inside the environment and end with the run.
 */
export const initializeRequest: InitializeRequest = {
  protocolVersion: PROTOCOL_VERSION,
  clientCapabilities: { fs: { readTextFile: false, writeTextFile: true }, terminal: true },
  clientInfo: { name: 'coppice', title: 'Coppice', version: '1' },
}

/** For an agent that doesn't answer after its turn. */
const LEAVE_MS = 2_000

/** Initializes, starts or resumes a session, sends the prompt, and waits for the response. */
export const converse = async (parts: ConverseParts): Promise<TurnEnd> => {
  const { agent, options, request, session, updates } = parts
  try {
    const initialized = await agent.request('initialize', initializeRequest)
    const { protocolVersion, agentCapabilities = {} } = initialized
    if (protocolVersion !== PROTOCOL_VERSION) return { kind: 'protocol', version: protocolVersion }
    const { id, ...modes } = await sessionOf(parts, agentCapabilities)
    session.id = id
    request.emit({ type: 'session', id })
    const leave = request.rules.access === 'read' ? await enterReadOnly(agent, id, modes) : async () => undefined
    if (leave === undefined) request.emit({ type: 'not-read-only' })
    updates.begin()
    const prompt = await promptOf(request, agentCapabilities, options.ids())
    const response = await agent.request('session/prompt', { sessionId: id, prompt })
    // A later message of the conversation may write.
    await Promise.race([leave?.().catch(() => undefined), delay(LEAVE_MS, undefined, { ref: false })])
    if (response.stopReason !== 'end_turn') return { kind: 'stopped', reason: response.stopReason }
    return { kind: 'done', usage: updates.usage(response) }
  } catch (error) {
    return faultOf(error)
  }
}

export const faultOf = (error: unknown): TurnEnd => {
  if (error instanceof RequestError) {
    if (error.code === AUTH_REQUIRED) return { kind: 'logged-out' }
    return { kind: 'error', message: messageOf(error) }
  }
  // The connection closed; the program's exit says why.
  return { kind: 'gone' }
}

const AUTH_REQUIRED = -32000

/** "Internal error" alone says nothing; the details often do. */
const messageOf = ({ message, data }: RequestError): string => {
  const details = typeof data === 'object' && data !== null && 'details' in data ? data.details : undefined
  return typeof details === 'string' && !message.includes(details) ? `${message}: ${details}` : message
}

type StartedSession = SessionModes & { readonly id: string }

const sessionOf = async (
  { agent, request }: ConverseParts,
  { loadSession, sessionCapabilities }: AgentCapabilities,
): Promise<StartedSession> => {
  const newSession: NewSessionRequest = { cwd: request.directory, mcpServers: [] }
  const wanted = request.session
  const canResume = (sessionCapabilities?.resume ?? undefined) !== undefined
  const isSupported = canResume || loadSession === true
  if (wanted !== undefined && isSupported) {
    try {
      const method = canResume ? 'session/resume' : 'session/load'
      return { ...(await agent.request(method, { ...newSession, sessionId: wanted })), id: wanted }
    } catch (error) {
      // If the agent no longer knows it, start a new one. Logged out, that would fail too.
      if (!(error instanceof RequestError) || error.code === AUTH_REQUIRED) throw error
    }
  }
  if (wanted !== undefined) {
    request.emit({ type: 'session-lost', why: isSupported ? 'unknown' : 'unsupported' })
  }
  const created = await agent.request('session/new', newSession)
  return { ...created, id: created.sessionId }
}
