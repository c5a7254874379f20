import { renameSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { asProgram } from '../../src/commands/views/view.ts'
import { createLandingSchedule } from '../../src/fleet/landing/schedule.ts'
import { fleetStatus } from '../../src/fleet/status.ts'
import { trustCodebase } from '../../src/isolation/codebases/remove.ts'
import type { Call } from '../../src/commands/command.ts'
import { land as landCommand } from '../../src/commands/fleet/land.ts'
import { describeNeed, needRemedies } from '../../src/commands/views/agents.ts'
import type { QueueOutcome } from '../../src/fleet/landing/queue.ts'
import { type FleetWorld, workplaceOf } from '../helpers/fleet.ts'
import { landingWorld, branch, queue, landing, latest } from '../helpers/landing.ts'

const view = { ...asProgram, now: 0 }

describe("the server's landing schedule", () => {
  test('works off what is queued, and runs nothing while nothing is', async () => {
    await using world = await landingWorld()
    const { context: isolation } = world
    let loaded = 0
    const timers: (() => void)[] = []
    let worked = Promise.withResolvers<QueueOutcome>()
    const create = () =>
      createLandingSchedule({
        fleet: async () => {
          loaded += 1
          return world.fleet
        },
        isolation,
        onWorked: (_, outcome) => worked.resolve(outcome),
        setTimer: (callback) => {
          timers.push(callback)
          return () => undefined
        },
      })
    const idle = create()
    idle.start()
    await idle.stop()
    expect([loaded, timers]).toEqual([0, []])
    const again = create()
    branch(world, 'x', ['a', '1\n'])
    const queued = await queue(world, 'x')
    again.wake()
    expect(await worked.promise).toEqual({ outcome: 'done', left: false })
    expect(await landing(world, queued)).toMatchObject({ state: 'landed' })
    // One that is blocked is looked at again after a while.
    branch(world, 'y', ['b', '1\n'])
    await queue(world, 'y')
    renameSync(world.box.path('origin.git'), world.box.path('away.git'))
    worked = Promise.withResolvers()
    timers.length = 0
    again.wake()
    expect(await worked.promise).toMatchObject({ outcome: 'blocked', why: { kind: 'offline' } })
    renameSync(world.box.path('away.git'), world.box.path('origin.git'))
    worked = Promise.withResolvers()
    expect(timers.length).toBeGreaterThan(0)
    timers.at(-1)?.()
    expect(await worked.promise).toEqual({ outcome: 'done', left: false })
    await again.stop()
  })
})

describe('coppice land', () => {
  const call = async (world: FleetWorld, words: readonly string[], values: Call['values'] = {}) => {
    const workplace = workplaceOf(world)
    const given: Call = {
      words,
      values,
      codebase: undefined,
      cwd: world.repo.path,
      signal: new AbortController().signal,
      open: async () => workplace,
      notice: () => undefined,
    }
    const { text, json, exitCode } = await landCommand.execute(given)
    return { text: text(view), json: json(view), exitCode }
  }

  test('queues, says what is missing, waits, and works off the queue where no server does', async () => {
    await using world = await landingWorld({}, { context: { approve: undefined } })
    const sha = branch(world, 'x', ['a', '1\n'])
    const { text, exitCode } = await call(world, ['x'])
    expect(exitCode).toBe(0)
    expect(text).toContain('Queued: x as landing 1\n')
    expect(text).toMatch(/gates need your approval: .*\n.*coppice codebase trust project/)
    expect(text).toContain('No server is running. To land it now: coppice land --run')
    expect(await call(world, [], { run: true })).toMatchObject({
      exitCode: 3,
      text: expect.stringContaining('approval'),
    })
    const [need] = (await fleetStatus(world.fleet)).needsYou
    expect(need && [describeNeed(need), needRemedies(need)[0]]).toEqual([
      expect.stringContaining('nothing can land in project: its gates need your approval'),
      [{ of: 'coppice', command: 'codebase trust project' }],
    ])
    await trustCodebase(world.context, world.codebase)
    const waited = await call(world, ['x'], { wait: true })
    const { landedSha } = await latest(world)
    expect(waited).toMatchObject({ exitCode: 0, text: `Landed: x as ${landedSha?.slice(0, 7)}` })
    expect(waited.json).toMatchObject({ id: 1, codebase: 'project', item: null, branch: 'x', sha, state: 'landed' })
    branch(world, 'y', ['red-y', ''])
    expect(await call(world, ['y'], { wait: true })).toMatchObject({
      exitCode: 1,
      text: expect.stringMatching(/^Refused: y: /),
    })
    await expect(call(world, ['7'])).rejects.toThrow('unknown item 7')
    expect(await call(world, [], { run: true })).toMatchObject({ exitCode: 0, text: 'Nothing is queued.' })
    expect(await call(world, ['main'])).toMatchObject({
      exitCode: 3,
      text: "Can't land it: main is the base branch itself.",
    })
  })
})
