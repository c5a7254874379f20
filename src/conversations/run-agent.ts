import type { Agent, AgentEvent, AgentResult, AgentRules } from '../agents/agent.ts'
import { chooseAgent } from '../agents/registry.ts'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import { taskWork, toWork, type Work, workLabel } from '../domain/work.ts'
import { acquireLease } from '../isolation/lease.ts'
import { resolveIsolation } from '../isolation/resolve.ts'
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

/** Where the agent works. Without an environment it reads in the shared checkout, and the tripwire watches. */
type Place = { readonly directory: string; readonly environment: IsolatedEnvironment | undefined }

/** Resolves isolation, runs the agent there with the conversation's session, and answers what came of it. */
export const runAgent = async (
  context: ConversationsContext,
  message: InboxMessage,
  task: AgentTask,
): Promise<Worked> => {
  const { conversation, codebase, asked } = task
  await assertRepositoryThere(codebase)
  const agent = await chosenAgent(context, conversation, codebase)
  const place = readsOnly(asked?.command) ? await readingPlace(context, task) : undefined
  const resolved = place ?? (await isolatedPlace(context, message, task))
  if ('refusal' in resolved) {
    return { outcome: 'answered', said: [{ key: 'reply', role: 'system', text: resolved.refusal }], record: nothing }
  }
  await context.isolation.failpoint('message.resolved')
  const result = await inPlace(context, message, task, agent, resolved)
  return worked(context, task, resolved, result)
}

const nothing = async (): Promise<void> => {}

const readsOnly = (command: RepoCommand | undefined): boolean => command?.type === 'read' && !command.requiresIsolation

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

/** A command that only reads needs no environment of its own: the conversation's, if it has one, else the checkout. */
const readingPlace = async (
  { isolation }: ConversationsContext,
  { conversation, codebase }: AgentTask,
): Promise<Place | undefined> => {
  const own =
    conversation.environmentId === undefined
      ? undefined
      : await isolation.store.environments.get(conversation.environmentId)
  if (own?.status === 'active') return { directory: own.path, environment: own }
  // A bare repository has no files to read: then an environment is made after all.
  return codebase.checkoutPath === undefined ? undefined : { directory: codebase.checkoutPath, environment: undefined }
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
  const { environment, how } = resolution
  const isNew = conversation.environmentId !== environment.id
  const told = isNew ? notices.placeNotices(resolution) : resolution.notices
  // In one transaction: told exactly if it is remembered, so a crash neither hides it nor says it twice.
  await isolation.store.transaction(async (store) => {
    if (isNew) await store.conversations.update(conversation.id, { environmentId: environment.id })
    const said = told.map((text, n): Said => ({ key: `place:${message.attempts}:${n}`, role: 'system', text }))
    await say(isolation, store, about(message), said)
  })
  if (told.length > 0) context.queue.spoke()
  if (how === 'created') {
    changes.emit({ type: 'environment', id: environment.id, codebaseId: codebase.id, status: 'active' })
    if (isolation.settings.spares > 0) keepSpares(codebase.id)
  }
  return { directory: environment.path, environment }
}

/** What the platform says it is about; else the thread itself. */
const workOf = ({ conversationId, details: { hints } }: InboxMessage): Work => {
  const { workflowType, workflowId } = hints ?? {}
  if (workflowType === undefined || workflowId === undefined) return toWork('thread', conversationId)
  return workflowType === 'task' ? taskWork(workflowId) : toWork(workflowType, workflowId)
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
  const done = await run.turns.take(environment.id, run.signal, async () => {
    const text = notices.busyNotice(environment)
    await say(isolation, isolation.store, about(message), [{ key: 'busy', role: 'system', text }])
    context.queue.spoke()
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
  const result = await agent.run({
    directory: place.directory,
    prompt: asked?.prompt ?? message.text,
    context: contextOf(message),
    session: session.agentSessionId,
    rules: rulesOf(asked?.command),
    untrusted: place.environment?.isFork ?? false,
    environment: await environmentOf(context, message, codebase, place),
    signal: run.signal,
    emit,
    ask: askInThread(context, message, run),
    onStart: async (child) => {
      await isolation.failpoint('message.spawned')
      await context.queue.began(message, child)
      await isolation.failpoint('message.began')
    },
  })
  await saving
  if (result.outcome === 'cancelled') {
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
    ...(tripped.length === 0
      ? []
      : [{ key: 'tripwire', role: 'system', text: notices.trippedNotice(codebase, tripped) } as const]),
    ...(planted.length === 0
      ? []
      : [{ key: 'git-files', role: 'system', text: notices.plantedNotice(codebase, planted) } as const]),
  ]
  return {
    outcome: outcome === 'failed' ? 'failed' : interruptionOf(run.signal) === 'stop' ? 'stopped' : 'answered',
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
