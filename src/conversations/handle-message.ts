import { onConversationClosed } from '../cleanup/closed.ts'
import { isAppError, NotIsolatedError } from '../domain/errors.ts'
import { rememberMerge } from '../isolation/merge-proof/merged-on-forge.ts'
import { capabilitiesOf } from '../domain/platform-capabilities.ts'
import type { Conversation, InboxMessage, Store } from '../store/store.ts'
import type { FetchedAttachments } from '../runs/attachments/directory.ts'
import { fetchAttachments } from './attachments/fetch.ts'
import { notFetchedNotice } from './attachments/texts.ts'
import { codebaseFor } from './bind-codebase.ts'
import { renameImported } from './rename-imported.ts'
import { answerCommand, isChatCommand } from './answer-command.ts'
import type { ConversationsContext } from './context.ts'
import { budgetReached } from '../runs/budget.ts'
import { type Interruption, interruptionOf } from '../runs/interruption.ts'
import type { Handled, MessageControls } from './message-controls.ts'
import * as notices from './notices.ts'
import { acceptedOffer } from './offers.ts'
import { prepared } from './inbox/prepared.ts'
import { asRouted, routeMessage } from './route-message.ts'
import { replyTarget, type NewReply, recordReplies } from './outbox/replies.ts'
import { type MessageTask, overBudget, runMessage } from './run-message.ts'

/** A run that crashed the process this often isn't retried. */
const MOST_ATTEMPTS = 3

/** Handles one claimed message and records it as done together with its replies. */
export const handleMessage = async (
  context: ConversationsContext,
  message: InboxMessage,
  run: MessageControls,
): Promise<Handled> => {
  const { log } = context.isolation
  try {
    await context.isolation.failpoint('message.claimed')
    const tries = message.attempts - message.putBacks
    if (tries > MOST_ATTEMPTS) {
      return await answered(context, message, [
        { key: 'reply', role: 'system', text: notices.givenUpNotice(tries - 1) },
      ])
    }
    if (message.kind === 'closed') return await closeKnown(context, message)
    const conversation = await conversationOf(context, message)
    await context.isolation.failpoint('message.opened')
    const accepted = await acceptedOffer(context.isolation.store, message)
    const typed = accepted === undefined ? asAnswer(message) : { ...message, text: accepted }
    if (isChatCommand(typed.text)) return await answerOrRun(context, typed, conversation, run)
    const routed = await routeMessage(context, message, conversation)
    if (routed.kind === 'offer') return await answered(context, message, [routed.reply])
    const given = asRouted(message, routed)
    if (isChatCommand(given.text)) return await answerOrRun(context, given, conversation, run)
    return await work(context, given, conversation, run, { said: routed.of })
  } catch (error) {
    const interrupted = interruptionOf(run.signal)
    // An agent that couldn't be ended may still run: leave the message running, so that the next start ends it first.
    const begun = !(error instanceof NotIsolatedError)
    const ended = !begun || !isAppError(error, 'busy')
    if (interrupted === 'shutdown') {
      if (ended) await context.queue.putBack(message)
      return 'put-back'
    }
    if (interrupted !== undefined && ended) {
      await answered(context, message, [
        { key: 'reply', role: 'system', text: interruptedNotice(context, interrupted, begun) },
      ])
      return 'stopped'
    }
    log.error('a message could not be worked on', { id: message.id, platform: message.platform, error })
    await answered(context, message, [{ key: 'reply', role: 'system', text: notices.failureNotice(error) }])
    return 'failed'
  }
}

/** Only a message that names a choice of the agent's question is taken at once without being a command. */
const asAnswer = (message: InboxMessage): InboxMessage =>
  message.lane === 'at-once' && !isChatCommand(message.text)
    ? { ...message, text: `/answer ${message.text.trim()}` }
    : message

/**
 * For a run that was cancelled but hasn't ended: its message is answered anyway, or it would be retried endlessly. At a
 * shutdown it is left alone, and the next start ends what is left.
 */
