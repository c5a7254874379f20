import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import type { FleetAgent } from '../../src/domain/fleet/agent.ts'
import type { Landing } from '../../src/domain/fleet/landing.ts'
import type { Sha } from '../../src/domain/names.ts'
import { done } from '../../src/fleet/formulas/done.ts'
import { land } from '../../src/fleet/landing/land.ts'
import { type QueueOutcome, workQueue } from '../../src/fleet/landing/queue.ts'
import { sling } from '../../src/fleet/sling/sling.ts'
import type { NewItem } from '../../src/store/fleet/store.ts'
import { scratchDirectory } from '../../src/isolation/paths.ts'
import { type FleetWorld, type FleetWorldOptions, makeFleetWorld } from './fleet.ts'

type Config = Readonly<Record<string, unknown>>

/** Each run of the gate leaves a line in a file outside. `red-*` in the tree fails it. */
const gate = 'echo run >> "$COUNT"; for file in red-*; do if [ -e "$file" ]; then echo "$file is red"; exit 1; fi; done'

export const landingWorld = (config: Config = {}, options: FleetWorldOptions = {}): Promise<FleetWorld> =>
  makeFleetWorld({
    remote: true,
    ...options,
    context: { approve: async () => true, ...options.context },
    prepare: (repo, box) => {
      const gates = [gate.replace('$COUNT', box.path('gate-runs'))]
      repo.commit('.coppice/config.yaml', JSON.stringify({ landing: { gates, ...config } }))
      repo.commit('shared.txt', 'one\ntwo\nthree\n')
      options.prepare?.(repo, box)
    },
  })

export const runs = ({ box }: FleetWorld): number =>
  existsSync(box.path('gate-runs')) ? readFileSync(box.path('gate-runs'), 'utf8').split('\n').length - 1 : 0

/** A branch with a commit for each file, made by plain git; the checkout is on main again. */
export const branch = ({ repo }: FleetWorld, name: string, ...files: readonly (readonly [string, string])[]): Sha => {
  repo.git('checkout', '-q', '-b', name, 'main')
  for (const [file, content] of files) repo.commit(file, content, `${name}: ${file}`)
  const tip = repo.sha()
  repo.git('checkout', '-q', 'main')
  return tip
}

export const queue = async (world: FleetWorld, name: string): Promise<Landing> => {
  const outcome = await land(world.fleet, world.codebase, { what: { branch: name }, by: 'cli' })
  if (outcome.outcome !== 'queued') throw new Error(`not queued: ${JSON.stringify(outcome)}`)
  return outcome.landing
}

export const work = (world: FleetWorld): Promise<QueueOutcome> => workQueue(world.fleet, world.codebase)

export const landing = async ({ context }: FleetWorld, { id }: Landing): Promise<Landing> =>
  (await context.store.landings.get(id)) ?? expect.unreachable('the landing is gone')

export const origin = ({ box }: FleetWorld, ...args: string[]): string => box.raw(box.path('origin.git'), ...args)

/** Nothing of a landing is left, and the checkout is as it was. */
export const assertClean = async (world: FleetWorld): Promise<void> => {
  const directory = scratchDirectory(world.context.worktreesBase)
  expect(existsSync(directory) ? readdirSync(directory) : []).toEqual([])
  expect(world.repo.git('status', '--porcelain')).toBe('')
  expect(world.repo.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main')
  const { holder, push } = await world.context.store.landings.queue(world.codebase.id)
  expect({ holder, push }).toEqual({ holder: undefined, push: undefined })
}

export type AtWork = { readonly agent: FleetAgent; readonly environment: IsolatedEnvironment; readonly item: number }

export const atWork = async (
  world: FleetWorld,
  file: string,
  content = '',
  change: Partial<NewItem> = {},
): Promise<AtWork> => {
  const { id } = await world.addItem(`Write ${file}`, change)
  const slung = await sling(world.fleet, { item: id, by: 'cli' })
  if (slung.outcome !== 'started') throw new Error(`not started: ${JSON.stringify(slung)}`)
  commitIn(world, slung.environment, file, content)
  return { agent: slung.agent, environment: slung.environment, item: id }
}

export const commitIn = ({ box }: FleetWorld, { path }: IsolatedEnvironment, file: string, content = ''): void => {
  writeFileSync(join(path, file), content)
  box.raw(path, 'add', '-A')
  box.raw(path, 'commit', '-qm', `Write ${file}`)
}

export const finish = async (world: FleetWorld, { name, spawn }: FleetAgent, mode = 'land'): Promise<void> => {
  expect(await done(world.fleet, { agent: name, spawn, mode })).toMatchObject({ outcome: 'done' })
}

export const latest = async ({ context }: FleetWorld): Promise<Landing> =>
  (await context.store.landings.list({ limit: 1 }))[0] ?? expect.unreachable('nothing is queued')

export const kinds = ({ told }: FleetWorld): string[] => told.map(({ kind }) => kind)
