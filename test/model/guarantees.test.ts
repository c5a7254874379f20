import { randomInt } from 'node:crypto'
import * as fc from 'fast-check'
import { test } from 'vitest'
import type { Command, How } from './command.ts'
import * as coppice from './coppice.ts'
import * as person from './person.ts'
import { type Counts, makeReal, newCounts } from './real.ts'

/** COPPICE_MODEL_SEED repeats a run; COPPICE_MODEL_RUNS makes it a long one. */
// The ordinary suite walks the same way every time; `npm run test:soak` takes a new one at each run.
const seed = Number(
  process.env['COPPICE_MODEL_SEED'] ??
    (process.env['COPPICE_MODEL_RUNS'] === undefined ? 1_451_134_727 : randomInt(2 ** 31)),
)
const numRuns = Number(process.env['COPPICE_MODEL_RUNS'] ?? 5)

test(
  'whatever people, agents and crashes do in whatever order, nothing is lost and everything agrees',
  async () => {
    process.stdout.write(`model: seed ${seed}, ${numRuns} runs\n`)
    const counts = newCounts()
    const property = fc.asyncProperty(fc.commands(commands, { maxCommands: 80, size: 'max' }), async (all) => {
      const { model, real } = await makeReal(counts)
      try {
        await fc.asyncModelRun(() => ({ model, real }), all)
      } finally {
        await real[Symbol.asyncDispose]()
      }
    })
    const result = await fc.check(property, {
      seed,
      numRuns,
      interruptAfterTimeLimit: limit,
      markInterruptAsFailure: false,
      endOnFailure: process.env['COPPICE_MODEL_NO_SHRINK'] === '1',
    })
    process.stdout.write(summary(counts, result.failed))
    if (result.failed)
      throw new Error(report(result.errorInstance, result.counterexample), { cause: result.errorInstance })
  },
  24 * 60 * 60 * 1000,
)

/** Shrinking a failure costs a second or two per attempt: what it has found by then is shown. */
const limit = Math.max(300_000, numRuns * 30_000)

const nth = fc.nat(7)
const wanted: fc.Arbitrary<coppice.Wanted> = fc.oneof(
  fc.integer({ min: 1, max: 4 }).map(coppice.issue),
  fc.constantFrom('dark-mode', 'logs').map(coppice.task),
  fc.constantFrom(1, 2).map(coppice.topic),
  fc.constantFrom(11, 12, 13).map((number) => coppice.pullRequest(number, number === 13 ? [] : [number - 10])),
)
const death: fc.Arbitrary<How> = fc.record({
  dieAt: fc.integer({ min: 1, max: 11 }),
  dieAgainAt: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined, freq: 3 }),
})
const days = fc.constantFrom(0, 1, 15, 31)

const kills: fc.Arbitrary<Command> = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(wanted, death).map(([what, how]) => coppice.resolve(what, undefined, how)) },
  { weight: 3, arbitrary: fc.tuple(nth, fc.boolean(), death).map(([n, force, how]) => coppice.remove(n, force, how)) },
  { weight: 2, arbitrary: fc.tuple(nth, death).map(([n, how]) => coppice.restore(n, how)) },
  fc.tuple(days, death).map(([n, how]) => coppice.sweep(n, how)),
  fc.tuple(nth, death).map(([n, how]) => coppice.close(n, how)),
  fc.tuple(nth, death).map(([n, how]) => coppice.adopt(n, how)),
  death.map(coppice.spare),
)

const many = (weight: number, arbitrary: fc.Arbitrary<Command>): fc.Arbitrary<Command>[] =>
  Array.from({ length: weight }, () => arbitrary)

const commands: fc.Arbitrary<Command>[] = [
  ...many(
    6,
    fc.tuple(wanted, fc.option(nth, { nil: undefined, freq: 3 })).map(([what, by]) => coppice.resolve(what, by)),
  ),
  ...many(3, nth.map(person.commit)),
  nth.map(person.amend),
  ...many(
    3,
    fc.tuple(nth, fc.constantFrom(...person.dirtKinds)).map(([n, kind]) => person.dirty(n, kind)),
  ),
  ...many(2, nth.map(person.clean)),
  nth.map(person.detach),
  nth.map(person.push),
  ...many(
    3,
    fc
      .tuple(nth, fc.constantFrom(...person.mergeKinds), fc.boolean())
      .map(([n, kind, on]) => person.merge(n, kind, on)),
  ),
  nth.map(person.unmount),
  ...many(2, nth.map(person.remount)),
  fc.tuple(nth, fc.constantFrom('lock' as const, 'process' as const)).map(([n, kind]) => person.use(n, kind)),
  fc.integer({ min: 0, max: 4 }).map(person.stranger),
  fc.constant(null).map(person.branch),
  fc.constant(undefined).map(() => coppice.spare()),
  ...many(
    2,
    nth.map((n) => coppice.adopt(n)),
  ),
  fc.tuple(nth, fc.nat(2), fc.boolean()).map(([n, who, persistent]) => coppice.bind(n, who, persistent && who === 0)),
  nth.map((n) => coppice.close(n)),
  ...many(
    4,
    fc.tuple(nth, fc.boolean()).map(([n, force]) => coppice.remove(n, force)),
  ),
  ...many(
    3,
    nth.map((n) => coppice.restore(n)),
  ),
  ...many(
    2,
    days.map((n) => coppice.sweep(n)),
  ),
  fc.constant(undefined).map(coppice.reconcileTwice),
  ...many(3, kills),
]

const report = (errorInstance: unknown, counterexample: unknown): string => {
  return [
    errorInstance instanceof Error ? errorInstance.message : String(errorInstance),
    `the shortest list of commands that was found: ${fc.stringify(counterexample)}`,
    `COPPICE_MODEL_SEED=${seed} COPPICE_MODEL_RUNS=${numRuns} repeats it`,
  ].join('\n')
}

const summary = (counts: Counts, failed: boolean): string => {
  const shown = (map: ReadonlyMap<string, number>): string =>
    [...map]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, n]) => `${key} ${n}`)
      .join(', ')
  const total = (map: ReadonlyMap<string, number>): number => [...map.values()].reduce((sum, n) => sum + n, 0)
  const died = total(counts.kills) - (counts.kills.get('came through') ?? 0)
  return [
    `model: ${total(counts.commands)} commands: ${shown(counts.commands)}`,
    `model: ${died} kills: ${shown(counts.kills)}`,
    `model: ${counts.environments} environments made, ${counts.removed} removed, ${counts.restored} restored, ${counts.checks} checks, lost: ${failed ? 'see below' : 'nothing'}`,
    '',
  ].join('\n')
}
