import { flushCompileCache } from 'node:module'
import { defaultSettings } from '../../src/domain/config/settings.ts'
import { createGit } from '../../src/git/door.ts'
import { createLogger } from '../../src/process/log.ts'
import { makeContext } from '../helpers/world.ts'
import { type Operation, perform } from './operation.ts'

/** What a killed process is told: where the world is, what time it is, and at which failpoint it dies. */
export type Orders = {
  readonly root: string
  readonly env: Record<string, string>
  readonly now: number
  readonly limit: number
  readonly operation: Operation
  readonly dieAt: number
}

const orders = JSON.parse(process.argv[2] ?? '') as Orders
const path = (...parts: string[]): string => [orders.root, ...parts].join('/')
const notHere = (): never => {
  throw new Error('not here')
}
let reached = 0
const context = await makeContext(
  {
    root: orders.root,
    home: path('home'),
    env: orders.env,
    path,
    git: (options) => createGit({ env: orders.env, home: path('state'), now: Date.now, ...options }),
    raw: () => '',
    repo: notHere,
    repoWithOrigin: notHere,
    bare: notHere,
    [Symbol.dispose]: () => undefined,
  },
  {
    clock: () => orders.now,
    log: createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text }),
    settings: { ...defaultSettings, spares: 1, worktreesPerCodebase: orders.limit },
    failpoint: async (name) => {
      reached += 1
      if (reached < orders.dieAt) return
      // A killed process saves no compiled code when it exits, and half of its start is compiling.
      flushCompileCache()
      process.stdout.write(name)
      process.kill(process.pid, 'SIGKILL')
      // Nothing after this line may happen, whenever the signal arrives.
      await new Promise(() => undefined)
    },
  },
)
await perform(context, orders.operation)
await context.store.close()
