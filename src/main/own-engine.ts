import type { OwnEngine } from '../cli/chat/without-server.ts'
import type { Workplace } from '../commands/command.ts'
import { createCliPlatform } from '../platforms/cli/platform.ts'
import { createEngine } from './engine.ts'

/** `coppice chat` without a server: one conversation, handled in this process. */
export const createOwnEngine = async (workplace: Workplace, conversationId: string): Promise<OwnEngine> => {
  const { platform, ...cli } = createCliPlatform()
  const deliveries = new Map([[platform, { platform, ...cli }]])
  let lastId: string | undefined
  let started = false
  const engine = createEngine(workplace, {
    deliveries,
    conversation: { platform, conversationId },
    mayClaim: (lane) => lane === 'at-once' || !started,
  })
  engine.changes.subscribe((change) => {
    if (change.type === 'message' && change.id === lastId) started = change.state !== 'waiting'
  })
  const upTo = (id: string): void => {
    lastId = id
  }
  return { conversations: engine.conversations, changes: engine.changes, store: workplace.context.store, upTo }
}
