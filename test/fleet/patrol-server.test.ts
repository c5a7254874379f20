import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { done } from '../../src/fleet/formulas/done.ts'
import { createFleetSchedule } from '../../src/fleet/schedule.ts'
import { tmuxSocket } from '../../src/fleet/sessions/tmux-socket.ts'
import { liveness } from '../../src/process/identity.ts'
import { deathsFile } from '../../src/process/tmux.ts'
import type { FleetChildOrder } from '../crash/fleet-child.ts'
import { built } from '../helpers/built.ts'
import { makeCliWorld } from '../helpers/cli.ts'
import { assertHooksAgree } from '../helpers/fleet.ts'
import { agentNow, atWork, crash, killed, patrolled, programOf, rootOf } from '../helpers/patrol.ts'
import { runnableKinds, testInTmux } from '../helpers/tmux.ts'

const script = resolve(import.meta.dirname, '../helpers/fleet-worker.sh')

describe('a server', () => {
  test.each(runnableKinds)('notices at once that a session has died, long before its next round (%s)', async (kind) => {
    await using world = await patrolled({ kind, settings: { patrolSeconds: 3_600 } })
    const work = await atWork(world)
    const { promise: first, resolve: onRound } = Promise.withResolvers<unknown>()
    const schedule = createFleetSchedule({ fleet: async () => world.fleet, isolation: world.context, onRound })
    schedule.start()
    await first
    try {
      // Its program and the shell around it: nobody is left to say anything.
      const roots = [programOf(world, work.agent), rootOf(work.agent)]
      await killed(...roots)
      await expect.poll(() => agentNow(world, work)).toMatchObject({ state: 'working', restarts: 1 })
      const again = await agentNow(world, work)
      expect(again).toMatchObject({ environmentId: work.environment.id, itemId: work.item })
      expect(liveness(rootOf(again))).toBe('alive')
    } finally {
      await schedule.stop()
    }
    await assertHooksAgree(world)
  })

  testInTmux('is told by tmux, too', async () => {
    await using world = await patrolled({ kind: 'tmux' })
    const { agent } = await atWork(world)
    const report = deathsFile(tmuxSocket(world.context.home))
    expect(existsSync(report)).toBe(false)
    await crash(world, agent)
    await expect.poll(() => existsSync(report)).toBe(true)
  })
})

/** Another process with the same fleet does one round. */
const patrolling = async (root: string): Promise<number | null> => {
  const order: FleetChildOrder = {
    root,
    operation: 'patrol',
    killAt: '',
    kind: 'process',
    isolationProvider: 'worktree',
    script,
    forge: undefined,
  }
  const child = spawn(process.execPath, [built('test/crash/fleet-child.ts'), JSON.stringify(order)], {
    env: { ...process.env, COPPICE_TEST_ROOT: resolve(import.meta.dirname, '../..') },
    stdio: 'inherit',
  })
  return new Promise((ended) => child.once('exit', ended))
}

test('what a dead agent was finishing is completed once, though two processes find it at the same time', async () => {
  await using world = await patrolled({ remote: true })
  const work = await atWork(world)
  writeFileSync(join(work.environment.path, 'login.txt'), 'fixed\n')
  world.box.raw(work.environment.path, 'add', 'login.txt')
  world.box.raw(work.environment.path, 'commit', '-qm', 'Fix the login')
  const failpoint = async (name: string): Promise<void> => {
    if (name === 'formula.push.done') throw new Error('died')
  }
  const dying = { ...world.fleet, isolation: { ...world.context, failpoint } }
  await expect(done(dying, { agent: 'alder', spawn: work.agent.spawn, mode: 'push' })).rejects.toThrow('died')
  await crash(world, work.agent)
  expect(await agentNow(world, work)).toMatchObject({ state: 'finishing' })
  expect(await Promise.all([patrolling(world.box.root), patrolling(world.box.root)])).toEqual([0, 0])
  expect(await world.item(work.item)).toMatchObject({ state: 'closed' })
  expect(await agentNow(world, work)).toMatchObject({ state: 'gone', restarts: 0 })
  const changes = (await world.context.store.items.history(work.item)).map(({ change }) => change.kind)
  expect(changes).toEqual(['created', 'hooked', 'unhooked'])
  expect(existsSync(work.environment.path)).toBe(false)
  expect(await world.context.store.formulaRuns.running()).toEqual([])
  await assertHooksAgree(world)
})

test('`coppice fleet patrol` says what it found and did, for people and for programs', async () => {
  const pool = `{ command: 'sh ${script}', names: [alder] }`
  const config = `worktrees: { spares: 0 }\nfleet: { session: process, pools: { workers: ${pool} } }\n`
  using world = makeCliWorld({ config })
  const repo = world.box.repo('app')
  expect(await world.run(repo.path, 'fleet', 'patrol')).toMatchObject({ code: 0, out: 'No problems found.\n' })
  await world.json(repo.path, 0, 'item', 'add', 'Fix login')
  await world.json(repo.path, 0, 'sling', '1')
  type Status = { readonly agents: readonly { readonly session: { readonly pid: number } }[] }
  const { agents } = await world.json<Status>(repo.path, 0, 'fleet', 'status')
  process.kill(agents[0]?.session.pid ?? 0, 'SIGKILL')
  const rounds: string[] = []
  await expect
    .poll(async () => {
      rounds.push((await world.run(repo.path, 'fleet', 'patrol')).out)
      return rounds.join('')
    })
    .toContain('alder (item 1) was started again in its worktree (restart 1).')
  await world.run(repo.path, 'fleet', 'down', '--grace', '0')
})
