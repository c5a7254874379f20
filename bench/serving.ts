/**
 * The server processes of `accept`: the product's routes and guards over the product's engine, told what to do with a
 * message. `answers`: nothing is written. `accepts`: recorded durably, worked on by nobody. `works`: the whole of it.
 */
import { randomUUID } from 'node:crypto'
import type { Conversations } from '../src/conversations/conversations.ts'
import { localPlatforms, startPlatforms } from '../src/platforms/registry.ts'
import { createSecrets } from '../src/process/redaction/redact.ts'
import { startServer } from '../src/server/listen.ts'
import { createMetrics } from '../src/server/metrics.ts'
import { ensureToken } from '../src/server/token-file.ts'
import { makeSandbox } from '../test/helpers/repo.ts'
import { answeringEngine } from './answering.ts'
import { openWorld } from './stage.ts'

export type ServingKind = 'answers' | 'accepts' | 'works'
export type ServingSays =
  | { readonly port: number; readonly token: string }
  /** What the agent was given, in the order in which it was. */
  | { readonly prompts: readonly string[] }

const [root = '', kind = 'answers'] = process.argv.slice(2)
const box = makeSandbox()
const world = await openWorld(box, root)
const prompts: string[] = []
const platforms = new Map([['web', localPlatforms.web()] as const])
const engine = answeringEngine(world, platforms, (prompt) => prompts.push(prompt))
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

const say = (what: ServingSays): void => void process.send?.(what)
process.on('message', (asked) => {
  if (asked === 'prompts') say({ prompts })
  if (asked === 'stop') void stop()
})
say({ port: server.port, token })

async function stop(): Promise<void> {
  await conversations.stop(10_000)
  await server.stop(1_000)
  await world.context.store.close()
  box[Symbol.dispose]()
  process.disconnect()
}
