import type { Codebase } from '../domain/environment.ts'
import { workLabel } from '../domain/work.ts'
import { portVariables } from '../isolation/worktree/ports.ts'
import type { InboxMessage } from '../store/store.ts'
import type { ConversationsContext } from './context.ts'
import type { Place } from './place.ts'

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
  { isolation, runTokens }: Pick<ConversationsContext, 'isolation' | 'runTokens'>,
  message: InboxMessage,
  codebase: Codebase,
  { directory, environment, untrusted }: Place & { readonly untrusted: boolean },
): Promise<AgentEnvironment> => {
  const { platform, conversationId, id, attempts } = message
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
    COPPICE_MESSAGE: id,
    COPPICE_ATTEMPT: String(attempts),
  }
  if (runTokens === undefined || untrusted) return { variables: plain, revoke: () => undefined }
  const { variables, revoke } = runTokens.issue({
    platform,
    conversationId,
    messageId: id,
    attempt: attempts,
    codebaseId: codebase.id,
    environmentId: environment?.id,
  })
  return { variables: { ...plain, ...variables }, revoke }
}
