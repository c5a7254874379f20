import { expect, test } from 'vitest'
import { agentNames } from '../../src/agents/registry.ts'
import { acpExample } from './acp-specs.ts'
import { specs } from './agent-specs.ts'
import { agentSuite } from './agent-suite.ts'
import { programSpecs } from './program-specs.ts'

agentSuite([...specs, acpExample])

test('every agent has a spec: here, or among those whose programs `npm run test:programs` installs', () => {
  const names = [...specs, ...programSpecs].map(({ name }) => name)
  expect(agentNames.filter((name) => !names.includes(name))).toEqual([])
})
