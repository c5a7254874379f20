import { workLabel } from '../domain/work.ts'
import { portVariables } from '../isolation/ports.ts'
import type { RunsContext } from './context.ts'
import type { Workspace } from './workspace.ts'
import type { RunRequest } from './request.ts'

export type AgentEnvironment = {
  readonly variables: Readonly<Record<string, string>>
  /** Call after the run: its token becomes invalid. */
  readonly revoke: () => void
}

/**
 * The full environment of an agent's process. Without COPPICE_HOME, which holds the token, the database and the
 * configuration: a run can ask the server about itself with its own token. Untrusted code gets no token, as its author
 * must not read the conversation.
 */
export const agentEnvironment = async (
  { isolation, runTokens }: Pick<RunsContext, 'isolation' | 'runTokens'>,
  { codebase, attempt, reportTo, variables: own = {} }: RunRequest,
  { directory, environment, trusted }: Workspace,
): Promise<AgentEnvironment> => {
  const { platform, conversationId, messageId } = reportTo
  const plain = {
    ...isolation.programEnvironment,
    ...(environment === undefined ? {} : await portVariables(isolation, environment)),
    COPPICE_DIR: directory,
    COPPICE_CODEBASE: codebase.name,
    ...(environment !== undefined && {
      COPPICE_BRANCH: environment.branch,
      COPPICE_WORK: workLabel(environment.work),
    }),
    COPPICE_CONVERSATION: `${platform}:${conversationId}`,
    COPPICE_MESSAGE: messageId,
    COPPICE_ATTEMPT: String(attempt),
    ...own,
  }
  if (runTokens === undefined || !trusted) return { variables: plain, revoke: () => undefined }
  const run = { ...reportTo, attempt, codebaseId: codebase.id, environmentId: environment?.id }
  const { variables, revoke } = runTokens.issue(run)
  return { variables: { ...plain, ...variables }, revoke }
}
