import type { Agent } from '../src/agents/agent.ts'
import { createConversations } from '../src/conversations/conversations.ts'
import type { Delivery } from '../src/conversations/outbox/delivery.ts'
import { createEngine, type Engine } from '../src/main/engine.ts'
import { createSecrets } from '../src/process/redaction/redact.ts'
import type { World } from './stage.ts'
import { noFleet } from '../test/helpers/no-fleet.ts'

/** The product's engine with an agent that answers at once and starts no process, so only our own work is measured. */
export const createStubEngine = (
  { context: isolation, provider }: World,
  deliveries: ReadonlyMap<string, Delivery>,
  onRun: (prompt: string, directory: string) => void,
): Engine => {
  const workplace = {
    context: { ...isolation, secrets: createSecrets(['a-secret-of-the-bench']) },
    environments: async () => provider,
    fleet: noFleet,
    keepSpares: () => undefined,
    platforms: async () => new Map(),
    databaseName: 'SQLite',
  }
  const engine = createEngine(workplace, { deliveries })
  const agent = createStubAgent(onRun)
  const context = { ...engine.context, agents: new Map([[agent.name, agent]]) }
  return { ...engine, context, conversations: createConversations(context, { outbox: engine.outbox }) }
}

const createStubAgent = (onRun: (prompt: string, directory: string) => void): Agent => ({
  name: 'answering',
  availability: async () => ({ state: 'ready', version: undefined }),
  run: async ({ prompt, directory }) => {
    onRun(prompt, directory)
    return { outcome: 'done', text: prompt }
  },
})
