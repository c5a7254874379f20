import { resolve } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect } from 'vitest'
import type { Agent, AgentRequest } from '../../src/agents/agent.ts'
import { type Setting, settingTable } from '../../src/domain/config/settings.ts'
import { runAgentSession } from '../../src/fleet/agent-session.ts'
import type { FleetContext } from '../../src/fleet/context.ts'
import { fleetDown } from '../../src/fleet/down.ts'
import { reconcilePools } from '../../src/fleet/reconcile-pools.ts'
import { sessionProgram } from '../../src/fleet/program.ts'
import { REQUESTS } from '../../src/domain/fleet/agent.ts'
import { agentDirectory } from '../../src/fleet/sessions/paths.ts'
import { sessionVariables } from '../../src/fleet/sessions/variables.ts'
import { sling } from '../../src/fleet/sling/sling.ts'
import { fleetUp } from '../../src/fleet/up.ts'
import { readInput } from '../../src/process/input-lines.ts'
import { isSecretName } from '../../src/process/redaction/secret-names.ts'
import { scripted } from '../crash/fleet-operations.ts'
import { type FleetWorld, makeFleetWorld } from '../helpers/fleet.ts'
import { testInTmux } from '../helpers/tmux.ts'

const script = resolve(import.meta.dirname, '../helpers/fleet-worker.sh')

/** With a terminal, and turn by turn. */
const both = (asked: AgentRequest[]): Agent => ({
  ...scripted(script),
  run: async (request) => {
    asked.push(request)
    request.emit({ type: 'session', id: `session-${asked.length}` })
    return { outcome: 'done', text: '' }
  },
})

const atWork = async (agent: Agent) => {
  const world = await makeFleetWorld({
    kind: 'tmux',
    agents: [agent],
    pools: [{ agent: agent.name, command: undefined }],
  })
  const { id } = await world.addItem('Fix login')
  const result = await sling(world.fleet, { item: id, by: 'cli' })
  if (result.outcome !== 'started') throw new Error(`not started: ${JSON.stringify(result)}`)
  return { ...world, agent: result.agent, environment: result.environment }
}

/** One turn: nobody sends anything afterwards. */
const oneTurn = (fleet: FleetContext, { name, spawn }: { name: string; spawn: string }, fresh = false) =>
  runAgentSession(
    fleet,
    { agent: name, spawn },
    {
      next: async () => undefined,
      queued: () => 0,
      show: () => undefined,
      primed: () => '',
      signal: new AbortController().signal,
      fresh,
    },
  )

const withVariables = ({ fleet }: FleetWorld, ownEnvironment: Record<string, string>): FleetContext => ({
  ...fleet,
  isolation: { ...fleet.isolation, ownEnvironment },
})

testInTmux('turn by turn, it continues its own session, and starts afresh when asked to', async () => {
  const asked: AgentRequest[] = []
  await using world = await atWork(both(asked))
  for (const fresh of [false, false, true, false]) await oneTurn(world.fleet, world.agent, fresh)
  expect(asked.map(({ session }) => session)).toEqual([undefined, 'session-1', undefined, 'session-3'])
})

testInTmux('it takes no turn before its start is recorded, and none if whoever starts it has died', async () => {
  const asked: AgentRequest[] = []
  const agent = both(asked)
  await using world = await makeFleetWorld({
    kind: 'tmux',
    agents: [agent],
    pools: [{ agent: agent.name, command: undefined }],
  })
  const { id } = await world.addItem('Fix login')
  const { store } = world.context
  const { fleetAgents } = store
  let session: Promise<void> | undefined
  const failpoint = async (passed: string): Promise<void> => {
    if (passed !== 'spawn.started') return
    const [{ name, spawn } = expect.unreachable()] = await fleetAgents.live({})
    const waits = Promise.withResolvers<void>()
    let looks = 0
    const byName: typeof fleetAgents.byName = async (...key) => {
      // More often than a turn would need.
      if ((looks += 1) === 5) waits.resolve()
      return fleetAgents.byName(...key)
    }
    const isolation = { ...world.context, store: { ...store, fleetAgents: { ...fleetAgents, byName } } }
    session = oneTurn({ ...world.fleet, isolation }, { name, spawn })
    await Promise.race([waits.promise, session])
    expect(asked).toEqual([])
  }
  const starting = { ...world.fleet, isolation: { ...world.context, failpoint } }
  const slung = await sling(starting, { item: id, by: 'cli' })
  await session
  expect(asked).toHaveLength(1)
  if (slung.outcome !== 'started') throw new Error(`not started: ${JSON.stringify(slung)}`)
  const holder = { ...world.context.self, startTime: 'of another process' }
  await fleetAgents.move(slung.agent.id, 'working', 'spawning', { holder })
  await expect(oneTurn(world.fleet, slung.agent)).rejects.toThrow('the start of alder was interrupted')
  expect(asked).toHaveLength(1)
})

