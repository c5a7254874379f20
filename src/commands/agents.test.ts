import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeChat, missingAgent, readyAgent } from '../../test/helpers/chat.ts'
import { makeWorld, type World } from '../../test/helpers/world.ts'
import type { Agent } from '../agents/agent.ts'

let world: World
beforeEach(async () => {
  world = await makeWorld()
})
afterEach(() => world[Symbol.asyncDispose]())

const loggedOut: Agent = {
  ...readyAgent('gemini'),
  inspect: async () => ({
    state: 'logged-out',
    problem: 'gemini is not logged in',
    remedy: 'Run `gemini` and log in.',
  }),
}
const versioned: Agent = { ...readyAgent('claude'), availability: async () => ({ state: 'ready', version: '2.1' }) }
const broken: Agent = {
  ...readyAgent('odd'),
  inspect: async () => {
    throw new Error('it bit me')
  },
}

test('shows every agent, its version, which one answers and why, and what fixes each that is not ready', async () => {
  const chat = await makeChat(world, { agents: [missingAgent('codex'), versioned, loggedOut, broken] })
  const text = await chat.say('/agents')
  expect(text).toMatch(/codex +not ready/)
  expect(text).toMatch(/claude \* +ready +2\.1/)
  expect(text).toMatch(/gemini +not logged in/)
  expect(text).toMatch(/`claude` is used here: the first one that is ready/)
  expect(text).toContain('Codex is not installed. Install codex.')
  expect(text).toContain('Gemini is not logged in. Run `gemini` and log in.')
  expect(text).toContain("Couldn't check odd: it bit me.")
})

test('says so when none can answer', async () => {
  const chat = await makeChat(world, { agents: [missingAgent('codex')] })
  expect(await chat.say('/agents')).toContain('No agent is ready')
})
