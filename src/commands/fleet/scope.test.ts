import { expect, test } from 'vitest'
import type { FleetContext } from '../../fleet/context.ts'
import { changerOf } from './scope.ts'

test.each([
  [{}, 'cli'],
  // The setting for the default agent.
  [{ COPPICE_AGENT: 'codex' }, 'cli'],
  [{ COPPICE_AGENT: 'alder', COPPICE_SPAWN: 'x' }, 'agent:alder'],
])('who changes an item with the variables %j: %s', (ownEnvironment, expected) => {
  const isolation = { ownEnvironment } as Pick<FleetContext['isolation'], 'ownEnvironment'> as FleetContext['isolation']
  expect(changerOf({}, { isolation })).toBe(expected)
})