testInTmux('after `fleet up`, a program continues its own session, unless its pool wants it fresh', async () => {
  const resumed: boolean[] = []
  const agent: Agent = {
    ...scripted(script),
    interactive: async ({ resume }) => {
      resumed.push(resume)
      return { command: ['sh', script], variables: {} }
    },
  }
  const pool = { agent: agent.name, command: undefined }
  await using world = await makeFleetWorld({
    kind: 'tmux',
    // The first one would be the default.
    agents: [{ ...scripted(script), name: 'another' }, agent],
    pools: [pool, { ...pool, name: 'forgetful', wake: 'fresh' }],
  })
  for (const name of ['workers', 'forgetful']) {
    const { id } = await world.addItem(`For ${name}`)
    await sling(world.fleet, { item: id, pool: name, by: 'cli' })
    await fleetDown(world.fleet, { by: 'cli', graceMs: 0 })
    await fleetUp(world.fleet, { by: 'cli', only: [name === 'workers' ? 'alder' : 'beech'] })
  }
  expect(resumed).toEqual([false, true, false, false])
})

testInTmux('what was sent before a question is no answer to it, but the next message', async () => {
  const input = new PassThrough()
  const answers: unknown[] = []
  const prompts: string[] = []
  const agent: Agent = {
    ...scripted(script),
    run: async ({ prompt, ask }) => {
      prompts.push(prompt)
      if (prompts.length === 1) {
        input.write('yes\n')
        answers.push(await ask?.({ kind: 'permission', agent: 'scripted', what: 'run a command', detail: 'rm -rf x' }))
      } else input.end()
      return { outcome: 'done', text: '' }
    },
  }
  await using world = await atWork(agent)
  const messages = readInput(input)
  const notes: unknown[] = []
  await runAgentSession(
    world.fleet,
    { agent: world.agent.name, spawn: world.agent.spawn },
    {
      next: async (unwanted, after) => {
        const { parked } = await world.item(1)
        if (parked !== undefined) {
          notes.push(parked)
          input.write('no\n')
        }
        return messages.next(unwanted, after)
      },
      queued: () => messages.queued(),
      show: () => undefined,
      primed: () => '',
      signal: new AbortController().signal,
    },
  )
  expect(answers).toEqual([{ kind: 'denied' }])
  expect(prompts).toEqual([expect.stringContaining('You are alder'), 'yes'])
  // Whoever answers from a chat sees exactly what would be done.
  expect(notes).toEqual([{ kind: 'asked', note: 'it wants to run a command:\nrm -rf x\nSend it yes or no.' }])
})

