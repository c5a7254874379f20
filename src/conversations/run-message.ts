import type { AgentRules } from '../agents/agent.ts'
import type { Codebase } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import type { MessageDetails } from '../domain/message.ts'
import type { FetchedAttachments } from '../runs/attachments/directory.ts'
import { taskWork, toWork, type Work } from '../domain/work.ts'
import type { BudgetReached } from '../runs/budget.ts'
import { interruptionOf } from '../runs/interruption.ts'
import { isAnythingLeft } from '../runs/leftovers.ts'
import type { RunRequest, RunResult } from '../runs/request.ts'
import { runAgent } from '../runs/run.ts'
import type { Conversation, InboxMessage, Store } from '../store/store.ts'
import { budgetNotice } from '../commands/budget.ts'
import { leftNotice } from '../commands/stop.ts'
import type { ConversationsContext } from './context.ts'
import type { Handled, MessageControls } from './message-controls.ts'
import { notFetchedContext } from './attachments/texts.ts'
import { isChatCommand } from './answer-command.ts'
import * as notices from './notices.ts'
import { type Offer, offerReply } from './offers.ts'
import { publishRun } from './publish-run.ts'
import type { RepoCommand } from '../commands/repo-commands.ts'
import { hintsInText } from './thread-hints.ts'
import type { NewReply } from './outbox/replies.ts'
import { threadReporter } from './thread-reporter.ts'

export type MessageTask = {
  readonly conversation: Conversation
  readonly codebase: Codebase
  readonly run: MessageControls
  readonly attachments: FetchedAttachments
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
  let answer: MessageResult | undefined
  try {
    const result = await runAgent(context, await requestOf(context, message, task, offers))
    const { codebase, run } = task
    const isRerun = message.attempts > 1
    const published = await publishRun(context, { codebase, result, isRerun, signal: run.signal })
    answer = answerOf(context, message, task, { result, offers, published })
    return answer
  } finally {
    // The agent's reply takes the preview's place; without one, nothing would end it.
    const hasReply = answer?.replies.some(({ role }) => role === 'agent') === true
    const { platform, conversationId, details } = message
    if (!hasReply) context.deliveries.get(platform)?.preview?.(conversationId, undefined, details.replyTo)
  }
}

const requestOf = async (
  context: ConversationsContext,
  message: InboxMessage,
  task: MessageTask,
  offers: Offer[],
): Promise<RunRequest> => {
  const { conversation, codebase, run, asked, attachments, said = message } = task
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
    context: contextOf(details, attachments),
    attachments: attachments.files,
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
    reporter: threadReporter(context, message, {
      conversation,
      codebase,
      run,
      known: await context.platforms(),
      offers,
    }),
    turns: run.turns,
    signal: run.signal,
  }
}

const contextOf = ({ context }: MessageDetails, { notFetched }: FetchedAttachments): string | undefined => {
  const parts = [
    ...(context === undefined ? [] : [context]),
    ...(notFetched.length === 0 ? [] : [notFetchedContext(notFetched)]),
  ]
  return parts.length === 0 ? undefined : parts.join('\n\n')
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
    notReadOnly,
  }: Exclude<RunResult, { outcome: 'limit' } | { outcome: 'over-budget' }>,
  { codebase, run, runMinutes }: Pick<MessageTask, 'codebase' | 'run'> & { readonly runMinutes: number },
): readonly NewReply[] => {
  const failure = (): AppError =>
    new AppError('program-failed', problem ?? 'the agent failed', remedy === undefined ? {} : { remedy })
  const reply = text.trim() === '' && outcome === 'done' ? notices.silentNotice : text
  const timedOut = outcome === 'cancelled' && interruptionOf(run.signal) === 'time-limit'
  const stopped = outcome === 'cancelled' && !timedOut
  const notice = (key: string, isThere: boolean, words: () => string): NewReply[] =>
    isThere ? [{ key, role: 'system', text: words() }] : []
  return [
    ...notice('session', sessionLost, () => notices.sessionLostNotice),
    ...notice('writable', notReadOnly, () => notices.writableNotice),
    ...(stopped || reply.trim() === '' ? [] : [{ key: 'reply', role: 'agent', text: reply } as const]),
    ...notice('reply', stopped, () => notices.stoppedNotice),
    ...notice('problem', outcome === 'failed', () => notices.failureNotice(failure())),
    ...notice('limit', timedOut, () => notices.timeLimitNotice(runMinutes)),
    // A user who stopped it gets this from /stop.
    ...notice('left', !stopped && isAnythingLeft(left), () => leftNotice(left)),
    ...notice('tripwire', tripped.length > 0, () => notices.trippedNotice(codebase, tripped)),
    ...notice('git-files', planted.length > 0, () => notices.plantedNotice(codebase, planted)),
  ]
}
