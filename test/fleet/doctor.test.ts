import { mkdirSync, renameSync } from 'node:fs'
import { expect, test } from 'vitest'
import { agentWords, examineFleet } from '../../src/cli/doctor/fleet.ts'
import type { Finding } from '../../src/cli/doctor/finding.ts'
import { asProgram } from '../../src/commands/views/view.ts'
import { describeRemedy } from '../../src/commands/views/remedy.ts'
import { endSession } from '../../src/fleet/end-session.ts'
import { parkByHand } from '../../src/fleet/items/close.ts'
import { rows } from '../../src/fleet/patrol/rows/registry.ts'
import { agentDirectory } from '../../src/fleet/sessions/paths.ts'
import { anAgent, aRun } from '../helpers/fleet-values.ts'
import { type FleetWorld, workplaceOf } from '../helpers/fleet.ts'
import { atWork, crash, MINUTE, patrolled } from '../helpers/patrol.ts'

const examine = (world: FleetWorld): Promise<readonly Finding[]> => examineFleet(workplaceOf(world))

const inWords = (findings: readonly Finding[]): string[] =>
  findings.map(
    ({ state, detail, remedy = '' }) =>
      `${state}: ${detail}${remedy === '' ? '' : ` → ${describeRemedy(remedy, asProgram)}`}`,
  )

test('doctor has words for every row of the patrol', () => {
  // Of one agent, except that it is well again; the others are asked for one by one.
  const ofAgents = rows.flatMap((row) => ('applies' in row && row.name !== 'revived' ? [row.name] : []))
  expect(Object.keys(agentWords).toSorted()).toEqual(ofAgents.toSorted())
  const ofFleet = rows.flatMap((row) => ('applies' in row ? [] : [row.name]))
  expect(ofFleet).toEqual(['unfinished-formula', 'leftover-files', 'stray-sessions', 'mass-death', 'hooked-by-nobody'])
})

test('doctor names what the patrol would repair, and changes nothing', async () => {
  await using world = await patrolled()
  const { store, host, home } = world.context
  expect(await examine(world)).toEqual([])
  // What an agent asks is no fault.
  await parkByHand(world.fleet, (await world.addItem('Which API?')).id, { note: 'v1 or v2?', by: 'cli' })
  const [alder, beech, cedar] = [await atWork(world), await atWork(world), await atWork(world)]
  expect(inWords(await examine(world))).toEqual(['ok: 3 agents, as recorded'])

  await crash(world, alder.agent)
  renameSync(beech.environment.path, `${world.box.root}/unmounted`)
  await store.environments.transition(beech.environment.id, 'active', 'missing')
  await using cleanup = new AsyncDisposableStack()
  cleanup.defer(async () => void (await endSession(world.fleet, cedar.agent, { graceMs: 0 })))
  await store.fleetAgents.move(cedar.agent.id, 'working', 'gone', { endedAt: world.clock() })
  const holder = { pid: 999_999, startTime: 'long ago' }
  const codebaseId = world.codebase.id
  await store.fleetAgents.insert(anAgent('elm', { host, codebaseId, holder }))
  await store.fleetAgents.insert(anAgent('fir', { host, codebaseId, state: 'stuck', lastSignAt: world.clock() }))
  await store.formulaRuns.insert(aRun('run', 'agent-fir', { itemId: beech.item, holder: { host, process: holder } }))
  mkdirSync(agentDirectory(home, 'ghost'), { recursive: true })
  world.pass(6 * MINUTE)
  await store.fleetControl.set(host, { state: 'paused', why: '3 agents died within 30 s', since: world.clock() })
  const state = async () => ({
    agents: await store.fleetAgents.live({ host }),
    items: await store.items.list({}),
    notes: await store.patrolNotes.ofHost(host),
  })
  const before = await state()

  const found = inWords(await examine(world))
  const patrolNow = 'the server repairs it in its next round; without one, run `coppice fleet patrol`'
  expect(found).toEqual(
    expect.arrayContaining([
      `problem: alder has died at work on item ${alder.item} → ${patrolNow}`,
      `problem: the worktree of beech (item ${beech.item}) is missing: ${beech.environment.path} → mount its disk if it isn't mounted; \`coppice fleet patrol\` parks the item until then`,
      `problem: a session of cedar is running, but that agent is gone → ${patrolNow}`,
      `problem: item ${cedar.item} is hooked, but no agent has it → ${patrolNow}`,
      `problem: elm was being started when that process died → ${patrolNow}`,
      `problem: fir died while it was finishing item ${beech.item} (push) → ${patrolNow}`,
      `problem: files of ghost are left from a start that was interrupted → ${patrolNow}`,
      'problem: no sign of life from fir for a while → see what it does: coppice peek fir',
      'problem: the fleet is paused: 3 agents died within 30 s → continue: coppice fleet up',
    ]),
  )
  expect(found.filter((one) => !one.startsWith('problem: '))).toEqual([])
  expect(await state()).toEqual(before)
})

test('what the patrol confirms by a second look, doctor does too: a disk that is back a moment later is no finding', async () => {
  await using world = await patrolled()
  const { environment } = await atWork(world)
  const away = `${environment.path}.away`
  const missing = `the worktree of alder (item 1) is missing: ${environment.path}`
  renameSync(environment.path, away)
  expect((await examine(world)).map(({ detail }) => detail)).toEqual([missing])
  let looks = 0
  const { sessions } = world.fleet
  const all: typeof sessions.all = () => {
    looks += 1
    if (looks === 2) renameSync(away, environment.path)
    return sessions.all()
  }
  const fleet = { ...world.fleet, sessions: { ...sessions, all } }
  expect(inWords(await examine({ ...world, fleet }))).toEqual(['ok: 1 agent, as recorded'])
})
