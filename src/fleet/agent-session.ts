/*
 * Runs an agent turn by turn, for programs without a terminal interface. In: the agent, lines of input. Out: one run
 * after another, each resuming the program's session from the one before. The first prompt is the beacon; each later
 * one is a message that somebody sent.
 */
import type { AgentAnswer, AgentQuestion } from '../agents/question.ts'
import { readReply } from '../agents/question.ts'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError, toAppError } from '../domain/errors.ts'
import { FLEET_PLATFORM, type FleetAgent, REQUESTS } from '../domain/fleet/agent.ts'
import { type Item, toNote } from '../domain/fleet/item.ts'
import { toWork } from '../domain/work.ts'
import type { RunReporter, RunRequest, RunResult } from '../runs/request.ts'
import { runAgent } from '../runs/run.ts'
import { createTurns } from '../runs/turns.ts'
import { type AgentCaller, currentAgent, startedAgent } from './caller.ts'
import type { FleetContext } from './context.ts'
import { done, type Done } from './formulas/done.ts'
import { itemNumbered } from './items/add.ts'
import { parkItem } from './items/change.ts'
import { primeAgent, type Primer } from './prime.ts'
import { outsideDirectories } from './program.ts'
import { beaconFor } from './sessions/beacon.ts'
import { agentDirectory } from './sessions/paths.ts'

export type SessionEvent =
  | { readonly kind: 'prompt'; readonly text: string }
  | { readonly kind: 'text' | 'tool'; readonly text: string }
  | { readonly kind: 'question'; readonly question: AgentQuestion }
  | { readonly kind: 'answer-unclear' }
  | { readonly kind: 'ended'; readonly result: RunResult }
  | { readonly kind: 'failed'; readonly error: AppError }
  | { readonly kind: 'done'; readonly done: Done }
  | { readonly kind: 'waiting' }

export type SessionIo = {
  /** The next message; undefined at the end of the input, or once it is no longer wanted. */
  readonly next: (unwanted?: AbortSignal, after?: number) => Promise<string | undefined>
  /** How many messages have come that no turn has taken yet. `next` leaves as many as `after` says. */
  readonly queued: () => number
  readonly show: (event: SessionEvent) => void
  /** The text of `coppice prime`, for an agent that can't run commands. */
  readonly primed: (primer: Primer) => string
  readonly signal: AbortSignal
  /** Start a new session of the program instead of resuming one. */
  readonly fresh?: boolean
}

/** Resolves when the input ends, or the agent has finished its item and its session is to end. */
export const runAgentSession = async (context: FleetContext, caller: AgentCaller, io: SessionIo): Promise<void> => {
  const { isolation } = context
  // A turn leases the environment, too, so it must come after the session's own lease, which has to be the only one.
  await startedAgent(isolation, caller, io.signal)
  const subject = await subjectOf(context, caller)
  const { agent, codebase, environment } = subject
  const item = await itemOf(context, subject)
  const turns = createTurns()
  const conversation = await conversationOf(context, agent, codebase)
  if (io.fresh === true) await isolation.store.sessions.end(conversation, 'fresh start', isolation.clock())
  // An agent that can't run commands would take "wait" for its task.
  const waits = item === undefined && runsNoCommands(context, agent)
  let prompt = waits ? await waitForPrompt(io) : beaconFor(agent, item, codebase, environment)
  let toldItem: number | undefined
  for (let turn = 1; prompt !== undefined; turn += 1) {
    const now = await subjectOf(context, caller)
    const newItem = now.agent.itemId === toldItem ? undefined : await itemPrompt(context, now)
    toldItem = now.agent.itemId
    const request = { prompt: newItem ?? prompt, turn, turns, conversation }
    io.show({ kind: 'prompt', text: request.prompt })
    if (await oneTurn(context, caller, io, request)) return
    prompt = await waitForPrompt(io)
  }
}

const waitForPrompt = (io: SessionIo): Promise<string | undefined> => {
  io.show({ kind: 'waiting' })
  return io.next()
}

/** An agent that can't run `coppice prime` gets the text of a new item instead of the message that announces it. */
const itemPrompt = async (context: FleetContext, subject: Subject): Promise<string | undefined> => {
  const item = runsNoCommands(context, subject.agent) ? await itemOf(context, subject) : undefined
  return item && `${item.title}\n\n${item.body}`.trim()
}

