import { expect, test } from 'vitest'
import { priorityOfLabels } from './priority-label.ts'

test.each([
  [['P0'], 0],
  [['bug', 'p4', 'ready'], 4],
  [['priority:high'], 1],
  [['Priority: P1'], 1],
  [['priority/2', 'P2'], 2],
  [['prio-low'], 3],
  [['priority_critical'], 0],
  [[], undefined],
  [['P5'], undefined],
  [['high'], undefined],
  [['P1', 'P2'], undefined],
  [['priority:whatever'], undefined],
  [['no-priority:high'], undefined],
  [['P1-backend'], undefined],
])('%j: %s', (labels, priority) => {
  expect(priorityOfLabels(labels)).toBe(priority)
})
