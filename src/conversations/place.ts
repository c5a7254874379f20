import type { IsolatedEnvironment } from '../domain/environment.ts'
import { isOwnMessage, isTrusted } from '../domain/trust.ts'
import { taskWork, toWork, type Work } from '../domain/work.ts'
import { followed } from '../isolation/moved.ts'
import { resolveIsolation } from '../isolation/resolve.ts'
import type { InboxMessage } from '../store/store.ts'
import type { ConversationsContext } from './context.ts'
import * as notices from './notices.ts'
import type { RepoCommand } from './repo-commands.ts'
import { about, type Said, say } from './replies.ts'
import type { AgentTask } from './run-agent.ts'

/** Where the agent works. Without an environment it reads in the shared checkout, and the tripwire watches. */
export type Place = {
  readonly directory: string
  readonly environment: IsolatedEnvironment | undefined
  /** The files there and the message are both the repository's own. */
  readonly trusted: boolean
}

/** Where a message is worked on; the conversation is told when that is a new place. */
export const placeFor = async (
  context: ConversationsContext,
  message: InboxMessage,
  task: AgentTask,
): Promise<Place | { readonly refusal: string }> => {
  // A stranger's pull request is read in a worktree of its own, never beside the checkout's secrets.
  const readsHere = readsOnly(task.asked?.command) && isOwnMessage(workOf(message), message.details.hints ?? {})
  const place = readsHere ? await readingPlace(context, task) : undefined
  return place ?? isolatedPlace(context, message, task)
}

const readsOnly = (command: RepoCommand | undefined): boolean => command?.type === 'read' && !command.requiresIsolation

/** A command that only reads needs no environment of its own: the conversation's, if it has one, else the checkout. */
const readingPlace = async (
  { isolation }: ConversationsContext,
  { conversation, codebase }: AgentTask,
): Promise<Place | undefined> => {
  const own =
    conversation.environmentId === undefined
      ? undefined
      : await isolation.store.environments.get(conversation.environmentId)
  if (own?.status === 'active') {
    const { environment } = await followed(isolation, codebase, own)
    return { directory: environment.path, environment, trusted: isTrusted(environment.trust) }
  }
  // A bare repository has no files to read: then an environment is made after all.
  const { checkoutPath } = codebase
  return checkoutPath === undefined ? undefined : { directory: checkoutPath, environment: undefined, trusted: true }
}

const isolatedPlace = async (
  context: ConversationsContext,
  message: InboxMessage,
  { conversation, codebase, run }: AgentTask,
): Promise<Place | { readonly refusal: string }> => {
  const { isolation, changes, keepSpares } = context
  const { hints = {} } = message.details
  const resolution = await resolveIsolation(isolation, await context.provider(), {
    codebase,
    work: workOf(message),
    hints,
    conversation,
    createdBy: message.platform,
    signal: run.signal,
  })
  if (resolution.outcome === 'limit') {
    return { refusal: notices.limitNotice(resolution.report, isolation.settings.staleDays) }
  }
  const { environment, how, trusted } = resolution
  const isNew = conversation.environmentId !== environment.id
  const told = isNew ? notices.placeNotices(resolution) : resolution.notices
  // In one transaction: told exactly if it is remembered, so a crash neither hides it nor says it twice.
  await isolation.store.transaction(async (store) => {
    if (isNew) await store.conversations.update(conversation.id, { environmentId: environment.id })
    // They name branches and remotes, which other people have named.
    const said = told.map((text, n): Said => ({
      key: `place:${message.attempts}:${n}`,
      role: 'system',
      text,
    }))
    await say(context, store, about(message), said)
  })
  if (told.length > 0) context.queue.spoke()
  if (how === 'created') {
    changes.emit({ type: 'environment', id: environment.id, codebaseId: codebase.id, status: 'active' })
    if (isolation.settings.spares > 0) keepSpares(codebase.id)
  }
  return { directory: environment.path, environment, trusted }
}

/** What the platform says it is about; else the thread itself. */
const workOf = ({ conversationId, details: { hints } }: InboxMessage): Work => {
  const { workflowType, workflowId } = hints ?? {}
  if (workflowType === undefined || workflowId === undefined) return toWork('thread', conversationId)
  return workflowType === 'task' ? taskWork(workflowId) : toWork(workflowType, workflowId)
}