const itemOf = async ({ isolation: { store } }: FleetContext, { agent }: Subject): Promise<Item | undefined> =>
  agent.itemId === undefined ? undefined : store.items.get(agent.itemId)

type Turn = {
  readonly prompt: string
  readonly turn: number
  readonly turns: RunRequest['turns']
  readonly conversation: string
}

/** True if the agent has finished its item, so this process is about to be ended. */
const oneTurn = async (context: FleetContext, caller: AgentCaller, io: SessionIo, turn: Turn): Promise<boolean> => {
  const { isolation } = context
  const subject = await subjectOf(context, caller)
  const needsHelp = runsNoCommands(context, subject.agent)
  try {
    const primer = needsHelp ? await primeAgent(context, caller) : undefined
    const told = primer === undefined || 'why' in primer ? undefined : io.primed(primer)
    // Without a cgroup: the process that ends the session may have been started in this run (`coppice done`) and would
    // kill itself.
    const unboxed = { ...context, cgroup: undefined }
    const result = await runAgent(unboxed, requestOf(context, subject, io, { ...turn, context: told }))
    io.show({ kind: 'ended', result })
    if (!('record' in result)) return false
    await isolation.store.transaction(async (store) => {
      await result.record(store)
      await store.fleetAgents.update(subject.agent.id, { lastSignAt: isolation.clock() })
    })
    if (!needsHelp || subject.agent.itemId === undefined || result.outcome !== 'done') return false
    const finished = await done(context, { ...caller, signal: io.signal })
    io.show({ kind: 'done', done: finished })
    return finished.outcome === 'handed-over' || finished.outcome === 'done'
  } catch (error) {
    if (io.signal.aborted) throw error
    io.show({ kind: 'failed', error: toAppError(error) })
    return false
  }
}

const runsNoCommands = ({ agents }: FleetContext, { program }: FleetAgent): boolean =>
  agents.get(program)?.runsNoCommands === true

type Subject = {
  readonly agent: FleetAgent
  readonly codebase: Codebase
  readonly environment: IsolatedEnvironment
}

/** Read again before each turn: a crew member may have been given an item in another repository. */
const subjectOf = async ({ isolation }: FleetContext, caller: AgentCaller): Promise<Subject> => {
  const found = await currentAgent(isolation, caller)
  if ('why' in found) throw new AppError('not-found', "not inside an agent's session")
  const { agent, codebase } = found
  const { environmentId } = agent
  const environment = environmentId === undefined ? undefined : await isolation.store.environments.get(environmentId)
  if (environment?.status !== 'active') throw new AppError('not-found', `the worktree of ${agent.name} is gone`)
  return { agent, codebase, environment }
}

/**
 * Stores the program's session and its usage. It has no messages; the agent, not this conversation, holds the
 * environment.
 */
const conversationOf = async (
  { isolation: { store, ids, clock } }: FleetContext,
  agent: FleetAgent,
  codebase: Codebase,
): Promise<string> => {
  const now = clock()
  const { id } = await store.conversations.ensure({
    id: ids(),
    platform: FLEET_PLATFORM,
    conversationId: agent.id,
    codebaseId: codebase.id,
    environmentId: undefined,
    persistent: false,
    agent: agent.program,
    lastActivityAt: now,
    closedAt: undefined,
    createdAt: now,
  })
  return id
}

const requestOf = (
  context: FleetContext,
  { agent, codebase, environment }: Subject,
  io: SessionIo,
  { prompt, turn, turns, conversation, context: told }: Turn & { readonly context: string | undefined },
): RunRequest => ({
  id: `agent.${agent.spawn}`,
  attempt: turn,
  // A later turn continues the previous one; it doesn't repeat an interrupted run.
  isRerun: false,
  codebase,
  work: toWork('agent', agent.name),
  hints: {},
  prompt,
  context: told,
  attachments: [],
  rules: { access: 'write', allowedTools: [], disallowedTools: [] },
  needsIsolation: true,
  agent: agent.program,
  holder: { kind: 'conversation', id: conversation, name: `the agent ${agent.name}`, environmentId: environment.id },
  fleetAgent: agent.id,
  variables: ownVariables(context),
  outside: outsideOf(context, agent),
  reportTo: { platform: FLEET_PLATFORM, conversationId: agent.id, messageId: `${agent.spawn}:${turn}` },
  reporter: reporterFor(context, agent, io),
  turns,
  signal: io.signal,
})

