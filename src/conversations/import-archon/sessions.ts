import type { ArchonSession } from '../../store/archon/archon.ts'
import type { Conversation, Session } from '../../store/store.ts'
import type { PlannedEnvironment } from './plan-environments.ts'

export type SessionChoice = {
  readonly agent: string
  readonly toSession: (id: string, conversation: string) => Session
}

/** The latest session that hasn't ended and has an ID to resume by. */
export const sessionsByConversation = (sessions: readonly ArchonSession[]): Map<string, ArchonSession> => {
  const latest = new Map<string, ArchonSession>()
  for (const session of sessions) {
    const { conversationId, active, agentSessionId, startedAt = 0 } = session
    if (conversationId === undefined || !active || agentSessionId === undefined) continue
    if (startedAt >= (latest.get(conversationId)?.startedAt ?? 0)) latest.set(conversationId, session)
  }
  return latest
}

/** Agents whose session IDs are the same on both sides. */
const agents = ['claude', 'codex']

/** The session to resume, or why not: it belongs to its directory and ends when that changes. */
export const resumable = (
  { agent = '', agentSessionId = '', startedAt }: ArchonSession,
  { closedAt, lastActivityAt }: Pick<Conversation, 'closedAt' | 'lastActivityAt'>,
  environment: PlannedEnvironment | undefined,
): SessionChoice | string => {
  if (closedAt !== undefined) return 'its conversation is closed'
  if (environment === undefined) return "its conversation's worktree wasn't imported"
  if (!agents.includes(agent)) return `unknown agent ${JSON.stringify(agent)}`
  if (environment.elsewhere !== undefined) {
    return `it belongs to ${environment.elsewhere}, and the agent can't resume it in another directory`
  }
  // It becomes a command-line argument of the agent.
  if (!/^[A-Za-z0-9][A-Za-z0-9._:-]{0,199}$/.test(agentSessionId)) return "its ID isn't a valid session ID"
  return {
    agent,
    toSession: (id, conversation) => ({
      id,
      conversation,
      agent,
      agentSessionId,
      directory: environment.path,
      startedAt: Math.min(startedAt ?? lastActivityAt, lastActivityAt),
      lastUsedAt: lastActivityAt,
      endedAt: undefined,
      endReason: undefined,
    }),
  }
}
