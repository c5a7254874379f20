import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterEach, expect, test } from 'vitest'
import { toCodebaseId } from '../../src/domain/names.ts'
import type { StoreTarget } from '../../src/store/open.ts'
import { built } from '../helpers/built.ts'
import { onEachEngine } from '../helpers/store-engines.ts'
import { aCodebase, aMessage, anEnvironment } from '../helpers/store-values.ts'
import type { ChildTask, Turn } from './store-child.ts'

const one = toCodebaseId('codebase-one')
const script = built('test/conformance/store-child.ts')
const running = new Set<ChildProcessWithoutNullStreams>()

afterEach(async () => {
  for (const child of running) {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
})

onEachEngine((engine) => {
  test('two processes that start together on an empty database both find it ready', async () => {
    const target = await engine.fresh()
    const answers = await together(target, [{ kind: 'open' }, { kind: 'open' }, { kind: 'open' }, { kind: 'open' }])
    expect(answers).toEqual([[], [], [], []])
  })

  test('the limit holds against two processes that insert at once', async () => {
    const target = await engine.fresh()
    const store = await engine.open(target)
    await store.codebases.insert(aCodebase())
    const task = { kind: 'insert', count: 20, limit: 7 } as const
    const answers = await together(target, [
      { ...task, key: 'p' },
      { ...task, key: 'q' },
    ])
    const outcomes = answers.flat()
    expect(outcomes.filter((outcome) => outcome === 'inserted')).toHaveLength(7)
    expect(outcomes.filter((outcome) => outcome === 'limit')).toHaveLength(33)
    expect(await store.environments.live(one)).toHaveLength(7)
  })

  test('two processes that want the same works share them out without a fault', async () => {
    const target = await engine.fresh()
    const store = await engine.open(target)
    await store.codebases.insert(aCodebase())
    const task = { kind: 'insert', key: 'same', count: 20, limit: 100 } as const
    const outcomes = (await together(target, [task, task])).flat()
    expect(outcomes.filter((outcome) => outcome === 'inserted')).toHaveLength(20)
    expect(outcomes.filter((outcome) => outcome === 'conflict')).toHaveLength(20)
  })

  test('of two processes one wins a transition', async () => {
    const target = await engine.fresh()
    const store = await engine.open(target)
    await store.codebases.insert(aCodebase())
    await store.environments.insert(anEnvironment('a'), undefined)
    const answers = await together(target, [
      { kind: 'transition', id: 'a' },
      { kind: 'transition', id: 'a' },
    ])
    expect(answers.filter((answer) => answer === true)).toHaveLength(1)
  })

  test('processes that claim share 200 messages of 20 conversations: none twice, one at a time, in order', async () => {
    const target = await engine.fresh()
    const store = await engine.open(target)
    const messages = Array.from({ length: 200 }, (_, index) =>
      aMessage(String(index).padStart(3, '0'), { conversationId: `thread-${index % 20}` }),
    )
    await store.inbox.accept(messages)
    const task = { kind: 'claim', claimers: 3 } as const
    const answers = (await together(target, [task, task, task])) as Turn[][]
    expect(answers.filter((turns) => turns.length > 0).length, 'more than one had work').toBeGreaterThan(1)
    const turns = answers.flat().toSorted((a, b) => a.from - b.from)
    expect(turns.map(({ id }) => id).toSorted()).toEqual(messages.map(({ id }) => id))
    for (const ofOne of Map.groupBy(turns, ({ conversation }) => conversation).values()) {
      expect(ofOne.map(({ id }) => id)).toEqual(ofOne.map(({ id }) => id).toSorted())
      for (const [index, { from }] of ofOne.entries()) {
        expect(from).toBeGreaterThan(ofOne[index - 1]?.to ?? 0)
      }
    }
  })

  test('a writer killed inside its transaction leaves a usable database and nothing of its own', async () => {
    const target = await engine.fresh()
    const store = await engine.open(target)
    for (const round of ['first', 'second', 'third']) {
      const holder = await start(target, { kind: 'hold' })
      const waiting = store.transaction((inside) => inside.codebases.insert(aCodebase(round)))
      holder.child.kill('SIGKILL')
      await once(holder.child, 'exit')
      expect(await waiting).toBe(true)
    }
    expect((await store.codebases.list('host-a')).map(({ name }) => name)).toEqual(['first', 'second', 'third'])
    const again = await engine.open(target)
    expect(await again.codebases.list('host-a')).toHaveLength(3)
  })

  test('a reader does not wait for another process that writes', async () => {
    const target = await engine.fresh()
    const store = await engine.open(target, { busy: 0, wait: 1000 })
    const holder = await start(target, { kind: 'hold' })
    expect(await store.codebases.list('host-a')).toEqual([])
    holder.child.stdin.write('go\n')
    expect(await holder.answer).toBeNull()
    expect(await store.codebases.list('host-a')).toHaveLength(1)
  })

  test('a writer who waits too long for another process says so', async () => {
    const target = await engine.fresh()
    const store = await engine.open(target, { busy: 60, wait: 200 })
    await start(target, { kind: 'hold' })
    // The same row, since PostgreSQL's writers only meet there.
    const waiting = store.codebases.insert(aCodebase('half-done'))
    await expect(waiting).rejects.toThrow(engine.name === 'sqlite' ? /another process has held/ : /lock timeout/)
  })
})

/** Starts them all, lets them go at once, and answers what each said. */
const together = async (target: StoreTarget, tasks: readonly ChildTask[]): Promise<unknown[]> => {
  const children = await Promise.all(tasks.map((task) => start(target, task)))
  for (const { child } of children) child.stdin.write('go\n')
  return Promise.all(children.map(({ answer }) => answer))
}

type Started = { readonly child: ChildProcessWithoutNullStreams; readonly answer: Promise<unknown> }

const start = async (target: StoreTarget, task: ChildTask): Promise<Started> => {
  const child = spawn(process.execPath, [script, JSON.stringify(target), JSON.stringify(task)])
  running.add(child)
  child.once('exit', () => running.delete(child))
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const line = async (): Promise<string> => {
    const { done, value } = await lines.next()
    if (done === true) throw new Error(`the child ended without an answer: ${errors}`)
    return value
  }
  expect(await line()).toBe('ready')
  const answer = line().then((text) => JSON.parse(text) as unknown)
  // A child that is killed on purpose has no answer, and nobody asks for it.
  answer.catch(() => {})
  return { child, answer }
}
