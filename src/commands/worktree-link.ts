import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import type { KnownPlatforms, PlatformCapabilities } from '../domain/platform-capabilities.ts'
import { capitalized, counted } from '../domain/text/words.ts'
import { coppice, remedy } from '../domain/remedy.ts'
import { toWork, type Work, workLabel } from '../domain/work.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { findEnvironment } from '../isolation/find.ts'
import { presenceOf } from '../isolation/provider-of.ts'
import { type LinkedWork, moveWork, workToMove, type WorkToMove } from '../isolation/resolve/move-work.ts'
import type { ConversationKey } from '../store/store.ts'
import { type Call, command, cwdOf, textOf } from './command.ts'
import { resolveTargetForWrite } from './target.ts'
import { environmentJson } from './views/json.ts'
import { moveTo } from './move-conversation.ts'
import { usage } from './grammar/usage.ts'
import { code, printable, type View } from './views/view.ts'

export type LinkResult = {
  readonly environment: IsolatedEnvironment
  readonly codebase: string
  /** Undefined: the calling one. */
  readonly conversation: string | undefined
  readonly conversations: readonly string[]
  /** The issue or pull request that the conversation is about; undefined if it is about none. */
  readonly linked: LinkedWork | undefined
  /** Those that still work where the issue or pull request was found before. */
  readonly leftBehind: { readonly count: number; readonly named: readonly string[] }
  /** Where the calling conversation worked before: its last commits may be there. */
  readonly previous: IsolatedEnvironment | undefined
}

const run = async (call: Call): Promise<LinkResult> => {
  const { chat, signal } = call
  const named = chat === undefined ? conversationOf(textOf(call.values, 'conversation')) : undefined
  const { context, codebase, platforms } = await resolveTargetForWrite(call)
  const capabilities = named && knownCapabilities(await platforms(), named)
  const environment = await findEnvironment(context, codebase, call.words[0] ?? '', cwdOf(call))
  await assertThere(context, codebase, environment)
  const previous = await previousOf(context, chat, environment)
  let linked: LinkedWork | undefined
  if (chat !== undefined) {
    const { work } = chat.conversation
    linked = await moveTo(
      context,
      chat,
      environment,
      'end',
      work && (await workToMove(context, codebase, work, chat.hints, signal)),
    )
  } else if (named !== undefined && capabilities !== undefined) {
    const work = await workOf(context, codebase, named, capabilities)
    const toMove = work && (await workToMove(context, codebase, work, {}, signal))
    linked = await bind(context, environment, named, capabilities, toMove)
  }
  const namesOf = (conversations: readonly ConversationKey[]): string[] =>
    conversations
      .filter(({ platform }) => chat?.reach !== 'repository' || platform === chat.conversation.platform)
      .map((one) => `${one.platform}:${one.conversationId}`)
  const from = linked?.outcome === 'moved' ? linked.from : undefined
  const left = from === undefined ? [] : await context.store.conversations.ofEnvironments([from.id])
  return {
    environment,
    codebase: codebase.name,
    conversation: named && `${named.platform}:${named.conversationId}`,
    conversations: namesOf(await context.store.conversations.ofEnvironments([environment.id])),
    linked,
    leftBehind: { count: left.length, named: namesOf(left) },
    previous,
  }
}

/** A conversation or a number would be found nowhere. */
const assertThere = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<void> => {
  if (environment.host !== context.host) return
  if ((await presenceOf(context, codebase, environment)).state !== 'missing') return
  throw new AppError('not-found', `can't link to ${environment.branch}: its directory is gone`, {
    remedy: remedy`run ${coppice('worktree list')} for a list`,
  })
}

const previousOf = async (
  { store }: Pick<IsolationContext, 'store'>,
  chat: Call['chat'],
  environment: IsolatedEnvironment,
): Promise<IsolatedEnvironment | undefined> => {
  const id = chat?.conversation.environmentId
  const previous = id === undefined || id === environment.id ? undefined : await store.environments.get(id)
  return previous?.status === 'active' ? previous : undefined
}

/** Numbers are a repository's: a conversation of another one is about none of ours. */
const workOf = async (
  { store }: Pick<IsolationContext, 'store'>,
  codebase: Codebase,
  { platform, conversationId }: ConversationKey,
  { numberOf }: PlatformCapabilities,
): Promise<Work | undefined> => {
  const known = await store.conversations.find(platform, conversationId)
  if (known?.work !== undefined) {
    const its = known.codebaseId ?? known.formerCodebase?.id ?? codebase.id
    return its === codebase.id ? known.work : undefined
  }
  const named = numberOf?.(conversationId)
  if (named === undefined || named.github.toLowerCase() !== codebase.github?.toLowerCase()) return undefined
  // Issues and pull requests share their numbers, so at most one of these exists.
  for (const type of ['issue', 'pr'] as const) {
    const work = toWork(type, String(named.number))
    if ((await store.environments.liveByWork(codebase.id, work)) !== undefined) return work
  }
  return undefined
}

