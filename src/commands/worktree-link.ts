import type { IsolatedEnvironment } from '../domain/environment.ts'
import { capabilitiesOf, type PlatformCapabilities } from '../domain/platform-capabilities.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { findEnvironment } from '../isolation/find.ts'
import type { ConversationKey } from '../store/store.ts'
import { type Call, command, cwdOf, textOf } from './command.ts'
import { resolveTargetForWrite } from './target.ts'
import { environmentJson } from './views/json.ts'
import { moveTo } from './move-conversation.ts'
import { usage } from './grammar/usage.ts'
import { code, printable } from './views/view.ts'

export type LinkResult = {
  readonly environment: IsolatedEnvironment
  readonly codebase: string
  /** Undefined: the calling one. */
  readonly conversation: string | undefined
  readonly conversations: readonly string[]
}

const run = async (call: Call): Promise<LinkResult> => {
  const named = call.chat === undefined ? conversationOf(textOf(call.values, 'conversation')) : undefined
  const { context, codebase, platforms } = await resolveTargetForWrite(call)
  const environment = await findEnvironment(context, codebase, call.words[0] ?? '', cwdOf(call))
  if (call.chat !== undefined) await moveTo(context, call.chat, environment, 'end')
  else if (named !== undefined)
    await bind(context, environment, named, capabilitiesOf(await platforms(), named.platform))
  const all = await context.store.conversations.ofEnvironments([environment.id])
  return {
    environment,
    codebase: codebase.name,
    conversation: named && `${named.platform}:${named.conversationId}`,
    conversations: all.map((one) => `${one.platform}:${one.conversationId}`),
  }
}

const bind = async (
  { store, clock, ids }: Pick<IsolationContext, 'store' | 'clock' | 'ids'>,
  environment: IsolatedEnvironment,
  { platform, conversationId }: ConversationKey,
  { persistent }: PlatformCapabilities,
): Promise<void> => {
  const now = clock()
  const { codebaseId, id: environmentId } = environment
  const bound = { codebaseId, environmentId, lastActivityAt: now, closedAt: undefined }
  await store.transaction(async (inside) => {
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
  })
}

/** The platform is before the first colon; an ID may contain more (`slack:C123:1712.34`). */
const conversationOf = (text: string | undefined): ConversationKey => {
  const [, platform, conversationId] = /^([a-z][a-z0-9-]{0,30}):(.{1,500})$/.exec(text ?? '') ?? []
  if (platform === undefined || conversationId === undefined) {
    throw usage('--conversation is required', 'usage: --conversation <platform:id>, such as slack:C123:1712.34')
  }
  return { platform, conversationId }
}

export const worktreeLink = command<LinkResult>({
  run,
  toText: ({ environment, conversation, conversations }, view) =>
    conversation === undefined
      ? [
          `Linked this conversation to ${code(environment.branch, view)}. It now works there.`,
          ...(conversations.length > 1 ? [`Shared by ${printable(conversations.join(', '))}.`] : []),
        ].join('\n')
      : `${view.paint('green', 'Linked')} ${printable(conversation)} to ${code(environment.branch, view)}`,
  toJson: ({ environment, codebase, conversations }) => ({
    ...environmentJson(environment, () => codebase),
    conversations,
  }),
})