testInTmux('one that runs no commands waits for its item without a turn, and gets its words', async () => {
  const asked: AgentRequest[] = []
  const agent: Agent = { ...both(asked), runsNoCommands: true }
  await using world = await makeFleetWorld({
    kind: 'tmux',
    agents: [agent],
    pools: [{ agent: agent.name, command: undefined, min: 1, done: 'land', prompt: 'about {{item.title}}' }],
  })
  await reconcilePools(world.fleet)
  const [idle] = await world.context.store.fleetAgents.live({})
  const { name = '', spawn = '' } = idle ?? {}
  const { id } = await world.addItem('Fix login')
  const lines = [
    async () => (await sling(world.fleet, { item: id, by: 'cli' })).outcome,
    async () => 'and the logout',
    async () => undefined,
  ]
  const shown: string[] = []
  await runAgentSession(
    world.fleet,
    { agent: name, spawn },
    {
      next: async () => lines.shift()?.(),
      queued: () => 0,
      show: (event) => void shown.push(event.kind),
      primed: ({ formula, template }) => `to ${formula}: ${template}`,
      signal: new AbortController().signal,
    },
  )
  expect(shown[0]).toBe('waiting')
  expect(asked.map(({ prompt, context }) => [prompt, context])).toEqual([
    ['Fix login', expect.stringContaining('to land: about {{item.title}}')],
    ['and the logout', expect.stringContaining('to land: about {{item.title}}')],
  ])
})

testInTmux('it may read long messages; only one whose commands are confined gets a place for requests', async () => {
  const asked: AgentRequest[] = []
  await using world = await atWork(both(asked))
  await oneTurn(world.fleet, world.agent)
  await oneTurn(withVariables(world, { [REQUESTS]: '/somewhere' }), world.agent)
  const files = agentDirectory(world.context.home, world.agent.name)
  expect(asked.map(({ outside }) => outside)).toEqual([
    { readable: [`${files}/messages`], writable: [] },
    { readable: [`${files}/messages`], writable: [`${files}/requests`] },
  ])
})

testInTmux('settings reach its own commands as variables, except secrets', async () => {
  await using world = await atWork(both([]))
  const { agent, environment, codebase } = world
  const settings = Object.values<Setting<unknown>>(settingTable).filter(({ variable }) => variable !== undefined)
  const given = Object.fromEntries(settings.map(({ variable = '' }) => [variable, 'canary']))
  const mark = { id: 'r', token: 't', cgroup: undefined }
  const program = { variables: {}, isConfined: false }
  const session = { agent, codebase, environment, mark, program, beacon: 'x' }
  const variables = await sessionVariables(withVariables(world, given), session)
  const passed = Object.keys(variables).filter((name) => variables[name] === 'canary')
  expect(passed).toEqual(expect.arrayContaining(['WORKTREE_BASE', 'COPPICE_CLAUDE_COMMAND']))
  expect(variables['COPPICE_AGENT']).toBe(agent.name)
  const secret = settings.filter(({ variable = '', rule }) => rule.secret === true || isSecretName(variable))
  expect(secret.map(({ variable }) => variable)).toContain('COPPICE_DATABASE_URL')
  expect(passed.filter((name) => secret.some(({ variable }) => variable === name))).toEqual([])
})

testInTmux('a run of it is in no cgroup, which whoever ends its session would be in, too', async () => {
  const asked: AgentRequest[] = []
  await using world = await atWork(both(asked))
  await oneTurn({ ...world.fleet, cgroup: world.box.root }, world.agent)
  expect(asked.map(({ mark }) => mark.cgroup)).toEqual([undefined])
})

testInTmux.each([
  ['tmux', 'terminal', true],
  ['tmux', 'none', false],
  ['tmux', 'not here', false],
  ['process', 'terminal', false],
] as const)('in %s, a program with a terminal of its own (%s) runs in it: %s', async (kind, terminal, expected) => {
  const here = { none: { interactive: undefined }, terminal: {}, 'not here': { interactive: async () => undefined } }
  const program = { ...scripted(script), ...here[terminal], confinesCommands: async () => true } as Agent
  await using world = await atWork(scripted(script))
  const { agent, environment } = world
  const given = { agent, environment, pool: undefined, kind, beacon: 'x', sessionId: '1', files: '/files' }
  const fleet = { ...world.fleet, agents: new Map([[program.name, program]]) }
  const { command, isConfined } = await sessionProgram(fleet, { ...given, resume: false })
  expect(command.includes(script)).toBe(expected)
  expect(isConfined).toBe(true)
  const again = await sessionProgram(fleet, { ...given, resume: true })
  expect([command.includes('--fresh'), again.command.includes('--fresh')]).toEqual([!expected, false])
})
