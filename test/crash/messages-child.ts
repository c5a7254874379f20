import { writeSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import type { IncomingMessage } from '../../src/domain/message.ts'
import { openStore, type StoreTarget } from '../../src/store/open.ts'
import { reopen } from '../helpers/reopen.ts'
import { makeContext } from '../helpers/world.ts'
import { agentSettings, type DoubleAddress, startEngine, untilQuiet } from './messages-workplace.ts'

/** Which passing of which failpoint. */
export type Passing = { readonly name: string; readonly nth: number }

export type ServerOrder = {
  readonly root: string
  readonly store: StoreTarget
  readonly double: DoubleAddress
  readonly messages: readonly IncomingMessage[]
  readonly killAt: Passing | undefined
}

/** A server in a prepared world, which takes messages in and kills itself where it is told to. */
const main = async ({ root, store, double, messages, killAt }: ServerOrder): Promise<void> => {
  let passed = 0
  const failpoint = async (name: string): Promise<void> => {
    if (name !== killAt?.name || passed++ !== killAt.nth) return
    // A killed process saves no compiled code when it exits, and half of its start is compiling.
    flushCompileCache()
    process.kill(process.pid, 'SIGKILL')
    // Death takes a moment; nothing may happen in it.
    await new Promise(() => undefined)
  }
  const box = reopen(root)
  const options = { store: await openStore(store), settings: agentSettings(box) }
  const context = await makeContext(box, { failpoint }, options)
  const engine = await startEngine(context, double)
  for (const one of messages) {
    await engine.conversations.accept(one)
    // The acknowledgement, out before anything else can happen.
    writeSync(1, `${JSON.stringify(one.deliveryId)}\n`)
  }
  await untilQuiet(context)
  await engine.conversations.stop(1_000)
  await context.store.close()
}

await main(JSON.parse(process.argv[2] ?? '') as ServerOrder)