const bind = async (
  { store, clock, ids }: Pick<IsolationContext, 'store' | 'clock' | 'ids'>,
  environment: IsolatedEnvironment,
  { platform, conversationId }: ConversationKey,
  { persistent }: PlatformCapabilities,
  work: WorkToMove | undefined,
): Promise<LinkedWork | undefined> => {
  const now = clock()
  const { codebaseId, id: environmentId } = environment
  const bound = { codebaseId, environmentId, lastActivityAt: now, closedAt: undefined }
  return store.transaction(async (inside) => {
    const linked = work && (await moveWork(inside, work, environmentId, now))
    const { id } = await inside.conversations.ensure({
      id: ids(),
      platform,
      conversationId,
      persistent,
      agent: undefined,
      createdAt: now,
      ...bound,
    })
    await inside.conversations.update(id, bound)
    return linked
  })
}

/** The platform is before the first colon; an ID may contain more (`slack:C123:1712.34`). */
const conversationOf = (text: string | undefined): ConversationKey => {
  const [, platform, conversationId] = /^([a-z][a-z0-9-]{0,30}):(.{1,500})$/.exec(text ?? '') ?? []
  if (platform === undefined || conversationId === undefined) {
    const problem = text === undefined ? '--conversation is required' : `invalid --conversation ${JSON.stringify(text)}`
    throw usage(problem, 'usage: --conversation <platform:id>, such as slack:C123:1712.34')
  }
  return { platform, conversationId }
}

/** Nothing would ever be said in a conversation on a platform that doesn't exist. */
const knownCapabilities = (known: KnownPlatforms, { platform }: ConversationKey): PlatformCapabilities => {
  const capabilities = known.get(platform)
  if (capabilities !== undefined) return capabilities
  const names = [...known.keys()].toSorted().join(', ')
  throw usage(`unknown platform "${platform}"`, `usage: --conversation <platform:id>. Platforms: ${names}`)
}

const toText = (result: LinkResult, view: View): string => {
  const { environment, codebase, conversation, conversations, linked, leftBehind, previous } = result
  return [
    conversation === undefined
      ? `Linked this conversation to ${code(environment.branch, view)} of ${code(codebase, view)}. It now works there.`
      : `${view.paint('green', 'Linked')} ${printable(conversation)} to ${code(environment.branch, view)}`,
    ...(linked === undefined ? [] : aboutWork(linked, environment, view)),
    ...(leftBehind.count === 0 ? [] : [leftBehindText(leftBehind)]),
    ...(previous === undefined || (linked?.outcome === 'moved' && linked.from?.id === previous.id)
      ? []
      : [`Its previous worktree ${code(previous.branch, view)} is unchanged.`]),
    ...(conversation === undefined && conversations.length > 1
      ? [`Shared by ${printable(conversations.join(', '))}.`]
      : []),
  ].join('\n')
}

/** A conversation stays where it is until somebody moves it. */
const leftBehindText = ({ count, named }: LinkResult['leftBehind']): string => {
  const names = named.length === 0 ? '' : ` (${printable(named.join(', '))})`
  const [works, them] = count === 1 ? ['works', 'it'] : ['work', 'them']
  return `${counted(count, 'other conversation')}${names} still ${works} there. To move ${them}, link ${them}, too.`
}

const aboutWork = (linked: LinkedWork, { branch }: IsolatedEnvironment, view: View): string[] => {
  const what = capitalized(workLabel(linked.work))
  switch (linked.outcome) {
    case 'already-there':
      return []
    case 'kept':
      return [
        linked.why === 'untrusted-worktree'
          ? `${what} stays where it was, because ${code(branch, view)} is not trusted: only this conversation moved.`
          : `${what} stays where it was, because it isn't proven to come from this repository: only this conversation moved.`,
      ]
    case 'moved': {
      const { from } = linked
      const moved = `${what} now uses ${code(branch, view)}, on every platform.`
      return from === undefined
        ? [moved]
        : [`${moved} Its previous worktree ${code(from.branch, view)} ${fateOf(from)}.`]
    }
  }
}

const fateOf = ({ status, owned, persistent }: IsolatedEnvironment): string => {
  if (status === 'missing') return 'is missing'
  if (owned && persistent === true) return 'keeps its files, and stays until somebody removes it'
  return owned ? 'keeps its files, and is cleaned up like any other' : 'keeps its files'
}

export const worktreeLink = command<LinkResult>({
  run,
  toText,
  toJson: ({ environment, codebase, conversations, linked, leftBehind }) => ({
    ...environmentJson(environment, () => codebase),
    conversations,
    linked: linked === undefined ? null : linkedJson(linked, codebase, leftBehind.named),
  }),
})

const linkedJson = (linked: LinkedWork, codebase: string, leftBehind: readonly string[]): object => ({
  work: linked.work,
  outcome: linked.outcome,
  ...(linked.outcome === 'moved' && {
    from: linked.from === undefined ? null : environmentJson(linked.from, () => codebase),
    leftBehind,
  }),
  ...(linked.outcome === 'kept' && { why: linked.why }),
})
