import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Agent } from '../../src/agents/agent.ts'
import { coppice } from '../../src/domain/remedy.ts'
import { nudgeAgent } from '../../src/fleet/peek-and-nudge.ts'
import { sling } from '../../src/fleet/sling/sling.ts'
import { agentDirectory } from '../../src/fleet/sessions/paths.ts'
import { tmuxSocket } from '../../src/fleet/sessions/tmux-socket.ts'
import { liveness } from '../../src/process/identity.ts'
import { assertHooksAgree, type FleetWorld, makeFleetWorld } from '../helpers/fleet.ts'
import { launchingWith } from '../helpers/launching.ts'
import { runnableKinds } from '../helpers/tmux.ts'

const slung = async (world: FleetWorld, item: number, change: object = {}) => {
  const result = await sling(world.fleet, { item, by: 'cli', ...change })
  if (result.outcome !== 'started') throw new Error(`not started: ${JSON.stringify(result)}`)
  return result
}

/** Its program was removed after somebody looked. */
const uninstalled: Agent = {
  name: 'lost',
  availability: async () => ({ state: 'ready', version: undefined }),
  run: async () => ({ outcome: 'failed', text: '' }),
  interactive: async () => ({ command: ['/no/such/program'], variables: {} }),
}

describe.each(runnableKinds)('sling, with sessions in %s', (kind) => {
  test('gives the item to a named agent, whose program runs in its own worktree', async () => {
    const waits: string[] = []
    await using world = await makeFleetWorld({ kind, context: { progress: (message) => void waits.push(message) } })
    const item = await world.addItem('Fix login', { body: 'It fails.' })
    const { agent, environment } = await slung(world, item.id)
    expect(agent).toMatchObject({ name: 'alder', state: 'working', pool: 'workers', itemId: item.id, restarts: 0 })
    expect(environment).toMatchObject({ work: { type: 'agent', id: 'alder' }, status: 'active' })
    expect(environment.branch).toMatch(/^agent\/alder-[0-9a-z]+$/)
    expect(agent.session?.kind).toBe(kind)
    expect(liveness(agent.session?.root ?? { pid: 0, startTime: '' })).toBe('alive')
    expect(await world.item(item.id)).toMatchObject({ state: 'hooked', environmentId: environment.id })
    expect(world.told.map(({ kind: what }) => what)).toEqual(['started'])
    expect(waits).toEqual(expect.arrayContaining(['creating a worktree for alder', 'starting alder']))
    await expect.poll(() => world.printed('alder')).toContain(`ready alder ${item.id}`)
    await world.order('alder', 'commit login')
    await expect.poll(() => world.printed('alder')).toContain('ready after: commit login')
    expect(world.box.raw(environment.path, 'log', '-1', '--format=%s')).toBe('login')
    await assertHooksAgree(world)
    // In a terminal, Ctrl-C would end it.
    await nudgeAgent(world.fleet, 'alder', 'echo o\u0003n\u202ee')
    await expect.poll(() => world.printed('alder')).toContain('ready after: echo one')
    if (kind === 'process') return
    // Its terminal is lost, and it lives on: whoever speaks to it hears what to do.
    await world.order('alder', "trap '' HUP; touch deaf; sleep 1000")
    await expect.poll(() => existsSync(join(environment.path, 'deaf'))).toBe(true)
    const server = ['-S', tmuxSocket(world.context.home), 'display-message', '-p', '#{pid}']
    process.kill(Number(execFileSync('tmux', server, { encoding: 'utf8' })), 'SIGKILL')
    await expect(nudgeAgent(world.fleet, 'alder', 'hello')).rejects.toMatchObject({
      message: expect.stringMatching(/^alder can't be reached: /),
      remedy: expect.arrayContaining([coppice('fleet up alder')]),
    })
  })

  test('the session has the variables, and this very coppice, and is started as the provider starts programs', async () => {
    await using world = await makeFleetWorld({ kind, context: { providers: launchingWith('COPPICE_LAUNCHED=yes') } })
    const item = await world.addItem('Fix login')
    const { agent, environment } = await slung(world, item.id)
    await world.order('alder', 'env | grep ^COPPICE_ | sort; command -v coppice; pwd')
    await expect.poll(() => world.printed('alder')).toContain('ready after: env')
    const printed = world.printed('alder')
    const { home } = world.context
    for (const line of [
      'COPPICE_AGENT=alder',
      `COPPICE_BRANCH=${environment.branch}`,
      'COPPICE_CODEBASE=project',
      `COPPICE_DIR=${environment.path}`,
      `COPPICE_HOME=${home}`,
      `COPPICE_ITEM=${item.id}`,
      'COPPICE_LAUNCHED=yes',
      'COPPICE_POOL=workers',
      `COPPICE_SPAWN=${agent.spawn}`,
      join(home, 'fleet', 'bin', 'coppice'),
    ]) {
      expect(printed).toContain(line)
    }
    expect(printed).toMatch(/COPPICE_BEACON=You are alder.*Your item is 1: Fix login.*coppice prime/)
    expect(readFileSync(join(home, 'fleet', 'bin', 'coppice'), 'utf8')).toContain(world.fleet.installation[1])
  })

  test('a program that does not start leaves nothing: no session, worktree, branch, hook or name', async () => {
    await using world = await makeFleetWorld({
      kind,
      pools: [
        { agent: 'lost', command: undefined },
        { name: 'other', isolation: 'clone' },
      ],
      agents: [uninstalled],
      fleet: { installation: ['/no/such/program'] },
    })
    const item = await world.addItem('Fix login')
    await expect(slung(world, item.id)).rejects.toMatchObject({ code: 'program-failed' })
    expect(await world.item(item.id)).toMatchObject({ state: 'open', environmentId: undefined })
    expect(await world.context.store.fleetAgents.live()).toEqual([])
    expect(world.repo.git('worktree', 'list', '--porcelain').match(/^worktree /gm)).toHaveLength(1)
    expect(world.repo.git('branch', '--list', 'agent/*')).toBe('')
    expect(existsSync(agentDirectory(world.context.home, 'alder'))).toBe(false)
    expect(world.told).toEqual([])
    const other = await slung(world, item.id, { pool: 'other' })
    expect(other).toMatchObject({ agent: { name: 'alder' }, environment: { provider: 'clone' } })
    await assertHooksAgree(world)
  })
})

describe('sling', () => {
  test('refuses what can not be worked on now, and says why', async () => {
    await using world = await makeFleetWorld({
      pools: [{ max: 2 }, { name: 'web', codebases: ['web'] }, { name: 'more' }],
      maxAgents: 2,
    })
    const [first, second, third] = [
      await world.addItem('one'),
      await world.addItem('two'),
      await world.addItem('three', { after: [1] }),
    ]
    const why = async (item: number, pool?: string) => {
      const result = await sling(world.fleet, { item, by: 'cli', pool })
      return result.outcome === 'refused' ? result.why : result.outcome
    }
    expect(await why(third.id)).toEqual({ kind: 'waits', after: [first.id] })
    expect(await why(first.id, 'web')).toEqual({ kind: 'other-codebase', pool: 'web', codebase: 'project' })
    await slung(world, first.id)
    expect(await why(first.id)).toEqual({ kind: 'hooked', agent: 'alder' })
    await slung(world, second.id)
    const fourth = await world.addItem('four')
    expect(await why(fourth.id)).toEqual({ kind: 'pool-full', pool: 'workers', max: 2 })
    expect(await why(fourth.id, 'more')).toEqual({ kind: 'fleet-full', max: 2 })
    await expect(sling(world.fleet, { item: 99, by: 'cli' })).rejects.toMatchObject({ code: 'not-found' })
    await expect(sling(world.fleet, { item: fourth.id, by: 'cli', pool: 'nope' })).rejects.toMatchObject({
      remedy: expect.stringContaining('workers, web, more'),
    })
    await world.context.store.fleetControl.set('this-host', { state: 'down', why: '', since: 1 })
    expect(await why(fourth.id)).toEqual({ kind: 'fleet-down' })
    await assertHooksAgree(world)
  })

  test('of many that want the same items at once, each item gets one agent, and no limit is passed', async () => {
    const names = Array.from({ length: 12 }, (_, n) => `agent-${String.fromCharCode(97 + n)}`)
    await using world = await makeFleetWorld({ pools: [{ max: 6, names }] })
    const items = []
    for (let n = 0; n < 8; n += 1) items.push(await world.addItem(`item ${n}`))
    const results = await Promise.allSettled(
      [...items, ...items].map(({ id }) => sling(world.fleet, { item: id, by: 'cli' })),
    )
    const started = results.flatMap((one) =>
      one.status === 'fulfilled' && one.value.outcome === 'started' ? [one.value] : [],
    )
    expect(started).toHaveLength(6)
    expect(new Set(started.map(({ item }) => item.id)).size).toBe(6)
    expect(new Set(started.map(({ agent }) => agent.name)).size).toBe(6)
    for (const { agent } of started) expect(names).toContain(agent.name)
    const failures = results.flatMap((one) => (one.status === 'rejected' ? [one.reason.code] : []))
    expect(failures.filter((code) => code !== 'busy')).toEqual([])
    await assertHooksAgree(world)
  })

  test('the live worktree of an agent is not removed, not even with --force', async () => {
    await using world = await makeFleetWorld({})
    const item = await world.addItem('Fix login')
    const { agent, environment } = await slung(world, item.id)
    for (const trigger of ['command', 'closed', 'merged', 'stale', 'room', 'fleet'] as const) {
      for (const force of [false, true]) {
        const outcome = await world.provider.destroy(environment, { trigger, force, askedBy: `item:${item.id}` })
        expect(outcome.outcome).toBe('refused')
        const facts = outcome.outcome === 'refused' ? outcome.reasons.map(({ fact }) => fact?.kind) : []
        expect(facts).toContain('agent')
      }
    }
    // Stopped while it was starting, its row says that it has no session.
    await world.context.store.fleetAgents.move(agent.id, 'working', 'stopped', { session: undefined })
    const outcome = await world.provider.destroy(environment, { trigger: 'command', force: true })
    const facts = outcome.outcome === 'refused' ? outcome.reasons.map(({ fact }) => fact) : []
    expect(facts).toContainEqual({ kind: 'agent', name: agent.name })
    expect(liveness(agent.session?.root ?? { pid: 0, startTime: '' })).toBe('alive')
    expect(existsSync(environment.path)).toBe(true)
  })
})
