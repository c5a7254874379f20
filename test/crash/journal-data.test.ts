import { afterAll, beforeAll, expect, test } from 'vitest'
import { recoverInterrupted } from '../../src/isolation/reconcile.ts'
import { keepSpares } from '../../src/isolation/providers/worktree/spare.ts'
import type { JournalEntry, JournalKind } from '../../src/store/store.ts'
import { fingerprint, issue, removed } from '../isolation/scene.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { said } from '../helpers/words.ts'

/*
 * Recovery deletes and moves by what the journal says. Whatever is wrong with an entry, it is left alone with everything
 * it may be about, and the one who asks is told which field it is.
 */

let world: World
/** As the operations themselves wrote them, at the point where each has most to say. */
const written = new Map<JournalKind, JournalEntry>()
const moments = ['create.tree', 'remove.forgetting', 'restore.tree', 'spare.intent']

beforeAll(async () => {
  const made: World = await makeWorld({
    settings: { spares: 1 },
    context: {
      failpoint: async (name) => {
        if (!moments.includes(name)) return
        const [entry] = await made.context.store.journal.open(made.context.host)
        if (entry !== undefined) written.set(entry.kind, entry)
      },
    },
  })
  world = made
  const { restorePoint } = await removed(world, await issue(world, 1))
  await world.provider.restore(restorePoint)
  await keepSpares(world.context, world.codebase)
})
afterAll(() => world[Symbol.asyncDispose]())

const required: [JournalKind, string[]][] = [
  ['create', ['path', 'leaf', 'branch', 'branchCreated', 'start', 'adminNamesBefore']],
  ['restore', ['path', 'leaf', 'branch', 'branchCreated', 'start', 'adminNamesBefore', 'pointId']],
  ['spare', ['path', 'leaf', 'start', 'spareId']],
  ['remove', ['was', 'branchGoes', 'note', 'why', 'trigger', 'files']],
]

test.each(required)('an interrupted %s with a field missing or of another kind is left alone', async (kind, names) => {
  const entry = written.get(kind)
  if (entry === undefined) throw new Error(`no ${kind} was seen`)
  const state = (): string[] => [
    fingerprint(world.box.path('trees')),
    fingerprint(world.repo.commonDir, (path) => path.includes('coppice-lock') || path.endsWith('.lock')),
  ]
  const before = state()
  const broken: [string, unknown][] = [
    ...names.map((name): [string, unknown] => [name, undefined]),
    ...Object.keys(entry.data).flatMap((name): [string, unknown][] => [
      [name, 42],
      [name, { a: 1 }],
    ]),
    ...['path', 'leaf', 'spareId', 'pointId', 'adminDir', 'root', 'start']
      .filter((name) => name in entry.data)
      .map((name): [string, unknown] => [name, '']),
  ]
  for (const [name, value] of broken) {
    const id = world.context.ids()
    const data = { ...entry.data, [name]: value }
    await world.context.store.journal.begin({ ...entry, id, data, holder: { ...entry.holder, startTime: 'before' } })
    const { settled, left } = await recoverInterrupted(world.context, world.codebase)
    expect([settled, said(left).join()]).toEqual([
      [],
      expect.stringMatching(`is unreadable and was left alone: ${name}`),
    ])
    expect((await world.context.store.journal.get(id))?.id).toBe(id)
    await world.context.store.journal.end(id)
  }
  expect(state()).toEqual(before)
})
