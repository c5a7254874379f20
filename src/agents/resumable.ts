import type { AgentRequest, AgentResult } from './agent.ts'

/**
 * Resumes the given session, or starts a new one if the program no longer has it (its files were deleted, or it was
 * killed before writing them). The user is notified of the new session.
 */
export const resumable = async (
  request: AgentRequest,
  run: (request: AgentRequest) => Promise<AgentResult | 'no-such-session'>,
): Promise<AgentResult> => {
  const { session, ...rest } = request
  const given = session !== undefined && isSessionId(session) ? request : { ...rest, session: undefined }
  const first = await run(given)
  if (first !== 'no-such-session') return first
  request.emit({ type: 'session-lost', why: 'unknown' })
  const second = await run({ ...rest, session: undefined })
  if (second !== 'no-such-session') return second
  return {
    outcome: 'failed',
    text: '',
    problem: "The agent couldn't start a session.",
    remedy: 'Send the message again.',
  }
}

/** It becomes a program argument and must never be parsed as an option. */
export const isSessionId = (session: string): boolean => /^[A-Za-z0-9][\w-]{0,127}$/.test(session)
