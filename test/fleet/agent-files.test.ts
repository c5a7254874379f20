import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import type { SessionKind } from '../../src/domain/fleet/agent.ts'
import { fleetDown } from '../../src/fleet/down.ts'
import { agentDirectory, logFile } from '../../src/fleet/sessions/paths.ts'
import { sling } from '../../src/fleet/sling/sling.ts'
import { peekAt } from '../../src/fleet/peek-and-nudge.ts'
import { fleetStatus } from '../../src/fleet/status.ts'
import { fleetUp } from '../../src/fleet/up.ts'
import { assertHooksAgree, makeFleetWorld } from '../helpers/fleet.ts'

const by = 'cli'
const files = ['started', 'ended', 'environment', 'input', 'output', 'root']

const putDirectory = (path: string): unknown => mkdirSync(join(path, 'x'), { recursive: true })
const putFifo = (path: string): unknown => execFileSync('mkfifo', [path])

test.each([
  ['process', 'a directory', putDirectory],
  ['tmux', 'a FIFO', putFifo],
] as const)(
  'what an agent puts in the place of its files stops neither the fleet nor its own next life (%s, %s)',
  async (kind: SessionKind, _what, put) => {
    await using world = await makeFleetWorld({ kind })
    const [first, second] = [await world.addItem('Fix login'), await world.addItem('Write docs')]
    expect(await sling(world.fleet, { item: first.id, by })).toMatchObject({ outcome: 'started' })
    const directory = agentDirectory(world.context.home, 'alder')
    for (const name of files) {
      rmSync(join(directory, name), { force: true })
      put(join(directory, name))
    }
    expect(await sling(world.fleet, { item: second.id, by })).toMatchObject({ outcome: 'started' })
    expect((await fleetStatus(world.fleet)).agents.map(({ agent }) => agent.name)).toEqual(['alder', 'beech'])
    expect(await fleetDown(world.fleet, { by, graceMs: 0 })).toMatchObject({ problems: [] })
    for (const name of files) {
      rmSync(join(directory, name), { recursive: true, force: true })
      put(join(directory, name))
    }
    const up = await fleetUp(world.fleet, { by })
    expect(up).toMatchObject({ problems: [], started: [{ name: 'alder' }, { name: 'beech' }] })
    await assertHooksAgree(world)
  },
)

test('only what is a name is looked for among the logs', async () => {
  await using world = await makeFleetWorld()
  const { home } = world.context
  mkdirSync(dirname(logFile(home, 'alder')), { recursive: true })
  writeFileSync(logFile(home, 'alder'), 'of an earlier agent\n')
  writeFileSync(join(home, 'server.log'), 'not of an agent\n')
  expect(await peekAt(world.fleet, 'alder', 5)).toBe('of an earlier agent')
  for (const name of ['../../server', '../logs/alder', '.', '', 'ALDER']) {
    await expect(peekAt(world.fleet, name, 5)).rejects.toMatchObject({ code: 'not-found' })
  }
})

test('a log that is no file is named, with what to do', async () => {
  await using world = await makeFleetWorld()
  const item = await world.addItem('Fix login')
  const log = logFile(world.context.home, 'alder')
  mkdirSync(dirname(log), { recursive: true })
  execFileSync('mkfifo', [log])
  const problem = { code: 'unusable-file', remedy: expect.stringContaining(`remove ${log}`) as string }
  await expect(sling(world.fleet, { item: item.id, by })).rejects.toMatchObject(problem)
  rmSync(log)
  mkdirSync(log)
  await expect(sling(world.fleet, { item: item.id, by })).rejects.toMatchObject(problem)
  await assertHooksAgree(world)
  rmSync(log, { recursive: true })
  expect(await sling(world.fleet, { item: item.id, by })).toMatchObject({ outcome: 'started' })
})