export const giveUpOn = async (
  context: ConversationsContext,
  message: InboxMessage,
  signal: AbortSignal,
): Promise<Handled> => {
  context.isolation.log.error('a run did not end when it was told to', { id: message.id, reason: signal.reason })
  const interrupted = interruptionOf(signal)
  if (interrupted === undefined || interrupted === 'shutdown') return 'put-back'
  const text = `${interruptedNotice(context, interrupted)} ${notices.notEndedNotice}`
  await answered(context, message, [{ key: 'reply', role: 'system', text }])
  return 'failed'
}

const interruptedNotice = (
  { isolation: { settings } }: ConversationsContext,
  interrupted: Exclude<Interruption, 'shutdown'>,
  begun = true,
): string => {
  if (interrupted === 'time-limit') return notices.timeLimitNotice(settings.runMinutes, begun)
  return begun ? notices.stoppedNotice : notices.stoppedEarlyNotice
}

/** The conversation's row, reopened by a new message. */
const conversationOf = async (
  { isolation, platforms }: ConversationsContext,
  message: InboxMessage,
): Promise<Conversation> => {
  const { store, clock, ids } = isolation
  const now = clock()
  const { platform, conversationId, details } = message
  await renameImported(isolation, await platforms(), message)
  const conversation = await store.conversations.ensure({
    id: ids(),
    platform,
    conversationId,
    codebaseId: undefined,
    environmentId: undefined,
    persistent: capabilitiesOf(await platforms(), platform).persistent,
    agent: undefined,
    lastActivityAt: now,
    closedAt: undefined,
    createdAt: now,
  })
  // Only this message's fields: `/status` runs alongside `/agent` and must not restore the old one.
  const patch = {
    lastActivityAt: now,
    closedAt: undefined,
    ...(details.agent !== undefined && { agent: details.agent }),
  }
  await store.conversations.update(conversation.id, patch)
  return { ...conversation, ...patch }
}

const answerOrRun = async (
  context: ConversationsContext,
  message: InboxMessage,
  conversation: Conversation,
  run: MessageControls,
): Promise<Handled> => {
  // A command refers to the codebase that a message here would use.
  const found = await codebaseFor(context, conversation, message).catch((error: unknown) => {
    if (isAppError(error, 'not-found')) return undefined
    throw error
  })
  const codebase = found !== undefined && 'codebase' in found ? found.codebase : undefined
  // A repository's thread is about that one, whatever it was bound to before.
  const fallback = message.details.github === undefined ? conversation.codebaseId : undefined
  // Read again: its number and its worktree may have been the previous codebase's.
  const current = (await context.isolation.store.conversations.get(conversation.id)) ?? conversation
  const bound = { ...current, codebaseId: codebase?.id ?? fallback }
  const answer = await answerCommand(context, {
    conversation: bound,
    text: message.text,
    ...(message.details.hints && { hints: message.details.hints }),
    controls: {
      stop: run.stop,
      wake: () => context.queue.outboxChanged(),
      answer: (reply) => run.questions.answer(message, reply),
    },
    signal: run.signal,
  })
  const isFallback = found !== undefined && 'isFallback' in found
  if (answer.kind === 'run') return work(context, message, conversation, run, { asked: answer, isFallback })
  return answered(context, message, [{ key: 'reply', role: 'system', text: answer.text }])
}

