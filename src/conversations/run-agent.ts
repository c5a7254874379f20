import type { Agent, AgentEvent, AgentResult, AgentRules } from '../agents/agent.ts'
import { chooseAgent } from '../agents/registry.ts'
import type { Codebase } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import { workLabel } from '../domain/work.ts'
import { acquireLease } from '../isolation/lease.ts'
import { portVariables } from '../isolation/worktree/ports.ts'
import type { Conversation, InboxMessage, Session, Store } from '../store/store.ts'
import { recordUsage } from './budget.ts'
import type { ConversationsContext } from './context.ts'
import { messageVariable } from './end-run.ts'
import { giveBack } from './give-back.ts'
import { armGitWire } from './git-wire.ts'
import type { Handled, MessageRun } from './handle-message.ts'
import { interruptionOf } from './interruption.ts'
import * as notices from './notices.ts'
import { type Place, placeFor } from './place.ts'
import { askInThread } from './questions.ts'
import type { RepoCommand } from './repo-commands.ts'
import { about, type Said, say } from './replies.ts'
import { assertRepositoryThere } from './repository-there.ts'
import { sessionFor } from './sessions.ts'
import { armTripwire } from './tripwire.ts'

export type AgentTask = {
  readonly conversation: Conversation
  readonly codebase: Codebase
  readonly run: MessageRun
  /** The repository's own command, if that is what was said. */
  readonly asked: { readonly command: RepoCommand; readonly prompt: string } | undefined
}

/** What is to be said and recorded when the message is done. */
export type Worked = {
  readonly outcome: Handled
  readonly said: readonly Said[]
  readonly record: (store: Store) => Promise<void>
}

/** Resolves isolation, runs the agent there with the conversation's session, and answers what came of it. */
export const runAgent = async (
  context: ConversationsContext,
  message: InboxMessage,
  task: AgentTask,
): Promise<Worked> => {
  const { conversation, codebase } = task
  await assertRepositoryThere(codebase)
  const agent = await chosenAgent(context, conversation, codebase)
  const place = await placeFor(context, message, task)
  if ('refusal' in place) {
    return { outcome: 'answered', said: [{ key: 'reply', role: 'system', text: place.refusal }], record: nothing }
  }
  await context.isolation.failpoint('message.resolved')
  const result = await inPlace(context, message, task, agent, place)
  return worked(context, task, place, result)
}

const nothing = async (): Promise<void> => {}

const chosenAgent = async (
  { agents, isolation }: ConversationsContext,
  conversation: Conversation,
  codebase: Codebase,
): Promise<Agent> => {
  const wanted = conversation.agent
  const { agent } = await chooseAgent({
    agents,
    wanted,
    codebaseDefault: codebase.defaultAgent,
    settings: isolation.settings,
  })
  return agent
}

type Ran = AgentResult & {
  readonly session: Session
  readonly tripped: readonly string[]
  readonly planted: readonly string[]
}

const inPlace = async (
  context: ConversationsContext,
  message: InboxMessage,
  task: AgentTask,
  agent: Agent,
  place: Place,
): Promise<Ran> => {
  const { isolation } = context
  const { conversation, codebase, run } = task
  const { environment, directory } = place
  if (environment === undefined) return withAgent(context, message, task, agent, place)
  const done = await run.turns.take(environment.id, run.signal, async (wait) => {
    const text = notices.busyNotice(environment)
    await say(context, isolation.store, about(message), [{ key: 'busy', role: 'system', text }])
    context.queue.spoke()
    await run.whileWaiting(wait)
  })
  try {
    const purpose = `agent run for ${conversation.platform}:${conversation.conversationId}`.slice(0, 200)
    const lease = await acquireLease(isolation, codebase, environment, { purpose, signal: run.signal })
    try {
      await isolation.failpoint('message.leased')
      return await withAgent(context, message, task, agent, { directory, environment })
    } finally {
      await giveBack(context, lease)
    }
  } finally {
    done()
  }
}

