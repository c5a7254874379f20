import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { acpAgents } from '../domain/config/agents.ts'
import { defaultSettings } from '../domain/config/settings.ts'
import { createGit } from '../git/door.ts'
import { selfIdentity } from '../process/identity.ts'
import type { Agent, AgentAvailability } from './agent.ts'
import { agentNames, chooseAgent, createAgents } from './registry.ts'

const made = (agentCommand?: string): ReadonlyMap<string, Agent> =>
  createAgents({
    settings: { ...defaultSettings, agentCommand, claudeCommand: 'no-such-claude', codexCommand: 'no-such-codex' },
    git: createGit({ env: {}, home: tmpdir(), now: Date.now }),
    clock: Date.now,
    ids: () => 'id',
    self: selfIdentity(),
    contextDirectory: tmpdir(),
    ownEnvironment: {},
  })

const nothing = { wanted: undefined, codebaseDefault: undefined, settings: { agentDefault: undefined } }

const choose = async (choice: Partial<Parameters<typeof chooseAgent>[0]>, agents = made('cat')) => {
  const { agent, reason } = await chooseAgent({ agents, ...nothing, ...choice })
  return `${agent.name}, ${reason}`
}

test('the command is there only if one is configured, and the demo is last', () => {
  expect([...made().keys()]).toEqual(['claude', 'codex', 'demo'])
  expect([...made('cat').keys()]).toEqual(['command', 'claude', 'codex', 'demo'])
  for (const [name, agent] of made('cat')) expect(agent.name).toBe(name)
  // Their names can't be given to an agent in the configuration.
  for (const name of agentNames) expect(acpAgents.read({ [name]: { command: ['x'] } })).toBeUndefined()
  expect(acpAgents.read({ gemini: { command: ['x'] } })).toHaveLength(1)
})

test('Claude Code, Codex and the demo enforce read-only runs; a program of the user is only told', () => {
  const enforcing = [...made('cat').values()].filter((agent) => agent.enforcesReadOnly === true)
  expect(enforcing.map(({ name }) => name)).toEqual(['claude', 'codex', 'demo'])
})

test('the nearest word counts: the conversation, then the codebase, then the configuration', async () => {
  const settings = { agentDefault: 'command' }
  expect(await choose({ wanted: 'demo', codebaseDefault: 'command', settings })).toMatch(/^demo, .*conversation/)
  expect(await choose({ codebaseDefault: 'demo', settings })).toMatch(/^demo, .*repository/)
  expect(await choose({ settings: { agentDefault: 'demo' } })).toMatch(/^demo, .*COPPICE_AGENT/)
})

test('without a word the first that is ready is taken, and it is said why not the one before', async () => {
  expect(await choose({})).toBe('command, the first one that is ready')
  expect(await choose({}, made())).toMatch(
    /^demo, .*claude: Claude Code is not installed.*codex: Codex is not installed/,
  )
  const agents = new Map([['claude', unready('claude')], ...demoOnly()])
  expect(await choose({}, agents)).toBe('demo, the first one that is ready (claude: it is not logged in)')
  await expect(choose({}, new Map([['claude', unready('claude')]]))).rejects.toMatchObject({
    code: 'not-found',
    remedy: 'log in',
  })
})

test('one that was named is taken even if it is not ready: its own failure says what is missing', async () => {
  expect(await choose({ wanted: 'claude' }, new Map([['claude', unready('claude')], ...demoOnly()]))).toMatch(
    /^claude,/,
  )
})

test('an unknown name is an error that names the known ones and where it came from', async () => {
  await expect(choose({ wanted: 'clod' })).rejects.toMatchObject({
    code: 'not-found',
    message: 'unknown agent "clod" (chosen in this conversation)',
    remedy: 'choose one of: command, claude, codex, demo',
  })
  await expect(choose({ codebaseDefault: '__proto__' })).rejects.toMatchObject({ code: 'not-found' })
  await expect(choose({ wanted: 'command' }, made())).rejects.toMatchObject({
    message: expect.stringContaining('not set up'),
    remedy: expect.stringMatching(/COPPICE_AGENT_COMMAND.*choose one of: claude, codex, demo/),
  })
})

const demoOnly = () => [...made()].filter(([name]) => name === 'demo')

const unready = (name: string): Agent => ({
  name,
  availability: async (): Promise<AgentAvailability> => ({
    state: 'logged-out',
    problem: 'it is not logged in',
    remedy: 'log in',
  }),
  run: async () => ({ outcome: 'failed', text: '' }),
})
