import type { Codebase } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import { numberedWork } from '../domain/hints.ts'
import { shellWord } from '../domain/text/shell-word.ts'
import { addCodebase } from '../isolation/codebases/codebases.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { Conversation, InboxMessage } from '../store/store.ts'
import { codebaseBinding } from '../commands/codebase-binding.ts'
import type { ConversationsContext } from './context.ts'
import * as notices from './notices.ts'
import { replyTarget, recordReplies } from './outbox/replies.ts'
import { coppice, remedy } from '../domain/remedy.ts'
import { sameWork } from '../domain/work.ts'

/** `refusal`: the codebase is unclear, so the user must choose. */
export type Bound =
  /** `isFallback`: nobody chose it, it is the only one. */
  { readonly codebase: Codebase; readonly isFallback?: true } | { readonly refusal: string }

/**
 * The conversation's codebase: its own, the one the message names, its channel's, or the only one. Remembered from then
 * on. Only a message that asks for it moves a conversation that has or had one: an agent committing into the wrong
 * repository is worse than no agent.
 */
export const codebaseFor = async (
  context: ConversationsContext,
  conversation: Conversation,
  message: InboxMessage,
): Promise<Bound> => {
  const { isolation } = context
  const { codebase: name, move = false, github, cloneUrl } = message.details
  const named = name === undefined ? undefined : await byName(isolation, name)
  if (named !== undefined && move) return bind(context, conversation, named, message, 'asked')
  // An issue is only about its own repository.
  if (named === undefined && github !== undefined) {
    return bind(context, conversation, await byGithub(isolation, github, cloneUrl), message)
  }
  const own = await codebaseBinding(isolation, conversation)
  if (own.kind === 'known') {
    if (named !== undefined && named.id !== own.codebase.id) await tellStays(context, message, own.codebase, named)
    return bind(context, conversation, own.codebase, message)
  }
  if (own.kind === 'gone') return { refusal: notices.codebaseGoneNotice(own, await namesIn(isolation), message) }
  if (named !== undefined) return bind(context, conversation, named, message)
  return ofChannel(context, conversation, message)
}

const ofChannel = async (
  context: ConversationsContext,
  conversation: Conversation,
  message: InboxMessage,
): Promise<Bound> => {
  const { isolation } = context
  const { store, host } = isolation
  const { channelId } = message.details
  const channel = channelId === undefined ? undefined : await store.conversations.find(message.platform, channelId)
  const inherited = channel && (await codebaseBinding(isolation, channel))
  if (inherited?.kind === 'known') return bind(context, conversation, inherited.codebase, message)
  const names = await namesIn(isolation)
  if (inherited?.kind === 'gone') return { refusal: notices.codebaseGoneNotice(inherited, names, message) }
  const [only, ...others] = await store.codebases.list(host)
  if (only === undefined || others.length > 0) return { refusal: notices.unboundNotice(names) }
  return { ...(await bind(context, conversation, only, message)), isFallback: true }
}

const namesIn = async ({ store, host }: Pick<IsolationContext, 'store' | 'host'>): Promise<string[]> =>
  (await store.codebases.list(host)).map(({ name }) => name)

const byName = async (isolation: Pick<IsolationContext, 'store' | 'host'>, name: string): Promise<Codebase> => {
  const codebase = await isolation.store.codebases.byName(isolation.host, name)
  if (codebase !== undefined) return codebase
  const names = await namesIn(isolation)
  throw new AppError('not-found', `unknown codebase \`${name}\``, {
    remedy: names.length === 0 ? remedy`clone one with ${coppice('clone <url>')}` : `registered: ${names.join(', ')}`,
  })
}

/** GitHub ignores case. */
const byGithub = async (context: IsolationContext, github: string, cloneUrl: string | undefined): Promise<Codebase> => {
  const wanted = github.toLowerCase()
  const all = await context.store.codebases.list(context.host)
  const known = all.find((one) => one.github?.toLowerCase() === wanted)
  if (known !== undefined) return known
  if (cloneUrl === undefined) {
    throw new AppError('not-found', `\`${github}\` isn't registered on this server`, {
      remedy: remedy`register it: ${coppice(`codebase add ${shellWord(`https://github.com/${github}`)}`)}`,
    })
  }
  return (await addCodebase(context, cloneUrl, '/', { github })).codebase
}

/**
 * Moving drops the conversation's environment and session: they belong to the old codebase. So does its number, unless
 * the message brings one. A person who links the conversation later moves that work along.
 */
const bind = async (
  context: ConversationsContext,
  { id, codebaseId, formerCodebase, work: known }: Conversation,
  codebase: Codebase,
  message: InboxMessage,
  move?: 'asked',
): Promise<{ readonly codebase: Codebase }> => {
  const { store, clock } = context.isolation
  const work = numberedWork(message.details.hints)
  if (codebaseId === codebase.id) {
    if (work !== undefined && !(known && sameWork(known, work))) await store.conversations.update(id, { work })
    return { codebase }
  }
  const hadOne = codebaseId !== undefined || (formerCodebase !== undefined && formerCodebase.id !== codebase.id)
  await store.transaction(async (inside) => {
    const fresh = { codebaseId: codebase.id, ...(hadOne && { environmentId: undefined }), ...(work && { work }) }
    await inside.conversations.update(id, fresh)
    if (!hadOne) return
    await inside.sessions.end(id, 'another codebase', clock())
    if (move === undefined) return
    const text = notices.movedCodebaseNotice(codebase)
    await recordReplies(context, inside, replyTarget(message), [{ key: 'codebase', role: 'system', text }])
  })
  if (move !== undefined) context.queue.outboxChanged()
  return { codebase }
}

const tellStays = async (
  context: ConversationsContext,
  message: InboxMessage,
  own: Codebase,
  named: Codebase,
): Promise<void> => {
  // These commands set the codebase themselves.
  if (/^\s*\/(?:codebase|clone)(?:\s|$)/.test(message.text)) return
  const text = notices.staysNotice(own, named, message)
  await recordReplies(context, context.isolation.store, replyTarget(message), [
    { key: 'codebase', role: 'system', text },
  ])
  context.queue.outboxChanged()
}
