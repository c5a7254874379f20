import type { Codebase } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import type { MessageDetails } from '../domain/message.ts'
import { addCodebase } from '../isolation/codebases.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { Conversation } from '../store/store.ts'

/**
 * The codebase that a conversation is about: the one the caller names, its own, its channel's, the only one there is.
 * Remembered in the conversation from then on. Undefined: it has to be bound by a person first.
 */
export const codebaseFor = async (
  context: IsolationContext,
  conversation: Conversation,
  { codebase: named, github, cloneUrl, channelId }: MessageDetails,
): Promise<Codebase | undefined> => {
  const { store, host } = context
  if (named !== undefined) return bind(context, conversation, await byName(context, named))
  if (github !== undefined) return bind(context, conversation, await byGithub(context, github, cloneUrl))
  const own = await known(context, conversation.codebaseId)
  if (own !== undefined) return own
  const channel = channelId === undefined ? undefined : await store.conversations.find(conversation.platform, channelId)
  const inherited = await known(context, channel?.codebaseId)
  if (inherited !== undefined) return bind(context, conversation, inherited)
  const all = await store.codebases.list(host)
  return all.length === 1 && all[0] !== undefined ? bind(context, conversation, all[0]) : undefined
}

const known = async (
  { store, host }: Pick<IsolationContext, 'store' | 'host'>,
  id: Conversation['codebaseId'],
): Promise<Codebase | undefined> => {
  const codebase = id === undefined ? undefined : await store.codebases.get(id)
  // A path means something on one host only.
  return codebase?.host === host ? codebase : undefined
}

const byName = async ({ store, host }: Pick<IsolationContext, 'store' | 'host'>, name: string): Promise<Codebase> => {
  const codebase = await store.codebases.byName(host, name)
  if (codebase !== undefined) return codebase
  const names = (await store.codebases.list(host)).map((one) => one.name)
  throw new AppError('not-found', `there is no codebase \`${name}\``, {
    remedy: names.length === 0 ? 'register one with `/clone <url>`' : `there are ${names.join(', ')}`,
  })
}

/** GitHub compares without case. An issue is about its own repository and no other, so nothing else is tried. */
const byGithub = async (context: IsolationContext, github: string, cloneUrl: string | undefined): Promise<Codebase> => {
  const wanted = github.toLowerCase()
  const all = await context.store.codebases.list(context.host)
  const known = all.find((one) => one.github?.toLowerCase() === wanted)
  if (known !== undefined) return known
  if (cloneUrl === undefined) {
    throw new AppError('not-found', `\`${github}\` is not registered here`, {
      remedy: `register it: coppice codebase add https://github.com/${github}`,
    })
  }
  return (await addCodebase(context, cloneUrl, '/', { github })).codebase
}

/** Another codebase is another place: environment and session of the former one are let go of. */
const bind = async (
  { store, clock }: Pick<IsolationContext, 'store' | 'clock'>,
  { id, codebaseId }: Conversation,
  codebase: Codebase,
): Promise<Codebase> => {
  if (codebaseId === codebase.id) return codebase
  await store.transaction(async (inside) => {
    await inside.conversations.update(id, {
      codebaseId: codebase.id,
      ...(codebaseId !== undefined && { environmentId: undefined }),
    })
    if (codebaseId !== undefined) await inside.sessions.end(id, 'another codebase', clock())
  })
  return codebase
}
