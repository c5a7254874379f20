import { once } from 'node:events'
import { setImmediate as others } from 'node:timers/promises'
import { openStore, type StoreTarget } from '../../src/store/open.ts'
import { aCodebase, aHolder, anEnvironment } from '../helpers/store-values.ts'

/** A second process for the store's tests: says `ready`, waits for a line, does what it was asked and says how it went. */
export type ChildTask =
  | { readonly kind: 'open' }
  | { readonly kind: 'insert'; readonly key: string; readonly count: number; readonly limit: number }
  | { readonly kind: 'transition'; readonly id: string }
  | { readonly kind: 'claim'; readonly claimers: number }
  | { readonly kind: 'hold' }

/** When a message was worked on, by a clock that all processes of the machine share. */
export type Turn = { readonly conversation: string; readonly id: string; readonly from: number; readonly to: number }

const say = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

const insert = async (target: StoreTarget, task: ChildTask & { kind: 'insert' }): Promise<void> => {
  const store = await openStore(target)
  say('ready')
  await once(process.stdin, 'data')
  const outcomes = await Promise.all(
    Array.from({ length: task.count }, async (_, index) => {
      const { outcome } = await store.environments.insert(anEnvironment(`${task.key}-${index}`), task.limit)
      return outcome
    }),
  )
  say(JSON.stringify(outcomes))
  await store.close()
}

const open = async (target: StoreTarget): Promise<void> => {
  say('ready')
  await once(process.stdin, 'data')
  const store = await openStore(target)
  say(JSON.stringify(await store.codebases.list('host-a')))
  await store.close()
}

const transition = async (target: StoreTarget, id: string): Promise<void> => {
  const store = await openStore(target)
  say('ready')
  await once(process.stdin, 'data')
  say(JSON.stringify(await store.environments.transition(anEnvironment(id).id, 'creating', 'active')))
  await store.close()
}

/** Works until nothing is left, with several claims under way at once. */
const claim = async (target: StoreTarget, claimers: number): Promise<void> => {
  const store = await openStore(target)
  say('ready')
  await once(process.stdin, 'data')
  const turns: Turn[] = []
  const now = (): number => Number(process.hrtime.bigint())
  const holder = aHolder(process.pid)
  const work = async (): Promise<void> => {
    for (;;) {
      const message = await store.inbox.claim({ lane: 'turn', holder })
      if (message === undefined) {
        const { waiting, running } = await store.inbox.counts()
        if (waiting + running === 0) return
        await others()
        continue
      }
      const from = now()
      await store.inbox.get(message.id)
      turns.push({ conversation: message.conversationId, id: message.id, from, to: now() })
      if (!(await store.inbox.transition(message.id, 'running', 'done', holder))) throw new Error('not ours')
    }
  }
  await Promise.all(Array.from({ length: claimers }, work))
  say(JSON.stringify(turns))
  await store.close()
}

/** Stays inside a transaction that has written, until it is killed. */
const hold = async (target: StoreTarget): Promise<void> => {
  const store = await openStore(target)
  await store.transaction(async (inside) => {
    await inside.codebases.insert(aCodebase('half-done'))
    say('ready')
    await once(process.stdin, 'data')
  })
  say('null')
  await store.close()
}

const [target, task] = process.argv.slice(2).map((argument) => JSON.parse(argument) as unknown)
const asked = task as ChildTask
const at = target as StoreTarget
if (asked.kind === 'open') await open(at)
else if (asked.kind === 'insert') await insert(at, asked)
else if (asked.kind === 'transition') await transition(at, asked.id)
else if (asked.kind === 'claim') await claim(at, asked.claimers)
else await hold(at)
process.stdin.destroy()
