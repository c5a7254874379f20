import { workLabel } from '../domain/work.ts'
import { portVariables } from '../isolation/ports.ts'
import type { RunsContext } from './context.ts'
import type { Workspace } from './workspace.ts'
import type { RunRequest } from './request.ts'

export type AgentEnvironment = {
  readonly variables: Readonly<Record<string, string>>
  /** The run is over: its token opens nothing any more. */
  readonly revoke: () => void
}

/**
 * The whole environment of an agent's process. COPPICE_HOME is not in it: the token, the database and the configuration
 * are there, and what a run may know about itself it can ask the server with a token of its own. A stranger's code gets
 * no token: the conversation is not for whoever wrote the tree.
 */
export const agentEnvironment = async (
  { isolation, runTokens }: Pick<RunsContext, 'isolation' | 'runTokens'>,
  { codebase, attempt, reportTo }: RunRequest,
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
  }
  if (runTokens === undefined || !trusted) return { variables: plain, revoke: () => undefined }
  const run = { ...reportTo, attempt, codebaseId: codebase.id, environmentId: environment?.id }
  const { variables, revoke } = runTokens.issue(run)
  return { variables: { ...plain, ...variables }, revoke }
}
