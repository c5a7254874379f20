/**
 * The server process of `accept`: the product's routes and guards over its engine. `answers` writes nothing. `accepts`
 * records durably but processes nothing. `works` does everything.
 */
import { randomUUID } from 'node:crypto'
import type { Conversations } from '../src/conversations/conversations.ts'
import { localPlatforms } from '../src/platforms/registry.ts'
import { startPlatforms } from '../src/platforms/start.ts'
import { createSecrets } from '../src/process/redaction/redact.ts'
import { startServer } from '../src/server/listen.ts'
import { createMetrics } from '../src/server/metrics.ts'
import { ensureToken } from '../src/server/token-file.ts'
import { makeSandbox } from '../test/helpers/repo.ts'
import { createStubEngine } from './stub-engine.ts'
import { openWorld } from './stage.ts'

export type ServerKind = 'answers' | 'accepts' | 'works'
export type ServerMessage =
  | { readonly port: number; readonly token: string }
  /** The agent's prompts, in order. */
  | { readonly prompts: readonly string[] }

const [root = '', kind = 'answers'] = process.argv.slice(2)
const box = makeSandbox()
const world = await openWorld(box, root)
const prompts: string[] = []
const platforms = new Map([['web', localPlatforms.web()] as const])
const engine = createStubEngine(world, platforms, (prompt) => prompts.push(prompt))
const conversations: Conversations =
  kind === 'answers'
    ? { ...engine.conversations, accept: async () => ({ outcome: 'accepted', id: randomUUID() }) }
    : engine.conversations
const metrics = createMetrics(engine.changes)
const { token } = ensureToken(world.context.home)
await startPlatforms(
  platforms.values(),
  metrics.countAccepted((message) => conversations.accept(message)),
  world.context,
)
if (kind === 'works') await conversations.start()
const server = await startServer(
  {
    context: engine.context,
    conversations,
    platforms,
    token,
    version: '0.0.0',
    databaseName: 'SQLite',
    redact: createSecrets([token]).redact,
    wake: () => conversations.wake(),
    ready: () => true,
    metrics,
  },
  { host: '127.0.0.1', port: 0 },
)

const send = (what: ServerMessage): void => void process.send?.(what)
process.on('message', (asked) => {
  if (asked === 'prompts') send({ prompts })
  if (asked === 'stop') void stop()
})
send({ port: server.port, token })

async function stop(): Promise<void> {
  await conversations.stop(10_000)
  await server.stop(1_000)
  await world.context.store.close()
  box[Symbol.dispose]()
  process.disconnect()
}
