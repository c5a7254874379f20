import type { Codebase } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import type { ArchonConversation, ArchonSession } from '../../store/archon/archon.ts'
import type { Conversation } from '../../store/store.ts'
import { activityOf, closedAt } from './activity.ts'
import type { CodebasesTaken } from './codebases.ts'
import type { EnvironmentOf, EnvironmentTaken } from './environments.ts'
import { eachRow, type Import } from './each-row.ts'
import { hasControl } from './report.ts'
import { resumable, type SessionChoice, sessionsByConversation } from './sessions.ts'

/** Binds each conversation to its codebase and environment, with its session if resumable. */
export const takeOverConversations = async (
  run: Import,
  codebases: CodebasesTaken,
  environmentOf: EnvironmentOf,
): Promise<void> => {
  const sessions = sessionsByConversation(run.archon.sessions)
  await eachRow(run, 'conversation', run.archon.conversations, nameOf, async (row) => {
    const codebase = codebaseOf(row, codebases)
    const wanted = conversationOf(run, row, codebase, environmentOf(row))
    const session = sessions.get(row.id ?? '')
    const known = await run.context.store.conversations.find(wanted.platform, wanted.conversationId)
    if (known === undefined) await create(run, wanted, environmentOf(row), session)
    else await recall(run, known, wanted, environmentOf(row), session)
  })
}

const nameOf = ({ platform, conversationId, id }: ArchonConversation): string =>
  conversationId === undefined ? (id ?? 'a row without an id') : `${platform ?? '?'}:${conversationId}`

const codebaseOf = ({ hidden, codebaseId, id }: ArchonConversation, codebases: CodebasesTaken): Codebase => {
  if (id === undefined) throw no('its row has no id')
  if (hidden) throw no('Archon created it for one of its own workers')
  if (codebaseId === undefined) throw no('it has no repository')
  const codebase = codebases.get(codebaseId)
  if (codebase === undefined) throw no("its repository wasn't imported")
  return codebase
}

const conversationOf = (
  { context, dryRun }: Import,
  row: ArchonConversation,
  codebase: Codebase,
  environment: EnvironmentTaken | undefined,
): Conversation => {
  const { platform = '', conversationId = '' } = row
  if (!/^[a-z][a-z0-9_-]{0,31}$/.test(platform)) throw no('its platform name is invalid')
  if (conversationId === '' || conversationId.length > 500 || hasControl(conversationId)) {
    throw no('its ID is empty, too long or has control characters')
  }
  const now = context.clock()
  const closed = closedAt(row, now)
  const lastActivityAt = activityOf(row, now)
  return {
    id: dryRun ? '' : context.ids(),
    platform,
    conversationId,
    codebaseId: codebase.id,
    // Closing releases the environment.
    environmentId: closed === undefined ? environment?.id : undefined,
    persistent: platform === 'telegram',
    agent: undefined,
    lastActivityAt,
    closedAt: closed,
    createdAt: Math.min(row.createdAt ?? lastActivityAt, lastActivityAt),
  }
}

/** In one transaction: the next import finds both or neither. */
const create = async (
  run: Import,
  wanted: Conversation,
  environment: EnvironmentTaken | undefined,
  session: ArchonSession | undefined,
): Promise<void> => {
  const choice = choose(run, wanted, environment, session)
  if (!run.dryRun) {
    await run.context.store.transaction(async (store) => {
      // Keep the agent the session belongs to; the default agent couldn't resume it.
      const agent = choice?.agent
      const { id } = await store.conversations.ensure({ ...wanted, agent })
      if (choice !== undefined) await store.sessions.start(choice.toSession(run.context.ids(), id))
    })
  }
  run.record.taken('conversation')
  if (choice !== undefined) run.record.taken('session')
}

/**
 * A known conversation stays as it is, with one exception: if its worktree could only be imported now, it is bound to
 * it, unless somebody has written here since.
 */
const recall = async (
  run: Import,
  known: Conversation,
  wanted: Conversation,
  environment: EnvironmentTaken | undefined,
  session: ArchonSession | undefined,
): Promise<void> => {
  const { store, ids } = run.context
  const untouched = known.lastActivityAt <= wanted.lastActivityAt && known.closedAt === undefined
  const bindable = untouched && known.environmentId === undefined && known.codebaseId === wanted.codebaseId
  if (!bindable || wanted.environmentId === undefined) {
    run.record.known('conversation')
    return recallSession(run, known, wanted, environment, session)
  }
  const choice = choose(run, wanted, environment, session)
  if (!run.dryRun) {
    await store.transaction(async (inner) => {
      const patch = { environmentId: wanted.environmentId, ...(choice !== undefined && { agent: choice.agent }) }
      await inner.conversations.update(known.id, patch)
      if (choice !== undefined) await inner.sessions.start(choice.toSession(ids(), known.id))
    })
  }
  run.record.taken('conversation')
  if (choice !== undefined) run.record.taken('session')
}

/** Reports the session again, but starts none: if it was ended here, that was intended. */
const recallSession = async (
  run: Import,
  known: Conversation,
  wanted: Conversation,
  environment: EnvironmentTaken | undefined,
  session: ArchonSession | undefined,
): Promise<void> => {
  if (session === undefined) return
  if ((await run.context.store.sessions.live(known.id)) !== undefined) return run.record.known('session')
  if (choose(run, wanted, environment, session) !== undefined) {
    run.record.leftOut('session', sessionName(known), 'it has already ended here')
  }
}

const sessionName = ({ platform, conversationId }: Conversation): string => `of ${platform}:${conversationId}`

const choose = (
  { record }: Import,
  conversation: Conversation,
  environment: EnvironmentTaken | undefined,
  session: ArchonSession | undefined,
): SessionChoice | undefined => {
  if (session === undefined) return undefined
  const choice = resumable(session, conversation, conversation.environmentId === undefined ? undefined : environment)
  if (typeof choice !== 'string') return choice
  record.leftOut('session', sessionName(conversation), choice)
  return undefined
}

const no = (why: string): AppError => new AppError('not-found', why)
