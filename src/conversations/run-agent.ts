import type { Agent, AgentEvent, AgentRequest, AgentResult, AgentRules } from '../agents/agent.ts'
import { chooseAgent } from '../agents/registry.ts'
import type { Codebase } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import { presentCodebase } from '../isolation/codebase-recognise.ts'
import { acquireLease } from '../isolation/lease.ts'
import type { Conversation, InboxMessage, Session, Store } from '../store/store.ts'
import { agentEnvironment } from './agent-environment.ts'
import { recordUsage } from './budget.ts'
import type { ConversationsContext } from './context.ts'
import { giveBack } from './give-back.ts'
import type { Handled, MessageRun } from './handle-message.ts'
import { interruptionOf } from './interruption.ts'
import { isAnythingLeft } from './leftovers.ts'
import * as notices from './notices.ts'
import { type Place, placeFor } from './place.ts'
import { askInThread } from './questions.ts'
import type { RepoCommand } from './repo-commands.ts'
import { about, type Said, say } from './replies.ts'
import { type RunEnd, watchRun } from './run-watch.ts'
import { sessionFor } from './sessions.ts'

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
  given: AgentTask,
): Promise<Worked> => {
  const task = { ...given, codebase: await presentCodebase(context.isolation, given.codebase) }
  const { conversation, codebase } = task
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

type Ran = AgentResult & { readonly session: Session; readonly end: RunEnd }

const inPlace = async (
  context: ConversationsContext,
  message: InboxMessage,
  task: AgentTask,
  agent: Agent,
  place: Place,
): Promise<Ran> => {
  const { isolation } = context
  const { conversation, codebase, run } = task
  const { environment } = place
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
      return await withAgent(context, message, task, agent, place)
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
  const watched = await watchRun(context, message, codebase, place)
  const delivery = deliveries.get(platform)
  let said = ''
  let saving = Promise.resolve()
  const emit = (event: AgentEvent): void => {
    switch (event.type) {
      case 'session':
        // Whatever the agent calls its session is kept, so it is no place for a secret either.
        if (isolation.secrets.redactKnown(event.id) !== event.id) return
        // At once: after a crash the next run goes on from it.
        saving = saving
          .then(() => isolation.store.sessions.update(session.id, { agentSessionId: event.id }))
          // The next run begins anew then; this one's reply must not be lost over it.
          .catch((error: unknown) => isolation.log.warn('a session could not be recorded', { error }))
        return
      case 'text':
        // Agents hide secrets themselves, where they can be split; this is for one that forgot.
        said += redact(event.text)
        delivery?.preview?.(conversationId, said)
        changes.emit({ type: 'progress', platform, conversationId, kind: 'text', text: redact(event.text) })
        return
      case 'tool':
        changes.emit({ type: 'progress', platform, conversationId, kind: 'tool', text: redact(event.line) })
    }
  }
  const asking = new AbortController()
  const untrusted = !place.trusted
  const environment = await agentEnvironment(context, message, codebase, { ...place, untrusted })
  const request: AgentRequest = {
    directory: place.directory,
    prompt: asked?.prompt ?? message.text,
    context: contextOf(message),
    session: session.agentSessionId,
    rules: rulesOf(asked?.command),
    untrusted,
    environment: environment.variables,
    mark: watched.mark,
    signal: run.signal,
    secrets: isolation.secrets,
    emit,
    ask: askInThread(context, message, { ...run, signal: AbortSignal.any([run.signal, asking.signal]) }),
    onStart: async (child) => {
      watched.began(child)
      await isolation.failpoint('message.spawned')
      await context.queue.began(message, child)
      await isolation.failpoint('message.began')
    },
  }
  try {
    // A question that its agent did not wait for must not stop the clock for what comes after.
    const result = await agent.run(request).finally(() => {
      environment.revoke()
      asking.abort()
    })
    await saving
    const interrupted = interruptionOf(run.signal)
    // A shutdown is no answer: the message goes back, and what was left or changed is found when it runs again.
    if (result.outcome === 'cancelled' && interrupted !== 'stop' && interrupted !== 'time-limit') {
      run.signal.throwIfAborted()
      throw new AppError('cancelled', `${agent.name} was cancelled`)
    }
    await isolation.failpoint('message.ran')
    const end = await watched.end()
    run.onLeft?.(end.left)
    return { ...result, session, end }
  } catch (error) {
    run.onLeft?.(await watched.leave())
    throw error
  }
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

const worked = (
  { isolation }: ConversationsContext,
  { conversation, codebase, run }: AgentTask,
  { environment }: Place,
  { outcome, text, problem, remedy, session, end, usage }: Ran,
): Worked => {
  const failure = new AppError('program-failed', problem ?? 'the agent failed', remedy === undefined ? {} : { remedy })
  const reply = text.trim() === '' && outcome === 'done' ? notices.silentNotice : text
  const timedOut = outcome === 'cancelled' && interruptionOf(run.signal) === 'time-limit'
  const stopped = outcome === 'cancelled' && !timedOut
  const notice = (key: string, isThere: boolean, words: () => string): Said[] =>
    isThere ? [{ key, role: 'system', text: words() }] : []
  const said: Said[] = [
    ...(stopped || reply.trim() === '' ? [] : [{ key: 'reply', role: 'agent', text: reply } as const]),
    ...notice('reply', stopped, () => notices.stoppedNotice),
    ...notice('problem', outcome === 'failed', () => notices.failureNotice(failure)),
    ...notice('limit', timedOut, () => notices.timeLimitNotice(isolation.settings.runMinutes)),
    // Whoever stopped it hears from /stop what is left.
    ...notice('left', !stopped && isAnythingLeft(end.left), () => notices.leftNotice(end.left)),
    ...notice('tripwire', end.tripped.length > 0, () => notices.trippedNotice(codebase, end.tripped)),
    ...notice('git-files', end.planted.length > 0, () => notices.plantedNotice(codebase, end.planted)),
  ]
  return {
    outcome: outcome === 'failed' ? 'failed' : interruptionOf(run.signal) === undefined ? 'answered' : 'stopped',
    said,
    record: async (store) => {
      await end.record(store)
      const now = isolation.clock()
      await store.sessions.update(session.id, { lastUsedAt: now })
      await recordUsage(store, { id: isolation.ids(), session, usage, at: now })
      await store.conversations.update(conversation.id, { lastActivityAt: now })
      if (environment !== undefined) await store.environments.update(environment.id, { lastActivityAt: now })
    },
  }
}
