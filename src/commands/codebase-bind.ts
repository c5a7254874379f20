import type { Codebase } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { type Call, type ChatCall, command } from './command.ts'
import { assertWholeServer } from './target.ts'
import { codebaseJson } from './views/json.ts'
import { code, tilde } from './views/view.ts'
import { onlyInChat } from './only-in-chat.ts'
import { coppice, remedy } from '../domain/remedy.ts'

export type BindResult = { readonly codebase: Codebase; readonly changed: boolean }

/**
 * Binds the conversation. If the codebase changes, the conversation leaves its environment (which stays as it is) and
 * its session ends.
 */
export const bindCodebase = async (
  { store, clock }: Pick<IsolationContext, 'store' | 'clock'>,
  { conversation }: Pick<ChatCall, 'conversation'>,
  codebase: Codebase,
): Promise<BindResult> => {
  if (conversation.codebaseId === codebase.id) return { codebase, changed: false }
  await store.transaction(async (inside) => {
    await inside.conversations.update(conversation.id, { codebaseId: codebase.id, environmentId: undefined })
    await inside.sessions.end(conversation.id, 'another codebase', clock())
  })
  return { codebase, changed: true }
}

const run = async (call: Call): Promise<BindResult> => {
  const chat = onlyInChat(call, 'codebase')
  const { context } = await call.open()
  const [name = ''] = call.words
  const codebase = await context.store.codebases.byName(context.host, name)
  if (codebase === undefined || codebase.id !== chat.conversation.codebaseId) assertWholeServer(chat, '/codebase')
  if (codebase !== undefined) return bindCodebase(context, chat, codebase)
  const names = (await context.store.codebases.list(context.host)).map((one) => one.name)
  throw new AppError('not-found', `unknown codebase ${JSON.stringify(name)}`, {
    remedy:
      names.length === 0
        ? remedy`clone one with ${coppice('clone <url>')}`
        : remedy`registered: ${names.join(', ')}. Add another with ${coppice('clone <url>')}`,
  })
}

export const codebaseBind = command<BindResult>({
  run,
  toText: ({ codebase, changed }, view) =>
    changed
      ? `This conversation now uses ${code(codebase.name, view)} (${code(tilde(codebase.checkoutPath ?? codebase.repoPath, view), view)}).`
      : `This conversation already uses ${code(codebase.name, view)}.`,
  toJson: ({ codebase, changed }) => ({ codebase: codebaseJson(codebase), changed }),
})