const withAgent = async (
  context: ConversationsContext,
  message: InboxMessage,
  { conversation, codebase, run, asked }: AgentTask,
  agent: Agent,
  place: Place,
): Promise<Ran> => {
  const { isolation, changes, deliveries, redact } = context
  const { platform, conversationId } = message
  const session = await sessionFor(context, conversation, agent.name, place.directory)
  await isolation.failpoint('message.session')
  const tripwire = await armTripwire(isolation, codebase)
  const gitWire = await armGitWire(codebase, place.environment?.path)
  const delivery = deliveries.get(platform)
  let said = ''
  let saving = Promise.resolve()
  const emit = (event: AgentEvent): void => {
    switch (event.type) {
      case 'session':
        // At once: after a crash the next run goes on from it.
        saving = saving
          .then(() => isolation.store.sessions.update(session.id, { agentSessionId: event.id }))
          // The next run begins anew then; this one's reply must not be lost over it.
          .catch((error: unknown) => isolation.log.warn('a session could not be recorded', { error }))
        return
      case 'text':
        said += event.text
        delivery?.preview?.(conversationId, redact(said))
        changes.emit({ type: 'progress', platform, conversationId, kind: 'text', text: redact(event.text) })
        return
      case 'tool':
        changes.emit({ type: 'progress', platform, conversationId, kind: 'tool', text: redact(event.line) })
    }
  }
  const asking = new AbortController()
  const result = await agent
    .run({
      directory: place.directory,
      prompt: asked?.prompt ?? message.text,
      context: contextOf(message),
      session: session.agentSessionId,
      rules: rulesOf(asked?.command),
      untrusted: place.environment?.isFork ?? false,
      environment: await environmentOf(context, message, codebase, place),
      signal: run.signal,
      emit,
      ask: askInThread(context, message, { ...run, signal: AbortSignal.any([run.signal, asking.signal]) }),
      onStart: async (child) => {
        await isolation.failpoint('message.spawned')
        await context.queue.began(message, child)
        await isolation.failpoint('message.began')
      },
      // A question that its agent did not wait for must not stop the clock for what comes after.
    })
    .finally(() => asking.abort())
  await saving
  if (result.outcome === 'cancelled' && interruptionOf(run.signal) !== 'time-limit') {
    run.signal.throwIfAborted()
    throw new AppError('cancelled', `${agent.name} was cancelled`)
  }
  await isolation.failpoint('message.ran')
  return { ...result, session, tripped: await tripwire(), planted: gitWire() }
}

const rulesOf = (command: RepoCommand | undefined): AgentRules => ({
  access: command?.type === 'read' ? 'read' : 'write',
  allowedTools: command?.allowedTools ?? [],
  disallowedTools: command?.disallowedTools ?? [],
})

const contextOf = ({ attempts, details }: InboxMessage): string | undefined => {
  const parts = [
    ...(attempts > 1 ? [notices.rerunContext(attempts)] : []),
    ...(details.context === undefined ? [] : [details.context]),
  ]
  return parts.length === 0 ? undefined : parts.join('\n\n')
}

const environmentOf = async (
  { isolation }: ConversationsContext,
  message: InboxMessage,
  codebase: Codebase,
  { directory, environment }: Place,
): Promise<Record<string, string>> => ({
  ...isolation.programEnvironment,
  ...(environment === undefined ? {} : await portVariables(isolation, environment)),
  COPPICE_HOME: isolation.home,
  COPPICE_DIR: directory,
  COPPICE_CODEBASE: codebase.name,
  ...(environment !== undefined && {
    COPPICE_BRANCH: environment.branch,
    COPPICE_WORK: workLabel(environment.work),
  }),
  COPPICE_CONVERSATION: `${message.platform}:${message.conversationId}`,
  [messageVariable]: message.id,
  COPPICE_ATTEMPT: String(message.attempts),
})

const worked = (
  { isolation }: ConversationsContext,
  { conversation, codebase, run }: AgentTask,
  { environment }: Place,
  { outcome, text, problem, remedy, session, tripped, planted, usage }: Ran,
): Worked => {
  const failure = new AppError('program-failed', problem ?? 'the agent failed', remedy === undefined ? {} : { remedy })
  const reply = text.trim() === '' && outcome === 'done' ? notices.silentNotice : text
  const said: Said[] = [
    ...(reply.trim() === '' ? [] : [{ key: 'reply', role: 'agent', text: reply } as const]),
    ...(outcome === 'failed'
      ? [{ key: 'problem', role: 'system', text: notices.failureNotice(failure) } as const]
      : []),
    ...(outcome === 'cancelled'
      ? [{ key: 'limit', role: 'system', text: notices.timeLimitNotice(isolation.settings.runMinutes) } as const]
      : []),
    ...(tripped.length === 0
      ? []
      : [{ key: 'tripwire', role: 'system', text: notices.trippedNotice(codebase, tripped) } as const]),
    ...(planted.length === 0
      ? []
      : [{ key: 'git-files', role: 'system', text: notices.plantedNotice(codebase, planted) } as const]),
  ]
  return {
    outcome: outcome === 'failed' ? 'failed' : interruptionOf(run.signal) === undefined ? 'answered' : 'stopped',
    said,
    record: async (store) => {
      const now = isolation.clock()
      await store.sessions.update(session.id, { lastUsedAt: now })
      await recordUsage(store, { id: isolation.ids(), session, usage, at: now })
      await store.conversations.update(conversation.id, { lastActivityAt: now })
      if (environment !== undefined) await store.environments.update(environment.id, { lastActivityAt: now })
    },
  }
}
