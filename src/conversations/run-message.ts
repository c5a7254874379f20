import type { AgentRules } from '../agents/agent.ts'
import type { Codebase } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import { type Notice, onceKey, placeKey } from '../domain/notice.ts'
import { taskWork, toWork, type Work } from '../domain/work.ts'
import type { BudgetReached } from '../runs/budget.ts'
import { interruptionOf } from '../runs/interruption.ts'
import { isAnythingLeft } from '../runs/leftovers.ts'
import type { RunReporter, RunRequest, RunResult } from '../runs/request.ts'
import { runAgent } from '../runs/run.ts'
import type { Conversation, InboxMessage, Store } from '../store/store.ts'
import { budgetNotice } from '../commands/budget.ts'
import { leftNotice } from '../commands/stop.ts'
import { describeNotices } from '../commands/views/notices.ts'
import type { ConversationsContext } from './context.ts'
import type { Handled, MessageControls } from './message-controls.ts'
import { isChatCommand } from './answer-command.ts'
import * as notices from './notices.ts'
import { isOffer, type Offer, offerReply } from './offers.ts'
import { publishRun } from './publish-run.ts'
import { askInThread } from './questions.ts'
import type { RepoCommand } from '../commands/repo-commands.ts'
import { hintsInText } from './thread-hints.ts'
import { replyTarget, type NewReply, recordReplies } from './outbox/replies.ts'

export type MessageTask = {
  readonly conversation: Conversation
  readonly codebase: Codebase
  readonly run: MessageControls
  /** The repository command, if the message is one. */
  readonly asked: { readonly command: RepoCommand; readonly prompt: string } | undefined
  /** The earlier message whose text this is, if this one only declined an offer. */
  readonly said: InboxMessage | undefined
}

/** The replies of a finished message, and what to record with them. */
export type MessageResult = {
  readonly outcome: Handled
  readonly replies: readonly NewReply[]
  readonly record: (store: Store) => Promise<void>
}

/** Runs an agent for a message and turns the result into replies. */
export const runMessage = async (
  context: ConversationsContext,
  message: InboxMessage,
  task: MessageTask,
): Promise<MessageResult> => {
  const offers: Offer[] = []
  const result = await runAgent(context, await requestOf(context, message, task, offers))
  const { codebase, run } = task
  const isRerun = message.attempts > 1
  const published = await publishRun(context, { codebase, result, isRerun, signal: run.signal })
  return answerOf(context, message, task, { result, offers, published })
}

const requestOf = async (
  context: ConversationsContext,
  message: InboxMessage,
  task: MessageTask,
  offers: Offer[],
): Promise<RunRequest> => {
  const { conversation, codebase, run, asked, said = message } = task
  const isFirst = asked === undefined && (await isFirstMessage(context.isolation, said, conversation))
  const { id, attempts, platform, conversationId, details } = message
  const isThread = details.hints?.workflowType === undefined
  return {
    id,
    attempt: attempts,
    codebase,
    work: workOf(message),
    hints: { ...(isFirst && isThread && hintsInText(message.text, codebase)), ...details.hints },
    prompt: asked?.prompt ?? message.text,
    ...(isFirst && { firstMessage: firstMessageOf(said) }),
    context: details.context,
    rules: rulesOf(asked?.command),
    needsIsolation: asked?.command.type !== 'read' || asked.command.requiresIsolation,
    agent: conversation.agent,
    holder: {
      kind: 'conversation',
      id: conversation.id,
      name: `${platform}:${conversationId}`,
      environmentId: conversation.environmentId,
      persistent: conversation.persistent,
    },
    reportTo: { platform, conversationId, messageId: id },
    reporter: threadReporter(context, message, task, offers),
    turns: run.turns,
    signal: run.signal,
  }
}

/** Whoever opens an issue says with its title what it is about. */
const firstMessageOf = ({ text, details: { title } }: InboxMessage): string =>
  title?.own === true ? `${title.text}\n${text}` : text

