/*
 * One run of an agent, for anybody. In: a `RunRequest`: work, codebase, prompt, rules, who asked, where to report. Out:
 * a `RunResult`. Knows nothing of inboxes or platforms.
 */
import type { Agent, AgentEvent, AgentRequest, AgentResult } from '../agents/agent.ts'
import { chooseAgent } from '../agents/registry.ts'
import type { IsolatedEnvironment } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import type { Sha } from '../domain/names.ts'
import { presentCodebase } from '../isolation/codebases/recognise.ts'
import { acquireLease } from '../isolation/lease.ts'
import { trustRun } from '../isolation/trust.ts'
import type { Session, Store } from '../store/store.ts'
import { agentEnvironment } from './agent-environment.ts'
import { branchTip } from './branch-tip.ts'
import { budgetReached, recordUsage } from './budget.ts'
import type { RunsContext } from './context.ts'
import { releaseLease } from './release-lease.ts'
import { interruptionOf } from './interruption.ts'
import { orNotIsolated, type Workspace, workspaceFor } from './workspace.ts'
import type { RunEnd, RunRequest, RunResult } from './request.ts'
import { sessionFor } from './sessions.ts'
import { watchRun } from './watch.ts'

/**
 * Runs an agent: finds the environment, waits for its turn, holds a lease, resumes the session, and watches what the
 * agent leaves and changes. Records nothing as done: the caller calls `record` in the transaction that records its
 * reply.
 */
export const runAgent = async (context: RunsContext, asked: RunRequest): Promise<RunResult> => {
  const { isolation } = context
  const reached = await budgetReached(isolation, asked.holder)
  if (reached !== undefined) return { outcome: 'over-budget', reached }
  const request = {
    ...asked,
    codebase: await orNotIsolated(asked.codebase, () => presentCodebase(isolation, asked.codebase)),
  }
  const { agent } = await chooseAgent({
    agents: context.agents,
    wanted: request.agent,
    codebaseDefault: request.codebase.defaultAgent,
    settings: isolation.settings,
  })
  const place = await workspaceFor(context, request)
  if ('outcome' in place) return place
  await isolation.failpoint('run.placed')
  const { environment } = place
  if (environment === undefined) return inPlace(context, request, agent, place)
  return inTurn(context, request, environment, async () => {
    const { codebase, signal } = request
    const trusted = await orNotIsolated(codebase, () =>
      trustRun(isolation, codebase, environment, { trusted: place.trusted, signal }),
    )
    return inPlace(context, request, agent, { ...place, trusted })
  })
}

/** Two agents in one tree would undo each other's work; a lease prevents its removal meanwhile. */
const inTurn = async (
  { isolation }: RunsContext,
  { codebase, holder, reporter, signal, turns, fleetAgent }: RunRequest,
  environment: IsolatedEnvironment,
  work: () => Promise<RunResult>,
): Promise<RunResult> => {
  const done = await turns.take(environment.id, signal, (wait) => reporter.busy(environment, wait))
  try {
    const purpose = `agent run for ${holder.name}`.slice(0, 200)
    const lease = await orNotIsolated(codebase, () =>
      acquireLease(isolation, codebase, environment, {
        purpose,
        signal,
        ...(fleetAgent === undefined && { withoutAgents: true }),
      }),
    )
    try {
      await isolation.failpoint('run.leased')
      return await work()
    } finally {
      await releaseLease(isolation, lease)
    }
  } finally {
    done()
  }
}

const inPlace = async (
  context: RunsContext,
  request: RunRequest,
  agent: Agent,
  place: Workspace,
): Promise<RunResult> => {
  const { isolation } = context
  const { reporter, signal } = request
  const session = await sessionFor(isolation, request.holder, agent.name, place.directory)
  await isolation.failpoint('run.session')
  const watched = await watchRun(context, request, place)
  const events = listener(context, session, reporter)
  const environment = await agentEnvironment(context, request, place)
  const tip = await tipOf(isolation, request, place)
  const asking = new AbortController()
  const agentRequest: AgentRequest = {
    directory: place.directory,
    launch: place.launch,
    prompt: request.prompt,
    context: contextOf(request),
    attachments: request.attachments,
    session: session.agentSessionId,
    rules: request.rules,
    outside: request.outside,
    untrusted: !place.trusted,
    environment: environment.variables,
    mark: watched.mark,
    signal,
    secrets: isolation.secrets,
    emit: events.emit,
    ask: reporter.ask(AbortSignal.any([signal, asking.signal])),
    onStart: async (child) => {
      watched.began(child)
      await isolation.failpoint('run.spawned')
      await reporter.began(child)
      await isolation.failpoint('run.began')
    },
  }
  try {
    // A question the agent stopped waiting for must not pause the clock any longer.
    const result = await agent.run(agentRequest).finally(() => {
      environment.revoke()
      asking.abort('ended')
    })
    await events.saved()
    throwIfCutShort(agent, result, signal)
    await isolation.failpoint('run.ended')
    const end = await watched.end()
    reporter.left(end.left)
    const found = { sessionLost: events.isSessionLost(), notReadOnly: events.isWritable() }
    const committed = (await tipOf(isolation, request, place)) !== tip
    return ended(context, request, { result, end, session, found, committed, place })
  } catch (error) {
    reporter.left(await watched.leave())
    throw error
  }
}

