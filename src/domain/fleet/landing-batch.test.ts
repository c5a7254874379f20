import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type BatchVerdict, learn, nextStep, startSearch } from './landing-batch.ts'

type Worked = { readonly landed: readonly number[]; readonly refused: readonly number[]; readonly runs: number }

/** Works a queue off as the real one does; `passes` is asked for each set of branches on the base. */
const workOff = (size: number, batch: number, passes: (branches: readonly number[]) => boolean): Worked => {
  const landed: number[] = []
  const refused: number[] = []
  let queue = Array.from({ length: size }, (_, i) => i)
  let runs = 0
  // Whatever landed has passed.
  let isGreen: true | undefined
  while (queue.length > 0) {
    const members = queue.slice(0, batch)
    let search = startSearch(members.length, isGreen)
    let verdict: BatchVerdict | undefined
    while (verdict === undefined) {
      const step = nextStep(search)
      if (step.kind === 'test') {
        runs += 1
        search = learn(search, step.size, passes([...landed, ...members.slice(0, step.size)]))
        if (step.size === 0) isGreen = true
      } else verdict = step
    }
    if (verdict.kind === 'base-red') return { landed, refused, runs }
    const { green, red } = verdict
    landed.push(...members.slice(0, green))
    if (green > 0) isGreen = true
    const blamed = red === undefined ? undefined : members[red]
    if (blamed !== undefined) refused.push(blamed)
    queue = queue.filter((one) => !landed.includes(one) && !refused.includes(one))
  }
  return { landed, refused, runs }
}

const without = (red: readonly number[]) => (branches: readonly number[]) => !branches.some((one) => red.includes(one))

describe('a batch', () => {
  test('20 branches of which 2 are red, with batch 8: at most 0.6 times as many runs as one by one', () => {
    let most = 0
    for (let a = 0; a < 20; a += 1) {
      for (let b = a + 1; b < 20; b += 1) {
        const { landed, refused, runs } = workOff(20, 8, without([a, b]))
        expect([landed.length, refused]).toEqual([18, [a, b]])
        most = Math.max(most, runs)
      }
    }
    expect(most).toBe(12)
    expect(workOff(20, 1, without([3, 12])).runs).toBe(20)
  })

  test('lands what one by one would land and blames the same branches, whatever is red alone or together', () => {
    const sets = fc.array(fc.uniqueArray(fc.nat(11), { minLength: 1, maxLength: 3 }), { maxLength: 4 })
    fc.assert(
      fc.property(sets, fc.integer({ min: 1, max: 9 }), (bad, batch) => {
        // Red as soon as all of one of these are in it.
        const passes = (branches: readonly number[]) => !bad.some((set) => set.every((one) => branches.includes(one)))
        const together = workOff(12, batch, passes)
        const alone = workOff(12, 1, passes)
        expect(together.landed).toEqual(alone.landed)
        expect(together.refused).toEqual(alone.refused)
      }),
      { seed: 14, numRuns: 500 },
    )
  })

  test('a blamed branch is red on top of what has passed, even if a later branch would mend it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 16 }), fc.func(fc.boolean()), (size, outcome) => {
        // Any outcome for any prefix.
        const results = new Map<number, boolean>()
        let search = startSearch(size, undefined)
        let step = nextStep(search)
        for (; step.kind === 'test'; step = nextStep(search)) {
          expect(results.has(step.size)).toBe(false)
          results.set(step.size, outcome(step.size))
          search = learn(search, step.size, outcome(step.size))
        }
        expect(results.size).toBeLessThanOrEqual(2 + Math.ceil(Math.log2(size)))
        const problems =
          step.kind === 'base-red'
            ? [results.get(0) !== false]
            : [
                step.green > 0 && results.get(step.green) !== true,
                step.red !== undefined && (step.red !== step.green || results.get(step.red + 1) !== false),
              ]
        expect(problems).not.toContain(true)
      }),
      { seed: 14, numRuns: 300 },
    )
  })

  test('blames no branch while the base itself is red', () => {
    expect(workOff(5, 8, () => false)).toEqual({ landed: [], refused: [], runs: 5 })
  })
})
