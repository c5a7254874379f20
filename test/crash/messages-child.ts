import { writeSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { join } from 'node:path'
import type { IncomingMessage } from '../../src/domain/message.ts'
import { createGit } from '../../src/git/door.ts'
import { openStore, type StoreTarget } from '../../src/store/open.ts'
import type { Sandbox } from '../helpers/repo.ts'
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
  // Whoever is killed writes nothing at its end, and half of a start is reading sources.
  flushCompileCache()
  let passed = 0
  const failpoint = async (name: string): Promise<void> => {
    if (name !== killAt?.name || passed++ !== killAt.nth) return
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

const reopen = (root: string): Sandbox => {
  const env: Record<string, string> = {}
  for (const name of ['PATH', 'HOME', 'LC_ALL', 'TMPDIR']) env[name] = process.env[name] ?? ''
  const never = (): never => {
    throw new Error('the child only works in the world it was given')
  }
  return {
    root,
    home: join(root, 'home'),
    env,
    git: (options) => createGit({ env, home: join(root, 'state'), now: Date.now, ...options }),
    path: (...parts) => join(root, ...parts),
    raw: never,
    repo: never,
    bare: never,
    [Symbol.dispose]: never,
  }
}

await main(JSON.parse(process.argv[2] ?? '') as ServerOrder)
