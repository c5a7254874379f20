import type { AgentRequest, AgentResult } from './agent.ts'

/**
 * Runs with the session that was given, and without it when the program does not know it any more (its files were
 * cleared, or it was killed before it had written them): the work goes on, and the user sees that it begins anew.
 */
export const resumable = async (
  request: AgentRequest,
  run: (request: AgentRequest) => Promise<AgentResult | 'no-such-session'>,
): Promise<AgentResult> => {
  const { session, ...rest } = request
  const given = session !== undefined && isSessionId(session) ? request : { ...rest, session: undefined }
  const first = await run(given)
  if (first !== 'no-such-session') return first
  request.emit({ type: 'tool', line: 'started a new session: the previous one no longer exists' })
  const second = await run({ ...rest, session: undefined })
  if (second !== 'no-such-session') return second
  return {
    outcome: 'failed',
    text: '',
    problem: "The agent couldn't start a session.",
    remedy: 'Send the message again.',
  }
}

/** It becomes an argument of a program: never one of its options. */
const isSessionId = (session: string): boolean => /^[A-Za-z0-9][\w-]{0,127}$/.test(session)
