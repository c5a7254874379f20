import { AppError } from '../../domain/errors.ts'
import type { ArchonConversation, ArchonSession } from '../../store/archon/archon.ts'
import type { Conversation } from '../../store/store.ts'
import { activityOf, closedAt } from './activity.ts'
import { knownAgents } from './agents.ts'
import type { PlannedCodebase, PlannedCodebases } from './plan-codebases.ts'
import type { EnvironmentOf, PlannedEnvironment } from './plan-environments.ts'
import { eachRow, type Planning } from './planning.ts'
import { hasControl } from './report.ts'
import { resumable, type SessionChoice, sessionsByConversation } from './sessions.ts'

/** Everything but the IDs that only the import itself gives. */
export type WantedConversation = Omit<Conversation, 'id' | 'codebaseId' | 'environmentId'>

export type PlannedConversation = {
  readonly wanted: WantedConversation
  readonly codebase: PlannedCodebase
  /** What it will be attached to. */
  readonly environment: PlannedEnvironment | undefined
  readonly session: SessionChoice | undefined
  /** `attach`: it is here, but its worktree could only be imported now. */
  readonly action: 'create' | 'attach' | 'keep'
  readonly existing: Conversation | undefined
  /** It has a live session already. */
  readonly hasSession: boolean
}

/** Binds each conversation to its codebase and environment, with its session if resumable. */
export const planConversations = async (
  planning: Planning,
  codebases: PlannedCodebases,
  environmentOf: EnvironmentOf,
): Promise<PlannedConversation[]> => {
  const list: PlannedConversation[] = []
  const sessions = sessionsByConversation(planning.archon.sessions)
  await eachRow(planning, 'conversation', planning.archon.conversations, nameOf, async (row) => {
    const codebase = codebaseOf(planning, row, codebases)
    list.push(await plan(planning, row, codebase, environmentOf(row), sessions.get(row.id ?? '')))
  })
  return list
}

const nameOf = ({ platform, conversationId, id }: ArchonConversation): string =>
  conversationId === undefined ? (id ?? 'a row without an id') : `${platform ?? '?'}:${conversationId}`

const codebaseOf = (
  { platforms }: Planning,
  { hidden, codebaseId, id, platform = '', conversationId = '' }: ArchonConversation,
  codebases: PlannedCodebases,
): PlannedCodebase => {
  if (id === undefined) throw no('its row has no id')
  if (hidden) throw no('Archon created it for one of its own workers')
  if (!/^[a-z][a-z0-9_-]{0,31}$/.test(platform)) throw no('its platform name is invalid')
  if (!platforms.has(platform)) throw no(`Coppice doesn't support ${platform}`)
  if (conversationId === '' || conversationId.length > 500 || hasControl(conversationId)) {
    throw no('its ID is empty, too long or has control characters')
  }
  if (codebaseId === undefined) throw no('it has no repository')
  const planned = codebases.byArchonId.get(codebaseId)
  if (planned === undefined) throw no("its repository wasn't imported")
  assertReachable(platform, conversationId, planned)
  return planned
}

/** GitHub's messages go to the repository that they name, whatever their conversation was attached to. */
const assertReachable = (platform: string, conversationId: string, { codebase }: PlannedCodebase): void => {
  if (platform !== 'github') return
  const [, repository] = /^([^/#\s]+\/[^/#\s]+)#\d+$/.exec(conversationId) ?? []
  if (repository === undefined) throw no("its ID isn't that of an issue or pull request")
  if (codebase.github?.toLowerCase() === repository.toLowerCase()) return
  throw no(`it is about ${repository}, but ${codebase.name} is ${codebase.github ?? 'not on GitHub'} here`)
}

const plan = async (
  planning: Planning,
  row: ArchonConversation,
  codebase: PlannedCodebase,
  worktree: PlannedEnvironment | undefined,
  session: ArchonSession | undefined,
): Promise<PlannedConversation> => {
  const { store } = planning.context
  const wanted = wantedOf(planning, row, codebase)
  // Closing releases the environment.
  const environment = wanted.closedAt === undefined ? worktree : undefined
  const { platform, conversationId } = wanted
  const existing =
    (await store.conversations.find(platform, conversationId)) ??
    (await store.conversations.findImported(platform, conversationId))
  const action = existing === undefined ? 'create' : isAttachable(existing, wanted, codebase, environment)
  const hasSession = existing !== undefined && (await store.sessions.live(existing.id)) !== undefined
  const choice = session === undefined || hasSession ? undefined : chosen(planning, wanted, environment, session)
  const ended = action === 'keep' && choice !== undefined
  if (ended) planning.leftOut.push({ ...sessionOf(wanted), reason: 'it has already ended here' })
  return {
    // The agent that the session belongs to; another couldn't resume it.
    wanted: { ...wanted, agent: choice?.agent ?? wanted.agent },
    codebase,
    environment,
    session: ended ? undefined : choice,
    action,
    existing,
    hasSession: hasSession && session !== undefined,
  }
}

/**
 * A known conversation stays as it is, with one exception: if its worktree could only be imported now, it is attached
 * to it, unless somebody has written here since.
 */
const isAttachable = (
  existing: Conversation,
  wanted: WantedConversation,
  { codebase }: PlannedCodebase,
  environment: PlannedEnvironment | undefined,
): 'attach' | 'keep' => {
  const untouched = existing.lastActivityAt <= wanted.lastActivityAt && existing.closedAt === undefined
  const attachable = untouched && existing.environmentId === undefined && existing.codebaseId === codebase.id
  return attachable && environment !== undefined ? 'attach' : 'keep'
}

const wantedOf = (
  { context, platforms }: Planning,
  row: ArchonConversation,
  { codebase }: PlannedCodebase,
): WantedConversation => {
  const { platform = '', conversationId = '', assistant } = row
  const now = context.clock()
  const lastActivityAt = activityOf(row, now)
  const capabilities = platforms.get(platform)
  const isKnown = assistant !== undefined && knownAgents(context).includes(assistant)
  return {
    platform,
    conversationId,
    persistent: capabilities?.persistent === true,
    // Like the repository's others, unless it was another one.
    agent: isKnown && assistant !== codebase.defaultAgent ? assistant : undefined,
    ...(capabilities?.threadIdOf !== undefined && { importedAs: conversationId }),
    lastActivityAt,
    closedAt: closedAt(row, now),
    createdAt: Math.min(row.createdAt ?? lastActivityAt, lastActivityAt),
  }
}

const sessionOf = ({ platform, conversationId }: WantedConversation) =>
  ({ kind: 'session', name: `of ${platform}:${conversationId}` }) as const

const chosen = (
  { leftOut }: Planning,
  wanted: WantedConversation,
  environment: PlannedEnvironment | undefined,
  session: ArchonSession,
): SessionChoice | undefined => {
  const choice = resumable(session, wanted, environment)
  if (typeof choice !== 'string') return choice
  leftOut.push({ ...sessionOf(wanted), reason: choice })
  return undefined
}

const no = (why: string): AppError => new AppError('not-found', why)