const tipOf = async (
  isolation: RunsContext['isolation'],
  { codebase }: RunRequest,
  { environment }: Workspace,
): Promise<Sha | undefined> => environment && branchTip(isolation, codebase, environment)

/** Forwards text and tool calls to the reporter, and saves the session ID at once. */
const listener = (
  { isolation, redact }: RunsContext,
  session: Session,
  reporter: RunRequest['reporter'],
): {
  readonly emit: (event: AgentEvent) => void
  readonly saved: () => Promise<void>
  readonly isSessionLost: () => boolean
  readonly isWritable: () => boolean
} => {
  let saving = Promise.resolve()
  let isSessionLost = false
  let isWritable = false
  return {
    saved: () => saving,
    isSessionLost: () => isSessionLost,
    isWritable: () => isWritable,
    emit: (event) => {
      switch (event.type) {
        case 'session':
          // The session ID is stored, so it must not contain a secret either.
          if (isolation.secrets.redactKnown(event.id) !== event.id) return
          // At once: after a crash the next run resumes it.
          saving = saving
            .then(() => isolation.store.sessions.update(session.id, { agentSessionId: event.id }))
            // The next run starts a new session; don't lose this one's reply.
            .catch((error: unknown) => isolation.log.warn('a session could not be recorded', { error }))
          return
        case 'session-lost':
          // An agent that can never resume would say so with every reply: only where it was expected to, in a new directory.
          isSessionLost = event.why === 'unknown' || session.lastUsedAt === session.startedAt
          return reporter.event({ type: 'tool', line: "couldn't resume its session: started a new one" })
        case 'not-read-only':
          isWritable = true
          return
        // Agents redact secrets themselves, where chunks may split them; this is a safety net.
        case 'text':
          return reporter.event({ type: 'text', text: redact(event.text) })
        case 'tool':
          return reporter.event({ type: 'tool', line: redact(event.line) })
      }
    },
  }
}

/** A shutdown isn't a result: the run is retried, and finds what was left or changed. */
const throwIfCutShort = (agent: Agent, { outcome }: AgentResult, signal: AbortSignal): void => {
  const interrupted = interruptionOf(signal)
  if (outcome !== 'cancelled' || interrupted === 'stop' || interrupted === 'time-limit') return
  signal.throwIfAborted()
  throw new AppError('cancelled', `${agent.name} was cancelled`)
}

const contextOf = ({ attempt, isRerun = true, context }: RunRequest): string | undefined => {
  const parts = [
    ...(attempt > 1 && isRerun ? [rerunContext(attempt)] : []),
    ...(context === undefined ? [] : [context]),
  ]
  return parts.length === 0 ? undefined : parts.join('\n\n')
}

/** Warns the agent of half-done work. */
const rerunContext = (attempt: number): string =>
  `Coppice was interrupted while this request was running; this is attempt ${attempt}. Parts of the work may already be done in this directory: check git status and git log before you continue, and don't do them twice.`

const ended = (
  { isolation }: RunsContext,
  { holder }: RunRequest,
  run: {
    readonly result: AgentResult
    readonly found: { readonly sessionLost: boolean; readonly notReadOnly: boolean }
    readonly end: RunEnd
    readonly session: Session
    readonly committed: boolean
    readonly place: Workspace
  },
): RunResult => {
  const { usage, ...result } = run.result
  const { environment, trusted } = run.place
  return {
    ...result,
    ...run.end,
    ...run.found,
    environment,
    trusted,
    committed: run.committed,
    record: async (store: Store) => {
      await run.end.record(store)
      const now = isolation.clock()
      await store.sessions.update(run.session.id, { lastUsedAt: now })
      await recordUsage(store, { id: isolation.ids(), holder: holder.id, agent: run.session.agent, usage, at: now })
      if (environment !== undefined) await store.environments.update(environment.id, { lastActivityAt: now })
    },
  }
}
