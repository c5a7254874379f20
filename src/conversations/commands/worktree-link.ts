import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { findEnvironment } from '../../isolation/find.ts'
import { type Call, command, textOf } from './command.ts'
import { hereToChange } from './here.ts'
import { environmentJson } from './json.ts'
import { usage } from './usage.ts'
import { printable } from './view.ts'

export type LinkResult = {
  readonly environment: IsolatedEnvironment
  readonly codebase: string
  readonly conversation: string
  readonly conversations: readonly string[]
}

const run = async (call: Call): Promise<LinkResult> => {
  const { platform, conversationId } = conversationOf(textOf(call.values, 'conversation'))
  const { context, codebase } = await hereToChange(call)
  const { store, clock, ids } = context
  const environment = await findEnvironment(context, codebase, call.words[0] ?? '', call.cwd)
  const now = clock()
  const bound = { codebaseId: codebase.id, environmentId: environment.id, lastActivityAt: now, closedAt: undefined }
  await store.transaction(async (inside) => {
    const { id } = await inside.conversations.ensure({
      id: ids(),
      platform,
      conversationId,
      // A chat there has no end, so its environment is its user's own.
      persistent: platform === 'telegram',
      agent: undefined,
      createdAt: now,
      ...bound,
    })
    await inside.conversations.update(id, bound)
  })
  const all = await store.conversations.ofEnvironments([environment.id])
  return {
    environment,
    codebase: codebase.name,
    conversation: `${platform}:${conversationId}`,
    conversations: all.map((one) => `${one.platform}:${one.conversationId}`),
  }
}

/** The platform is before the first colon; an id may have more of them (`slack:C123:1712.34`). */
const conversationOf = (text: string | undefined): { platform: string; conversationId: string } => {
  const [, platform, conversationId] = /^([a-z][a-z0-9-]{0,30}):(.{1,500})$/.exec(text ?? '') ?? []
  if (platform === undefined || conversationId === undefined) {
    throw usage('--conversation names the conversation', 'give it as platform:id, such as slack:C123:1712.34')
  }
  return { platform, conversationId }
}

export const worktreeLink = command<LinkResult>({
  run,
  toText: ({ environment, conversation }, { paint }) =>
    `${paint('green', 'Linked')} ${printable(conversation)} to ${paint('bold', environment.branch)}`,
  toJson: ({ environment, codebase, conversations }) => ({
    ...environmentJson(environment, () => codebase),
    conversations,
  }),
})
