import { hookKey } from '../../domain/config/hooks.ts'
import type { EventRecord } from '../../domain/fleet/event-record.ts'
import type { ConversationKey } from '../../store/store.ts'
import type { Attempted, HookContext, PlacedHook } from './hook.ts'
import { postWebhook } from './post-webhook.ts'
import { runHookCommand } from './run-command.ts'

/** Delivers one event once. Never throws for what a hook does. */
export const attempt = async (
  context: HookContext,
  { hook }: PlacedHook,
  record: EventRecord,
  signal: AbortSignal,
): Promise<Attempted> => {
  const { action, timeoutMs } = hook
  const { text, json } = context.describe(record)
  switch (action.kind) {
    case 'command':
      return runHookCommand(context, { command: action.command, key: hookKey(hook), timeoutMs, signal, text, json })
    case 'webhook':
      return postWebhook({ url: action.url, secret: action.secret, timeoutMs, signal, json })
    case 'conversation':
      return sendMessage(context, { key: hookKey(hook), number: record.number, text }, action)
  }
}

/** In one transaction with the hook's position, so the message is recorded once. The outbox delivers it. */
const sendMessage = async (
  { isolation: { store, host, self }, platforms, post, onPosted }: HookContext,
  { key, number, text }: { readonly key: string; readonly number: number; readonly text: string },
  { platform, conversationId }: ConversationKey,
): Promise<Attempted> => {
  if (!(await platforms()).has(platform)) return { kind: 'failed', why: `unknown platform "${platform}"` }
  const attempted = await store.transaction(async (inside): Promise<Attempted> => {
    const position = { position: number, attempts: 0, nextAttemptAt: 0, failure: undefined }
    if (!(await inside.hooks.update(host, key, self, position))) return { kind: 'aborted' }
    await post(inside, { platform, conversationId }, `hook:${key}:${number}`, text)
    return { kind: 'recorded' }
  })
  onPosted?.()
  return attempted
}