const work = async (
  context: ConversationsContext,
  given: InboxMessage,
  conversation: Conversation,
  run: MessageControls,
  { asked, said, isFallback = false }: Partial<Pick<MessageTask, 'asked' | 'said'>> & { isFallback?: boolean },
): Promise<Handled> => {
  const found = await codebaseFor(context, conversation, given)
  if ('refusal' in found) {
    return answered(context, given, [{ key: 'reply', role: 'system', text: found.refusal }])
  }
  const { codebase } = found
  // Before calling the platform: if it is unreachable, the message would fail instead of being kept.
  const reached = await budgetReached(context.isolation, conversation)
  if (reached !== undefined) {
    const kept = overBudget(context.isolation, given, conversation, reached)
    return answered(context, given, kept.replies, kept.record)
  }
  const message = await prepared(context, given, run.signal)
  const attachments = await fetchAttachments(context, message, run.signal)
  await tellNotFetched(context, message, attachments)
  const same = conversation.codebaseId === undefined || conversation.codebaseId === codebase.id
  const bound = { ...conversation, codebaseId: codebase.id, ...(!same && { environmentId: undefined }) }
  const task = { conversation: bound, codebase, run, attachments, asked, said }
  const { outcome, replies, record } = await runMessage(context, message, task)
  await context.isolation.failpoint('message.worked')
  // Where the work happens names the repository; a command that only reads has no such place.
  const readsHere = asked?.command.type === 'read' && !asked.command.requiresIsolation
  const named: NewReply[] =
    isFallback && readsHere ? [{ key: 'codebase', role: 'system', text: notices.onlyCodebaseNotice(codebase) }] : []
  await answered(context, message, [...named, ...replies], record)
  return outcome
}

const tellNotFetched = async (
  context: ConversationsContext,
  message: InboxMessage,
  { notFetched }: FetchedAttachments,
): Promise<void> => {
  if (notFetched.length === 0) return
  const reply = { key: 'attachments', role: 'system', text: notFetchedNotice(notFetched) } as const
  await recordReplies(context, context.isolation.store, replyTarget(message), [reply])
  context.queue.outboxChanged()
}

/** Platforms report every closed issue; most were never mentioned here and leave no trace. */
const closeKnown = async (context: ConversationsContext, message: InboxMessage): Promise<Handled> => {
  const { platform, conversationId, details } = message
  // Before anything is decided about its environment, and also if only the branch was ever mentioned here.
  if (details.mergedPullRequest !== undefined) await rememberMerge(context.isolation, details.mergedPullRequest)
  await renameImported(context.isolation, await context.platforms(), message)
  const conversation = await context.isolation.store.conversations.find(platform, conversationId)
  await context.isolation.failpoint('message.opened')
  return conversation === undefined ? answered(context, message, []) : close(context, message, conversation)
}

/** An issue or PR was closed: ends the session; removes the environment if unused and the gates agree. */
const close = async (
  context: ConversationsContext,
  message: InboxMessage,
  conversation: Conversation,
): Promise<Handled> => {
  const { store, clock } = context.isolation
  try {
    return await endOrKeep(context, message, conversation)
  } catch (error) {
    await store.sessions.end(conversation.id, 'closed', clock())
    throw error
  }
}

const endOrKeep = async (
  context: ConversationsContext,
  message: InboxMessage,
  conversation: Conversation,
): Promise<Handled> => {
  const { clock, failpoint } = context.isolation
  await failpoint('message.closing')
  const outcome = await onConversationClosed(context.isolation, await context.environments(), conversation)
  await failpoint('message.closed')
  const text = notices.closedNotice(outcome)
  const replies: NewReply[] = text === undefined ? [] : [{ key: 'reply', role: 'system', text }]
  return answered(context, message, replies, async (inside) => {
    await inside.sessions.end(conversation.id, 'closed', clock())
  })
}

/** In one transaction: the reply is recorded exactly if its message is done. */
const answered = async (
  context: ConversationsContext,
  message: InboxMessage,
  replies: readonly NewReply[],
  record?: (store: Store) => Promise<void>,
): Promise<Handled> => {
  const finished = await context.queue.finish(message, async (store) => {
    await recordReplies(context, store, replyTarget(message), replies)
    await record?.(store)
  })
  if (!finished) context.isolation.log.warn('a message was taken over by another process', { id: message.id })
  await context.isolation.failpoint('message.finished')
  return 'answered'
}