const outsideOf = (
  { isolation: { home, ownEnvironment = {} } }: FleetContext,
  { name }: FleetAgent,
): RunRequest['outside'] =>
  outsideDirectories(agentDirectory(home, name), { isConfined: ownEnvironment[REQUESTS] !== undefined })

/** The agent's commands need these to find their agent and home. */
const ownVariables = ({ isolation: { ownEnvironment = {} } }: FleetContext): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(ownEnvironment).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined && entry[0].startsWith('COPPICE_') && !HIDDEN.has(entry[0]),
    ),
  )

/** The run has a mark of its own; the database address is a secret. */
const HIDDEN: ReadonlySet<string> = new Set(['COPPICE_RUN', 'COPPICE_DATABASE_URL'])

const reporterFor = (context: FleetContext, agent: FleetAgent, io: SessionIo): RunReporter => ({
  placed: async () => undefined,
  busy: async (_environment, wait) => wait(),
  found: async () => undefined,
  committed: () => undefined,
  event: (event) =>
    io.show(event.type === 'text' ? { kind: 'text', text: event.text } : { kind: 'tool', text: event.line }),
  ask: () => (question, withdrawn) => answerFrom(context, agent, io, question, withdrawn),
  began: async () => undefined,
  left: () => undefined,
})

/** Parks the item until somebody answers, which notifies its followers of the question. */
const answerFrom = async (
  context: FleetContext,
  agent: FleetAgent,
  io: SessionIo,
  question: AgentQuestion,
  withdrawn?: AbortSignal,
): Promise<AgentAnswer | undefined> => {
  // Whoever sent these hadn't seen the question: they aren't its answer.
  const earlier = io.queued()
  io.show({ kind: 'question', question })
  await park(context, agent, question)
  for (;;) {
    const line = await io.next(withdrawn, earlier)
    if (line === undefined) {
      await unpark(context, agent)
      return withdrawn?.aborted === true ? undefined : { kind: 'denied' }
    }
    const text = line.trim()
    const reply = question.kind === 'permission' ? { agreed: /^(?:y|yes|allow|ok)$/i.test(text) } : ({ text } as const)
    const read = readReply(question, reply)
    if (read.kind === 'answer') {
      await unpark(context, agent)
      return read.answer
    }
    io.show({ kind: 'answer-unclear' })
  }
}

const park = async (context: FleetContext, { itemId, name }: FleetAgent, question: AgentQuestion): Promise<void> => {
  if (itemId === undefined) return
  await context.isolation.store.transaction(async (store) => {
    const item = await itemNumbered(store, itemId)
    await parkItem(context, store, item, {
      reason: { kind: 'asked', note: toNote(inWords(question)) },
      by: `agent:${name}`,
    })
  })
}

/** With all that is asked for: whoever answers from a chat sees nothing else. */
const inWords = (question: AgentQuestion): string =>
  question.kind === 'permission'
    ? `it wants to ${question.what}${question.detail === undefined ? '.' : `:\n${question.detail}`}\nSend it yes or no.`
    : [
        question.question,
        ...question.choices.map(({ label }, n) => `${n + 1}. ${label}`),
        'Send it a number or your own words.',
      ].join('\n')

const unpark = ({ notify, isolation: { store, clock } }: FleetContext, { itemId, name }: FleetAgent): Promise<void> =>
  store.transaction(async (inside) => {
    const item = itemId === undefined ? undefined : await inside.items.get(itemId)
    if (item?.state !== 'parked') return
    const change = { kind: 'restarted', agent: name, why: 'stopped' } as const
    const by = `agent:${name}`
    if (!(await inside.items.move(item.id, { from: 'parked', to: 'hooked', change, by, at: clock() }))) return
    await notify(inside, { kind: 'restarted', item: { ...item, state: 'hooked' }, agent: name })
  })
