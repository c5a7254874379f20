import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { IncomingMessage } from '../../src/domain/message.ts'
import type { IsolationContext } from '../../src/isolation/context.ts'
import { openStore, type StoreTarget } from '../../src/store/open.ts'
import { built } from '../helpers/built.ts'
import type { World } from '../helpers/world.ts'
import { makeScenarioWorld } from './arrange.ts'
import { temporaryOf } from './kill.ts'
import type { Passing, ServerOrder } from './messages-child.ts'
import { type Double, startDouble } from './messages-double.ts'
import { agentSettings, startEngine, untilQuiet, writeAgent } from './messages-workplace.ts'

/** A world with an agent in it and a platform beside it. */
export type MessageWorld = World & { readonly double: Double; readonly target: StoreTarget }

/** `databaseUrl`: PostgreSQL; without it SQLite in the home of the world. */
export const makeMessageWorld = async (
  kind: 'tells' | 'cannot-tell',
  { databaseUrl, limit }: { databaseUrl?: string | undefined; limit?: number | undefined } = {},
): Promise<MessageWorld> => {
  const store = databaseUrl === undefined ? undefined : await openStore({ postgresUrl: databaseUrl })
  const world = await makeScenarioWorld({ options: store === undefined ? {} : { store } })
  writeAgent(world.box)
  const double = await startDouble(kind, limit)
  const settings = { ...world.context.settings, ...agentSettings(world.box) }
  return {
    ...world,
    context: { ...world.context, settings },
    double,
    target:
      databaseUrl === undefined ? { sqliteFile: join(world.context.home, 'coppice.db') } : { postgresUrl: databaseUrl },
    [Symbol.asyncDispose]: async () => {
      await double[Symbol.asyncDispose]()
      await world[Symbol.asyncDispose]()
    },
  }
}

export type Served = {
  readonly killed: boolean
  readonly acknowledged: ReadonlySet<string>
  readonly output: string
}

/** A server in a process of its own, killed at that passing or by `during`, which is given its pid. */
export const serveMessages = async (
  { box, target, double }: MessageWorld,
  messages: readonly IncomingMessage[],
  killAt: Passing | undefined,
  during?: (pid: number) => Promise<void>,
): Promise<Served> => {
  const { url, limit } = double
  const order: ServerOrder = { root: box.root, store: target, double: { url, limit }, messages, killAt }
  const child = spawn(process.execPath, [built('test/crash/messages-child.ts'), JSON.stringify(order)], {
    env: {
      ...box.env,
      TMPDIR: temporaryOf({ box }),
      GIT_CONFIG_NOSYSTEM: '1',
      NODE_NO_WARNINGS: '1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [said, output] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const ended = new Promise<NodeJS.Signals | null>((resolve) => {
    child.once('close', (_code, signal) => resolve(signal))
  })
  await during?.(child.pid ?? 0)
  const signal = await ended
  const lines = said.split('\n').filter((line) => line !== '')
  return {
    killed: signal === 'SIGKILL',
    acknowledged: new Set(lines.map((line) => JSON.parse(line) as string)),
    output,
  }
}

/** A start with nothing to harm it, until everything has come to rest; `deliver` is what the platform sends again. */
export const serveHere = async (
  { double }: MessageWorld,
  context: IsolationContext,
  deliver: readonly IncomingMessage[] = [],
): Promise<void> => {
  const engine = await startEngine(context, double)
  try {
    for (const message of deliver) await engine.conversations.accept(message)
    await untilQuiet(context)
  } finally {
    await engine.conversations.stop(1_000)
  }
}