/** Commands don't count: people look around before they say what they want. */
const isFirstMessage = async (
  { store }: Pick<ConversationsContext['isolation'], 'store'>,
  message: InboxMessage,
  { environmentId }: Conversation,
): Promise<boolean> => {
  if (environmentId !== undefined) return false
  const recent = await store.inbox.ofConversation(message, 20)
  const [first] = recent.filter(({ kind, text }) => kind === 'message' && !isChatCommand(text))
  return first?.id === message.id
}

/** The platform's work item, or the thread itself. */
const workOf = ({ conversationId, details: { hints } }: InboxMessage): Work => {
  const { workflowType, workflowId } = hints ?? {}
  if (workflowType === undefined || workflowId === undefined) return toWork('thread', conversationId)
  return workflowType === 'task' ? taskWork(workflowId) : toWork(workflowType, workflowId)
}

const rulesOf = (command: RepoCommand | undefined): AgentRules => ({
  access: command?.type === 'read' ? 'read' : 'write',
  allowedTools: command?.allowedTools ?? [],
  disallowedTools: command?.disallowedTools ?? [],
})

/** Reports to the message's thread. */
const threadReporter = (
  context: ConversationsContext,
  message: InboxMessage,
  { conversation, codebase, run }: MessageTask,
  /** Filled in, for the end of the reply. */
  offers: Offer[],
): RunReporter => {
  const { isolation, changes, queue, keepSpares } = context
  const { platform, conversationId, attempts } = message
  const delivery = context.deliveries.get(platform)
  let text = ''
  /** Run after the transaction commits. */
  let after: (() => void)[] = []
  const tell = async (store: Store, replies: readonly NewReply[]): Promise<void> => {
    await recordReplies(context, store, replyTarget(message), replies)
    if (replies.length > 0) after.push(() => queue.outboxChanged())
  }
  const numbered = (key: string, texts: readonly string[]): readonly NewReply[] =>
    texts.map((one, n) => ({ key: `${key}:${attempts}:${n}`, role: 'system', text: one }))
  return {
    placed: async (store, place) => {
      const { environment, how, isNew } = place
      const untoldNotices = await untold(store, conversation.id, place.notices, isolation.clock())
      const news = { ...place, notices: untoldNotices.filter((notice) => !isOffer(notice)) }
      offers.splice(0, offers.length, ...untoldNotices.filter(isOffer))
      after = []
      if (isNew) await store.conversations.update(conversation.id, { environmentId: environment.id })
      // A conversation that was linked from a terminal, or imported, hasn't been told where it works.
      const isUntold = await store.conversations.tellOnce(conversation.id, placeKey(environment.id), isolation.clock())
      const told =
        isNew || isUntold ? notices.placeNotices(news, codebase) : describeNotices(news.notices, notices.inChat)
      // One message: one notification, and a preview of the answer can't get in between.
      await tell(store, numbered('place', told.length === 0 ? [] : [told.join('\n\n')]))
      if (how !== 'created') return
      after.push(() => {
        changes.emit({ type: 'environment', id: environment.id, codebaseId: codebase.id, status: 'active' })
        if (isolation.settings.spares > 0) keepSpares(codebase.id)
      })
    },
    busy: async (environment, wait) => {
      const notice = { key: 'busy', role: 'system', text: notices.busyNotice(environment) } as const
      await recordReplies(context, isolation.store, replyTarget(message), [notice])
      queue.outboxChanged()
      await run.whileWaiting(wait)
    },
    found: async (store, { ended, planted }) => {
      after = []
      await tell(store, [
        ...numbered('late', notices.endedRunNotices(codebase, ended)),
        ...numbered('between-runs', planted.length === 0 ? [] : [notices.betweenRunsNotice(codebase, planted)]),
      ])
    },
    committed: () => {
      for (const one of after) one()
      after = []
    },
    event: (event) => {
      if (event.type === 'text') {
        text += event.text
        delivery?.preview?.(conversationId, text)
        changes.emit({ type: 'progress', platform, conversationId, kind: 'text', text: event.text })
      } else changes.emit({ type: 'progress', platform, conversationId, kind: 'tool', text: event.line })
    },
    ask: (signal) => askInThread(context, message, { ...run, signal }),
    began: (child) => queue.began(message, child),
    left: (left) => run.onLeft?.(left),
  }
}

