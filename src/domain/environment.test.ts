import { expect, test } from 'vitest'
import { isAppError } from './errors.ts'
import {
  assertTransition,
  canBecome,
  environmentStatuses,
  liveStatuses,
  type EnvironmentStatus,
} from './environment.ts'

// Written out a second time on purpose: a change to the table has to be meant.
const legal: readonly [EnvironmentStatus, EnvironmentStatus][] = [
  ['creating', 'active'],
  ['creating', 'removed'],
  ['creating', 'released'],
  ['active', 'removing'],
  ['active', 'missing'],
  ['active', 'released'],
  ['removing', 'removed'],
  ['removing', 'active'],
  ['removing', 'missing'],
  ['removing', 'released'],
  ['missing', 'active'],
  ['missing', 'removing'],
  ['missing', 'removed'],
  ['missing', 'released'],
]

const pairs = environmentStatuses.flatMap((from) => environmentStatuses.map((to) => [from, to] as const))

test.each(pairs)('from %s to %s is allowed exactly when the table says so', (from, to) => {
  const allowed = legal.some(([a, b]) => a === from && b === to)
  expect(canBecome(from, to)).toBe(allowed)
  const attempt = (): string => {
    try {
      assertTransition(from, to)
      return 'allowed'
    } catch (error) {
      return isAppError(error, 'illegal-transition') ? 'illegal' : 'broken'
    }
  }
  expect(attempt()).toBe(allowed ? 'allowed' : 'illegal')
})

test('what is removed or released stays so, and only that is not live', () => {
  const final = environmentStatuses.filter((from) => environmentStatuses.every((to) => !canBecome(from, to)))
  expect(final).toEqual(['removed', 'released'])
  expect([...liveStatuses, ...final].sort()).toEqual([...environmentStatuses].sort())
})

test('an active environment is never removed without passing through removing', () => {
  expect(canBecome('active', 'removed')).toBe(false)
})
