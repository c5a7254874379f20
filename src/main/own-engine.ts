import type { OwnEngine } from '../cli/chat/without-server.ts'
import type { Workplace } from '../commands/command.ts'
import { createCliPlatform } from '../platforms/cli/platform.ts'
import { createEngine } from './engine.ts'

/** `coppice chat` without a server: one conversation, worked on in this very process. */
export const createOwnEngine = async (workplace: Workplace, conversationId: string): Promise<OwnEngine> => {
  const { platform, ...cli } = createCliPlatform()
  const deliveries = new Map([[platform, { platform, ...cli }]])
  let last: string | undefined
  let begun = false
  const engine = createEngine(workplace, {
    deliveries,
    conversation: { platform, conversationId },
    takes: (lane) => lane === 'at-once' || !begun,
  })
  engine.changes.subscribe((change) => {
    if (change.type === 'message' && change.id === last) begun = change.state !== 'waiting'
  })
  const upTo = (id: string): void => {
    last = id
  }
  return { conversations: engine.conversations, changes: engine.changes, store: workplace.context.store, upTo }
}