/** Leaves out what the conversation was told with an earlier message. */
const untold = async (
  store: Store,
  conversationId: string,
  all: readonly Notice[],
  now: number,
): Promise<readonly Notice[]> => {
  const news: Notice[] = []
  for (const notice of all) {
    const key = onceKey(notice)
    if (key === undefined || (await store.conversations.tellOnce(conversationId, key, now))) news.push(notice)
  }
  return news
}

type Answered = {
  readonly result: RunResult
  readonly offers: readonly Offer[]
  /** What became of the pull request that a run opens by itself. */
  readonly published: string | undefined
}

const answerOf = (
  { isolation }: ConversationsContext,
  message: InboxMessage,
  { conversation, codebase, run }: MessageTask,
  { result, offers, published }: Answered,
): MessageResult => {
  const reply = (words: string): readonly NewReply[] => [{ key: 'reply', role: 'system', text: words }]
  switch (result.outcome) {
    case 'limit':
      return {
        outcome: 'answered',
        replies: reply(notices.limitNotice(result.report, isolation.settings.staleDays)),
        record: async () => {},
      }
    case 'over-budget':
      return overBudget(isolation, message, conversation, result.reached)
    default:
      return {
        outcome:
          result.outcome === 'failed' ? 'failed' : interruptionOf(run.signal) === undefined ? 'answered' : 'stopped',
        replies: [
          ...repliesOf(result, { codebase, run, runMinutes: isolation.settings.runMinutes }),
          ...(published === undefined ? [] : [{ key: 'pull-request', role: 'system', text: published } as const]),
          ...offers.slice(0, 1).map(offerReply),
        ],
        record: async (store) => {
          await result.record(store)
          await store.conversations.update(conversation.id, { lastActivityAt: isolation.clock() })
        },
      }
  }
}

/** Kept, to be requeued when the limit is raised. */
export const overBudget = (
  { clock }: Pick<ConversationsContext['isolation'], 'clock'>,
  { id, text, details }: InboxMessage,
  conversation: Conversation,
  reached: BudgetReached,
): MessageResult => ({
  outcome: 'answered',
  replies: [{ key: 'reply', role: 'system', text: budgetNotice(reached) }],
  record: (store) => store.usage.pause({ inboxId: id, conversation: conversation.id, text, details, at: clock() }),
})

const repliesOf = (
  {
    outcome,
    text,
    problem,
    remedy,
    left,
    tripped,
    planted,
    sessionLost,
  }: Exclude<RunResult, { outcome: 'limit' } | { outcome: 'over-budget' }>,
  { codebase, run, runMinutes }: Pick<MessageTask, 'codebase' | 'run'> & { readonly runMinutes: number },
): readonly NewReply[] => {
  const failure = new AppError('program-failed', problem ?? 'the agent failed', remedy === undefined ? {} : { remedy })
  const reply = text.trim() === '' && outcome === 'done' ? notices.silentNotice : text
  const timedOut = outcome === 'cancelled' && interruptionOf(run.signal) === 'time-limit'
  const stopped = outcome === 'cancelled' && !timedOut
  const notice = (key: string, isThere: boolean, words: () => string): NewReply[] =>
    isThere ? [{ key, role: 'system', text: words() }] : []
  return [
    ...notice('session', sessionLost, () => notices.sessionLostNotice),
    ...(stopped || reply.trim() === '' ? [] : [{ key: 'reply', role: 'agent', text: reply } as const]),
    ...notice('reply', stopped, () => notices.stoppedNotice),
    ...notice('problem', outcome === 'failed', () => notices.failureNotice(failure)),
    ...notice('limit', timedOut, () => notices.timeLimitNotice(runMinutes)),
    // A user who stopped it gets this from /stop.
    ...notice('left', !stopped && isAnythingLeft(left), () => leftNotice(left)),
    ...notice('tripwire', tripped.length > 0, () => notices.trippedNotice(codebase, tripped)),
    ...notice('git-files', planted.length > 0, () => notices.plantedNotice(codebase, planted)),
  ]
}
