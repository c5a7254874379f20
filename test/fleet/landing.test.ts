import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { primerText } from '../../src/commands/views/primer.ts'
import { asProgram } from '../../src/commands/views/view.ts'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import type { FleetAgent } from '../../src/domain/fleet/agent.ts'
import type { Landing } from '../../src/domain/fleet/landing.ts'
import type { Sha } from '../../src/domain/names.ts'
import { chooseFormula } from '../../src/fleet/formulas/choose.ts'
import { done } from '../../src/fleet/formulas/done.ts'
import { closeItem } from '../../src/fleet/items/close.ts'
import { land } from '../../src/fleet/landing/land.ts'
import { createLandingSchedule } from '../../src/fleet/landing/schedule.ts'
import { fleetStatus } from '../../src/fleet/status.ts'
import { trustCodebase } from '../../src/isolation/codebases/remove.ts'
import { knownPlatforms } from '../../src/platforms/capabilities.ts'
import type { Call, Workplace } from '../../src/commands/command.ts'
import { land as landCommand } from '../../src/commands/fleet/land.ts'
import { describeNeed, needRemedies } from '../../src/commands/views/agents.ts'
import { watchPullRequests } from '../../src/fleet/landing/pull-requests.ts'
import { type QueueOutcome, workQueue } from '../../src/fleet/landing/queue.ts'
import { primeAgent } from '../../src/fleet/prime.ts'
import { sling } from '../../src/fleet/sling/sling.ts'
import { clearScratchTrees } from '../../src/isolation/codebases/landing/scratch-tree.ts'
import { scratchDirectory } from '../../src/isolation/paths.ts'
import { identityWord } from '../../src/domain/process-identity.ts'
import { createGithubForge } from '../../src/platforms/github/forge/forge.ts'
import { liveness } from '../../src/process/identity.ts'
import { killTree } from '../../src/process/kill.ts'
import { scratchMark } from '../../src/process/run-mark.ts'
import { spawnDetached } from '../../src/process/spawn.ts'
import { createLogger } from '../../src/process/log.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'
import { type GithubDouble, startDouble } from '../platforms/github-double.ts'
import { processesAt } from '../helpers/invariants.ts'
import { assertHooksAgree, type FleetWorld, type FleetWorldOptions, makeFleetWorld } from '../helpers/fleet.ts'

const view = { ...asProgram, now: 0 }

type Config = Readonly<Record<string, unknown>>

/** Each run of the gate leaves a line in a file outside. `red-*` in the tree fails it. */
const gate = 'echo run >> "$COUNT"; for file in red-*; do if [ -e "$file" ]; then echo "$file is red"; exit 1; fi; done'

const landingWorld = (config: Config = {}, options: FleetWorldOptions = {}): Promise<FleetWorld> =>
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

const runs = ({ box }: FleetWorld): number =>
  existsSync(box.path('gate-runs')) ? readFileSync(box.path('gate-runs'), 'utf8').split('\n').length - 1 : 0

/** A branch with a commit for each file, made by plain git; the checkout is on main again. */
const branch = ({ repo }: FleetWorld, name: string, ...files: readonly (readonly [string, string])[]): Sha => {
  repo.git('checkout', '-q', '-b', name, 'main')
  for (const [file, content] of files) repo.commit(file, content, `${name}: ${file}`)
  const tip = repo.sha()
  repo.git('checkout', '-q', 'main')
  return tip
}

const queue = async (world: FleetWorld, name: string): Promise<Landing> => {
  const outcome = await land(world.fleet, world.codebase, { what: { branch: name }, by: 'cli' })
  if (outcome.outcome !== 'queued') throw new Error(`not queued: ${JSON.stringify(outcome)}`)
  return outcome.landing
}

const work = (world: FleetWorld): Promise<QueueOutcome> => workQueue(world.fleet, world.codebase)

const landing = async ({ context }: FleetWorld, { id }: Landing): Promise<Landing> =>
  (await context.store.landings.get(id)) ?? expect.unreachable('the landing is gone')

const origin = ({ box }: FleetWorld, ...args: string[]): string => box.raw(box.path('origin.git'), ...args)

/** Nothing of a landing is left, and the checkout is as it was. */
const assertClean = async (world: FleetWorld): Promise<void> => {
  const directory = scratchDirectory(world.context.worktreesBase)
  expect(existsSync(directory) ? readdirSync(directory) : []).toEqual([])
  expect(world.repo.git('status', '--porcelain')).toBe('')
  expect(world.repo.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main')
  const { holder, push } = await world.context.store.landings.queue(world.codebase.id)
  expect({ holder, push }).toEqual({ holder: undefined, push: undefined })
}

describe('a branch lands', () => {
  test.each([
    ['squash', ['x\n\n* x: a\n\n* x: b', 'first parent only']],
    ['merge', ["Merge branch 'x'", 'two parents']],
    ['rebase', ['x: b', 'first parent only']],
  ] as const)('by %s, without touching the checkout', async (strategy, [message, parents]) => {
    await using world = await landingWorld({ strategy })
    const tip = branch(world, 'x', ['a', '1\n'], ['b', '2\n'])
    const base = world.repo.commit('later', 'on main\n')
    world.repo.git('push', '-q', 'origin', 'main')
    const local = world.repo.sha('main')
    const queued = await queue(world, 'x')
    expect(await work(world)).toEqual({ outcome: 'done', left: false })
    const landed = await landing(world, queued)
    expect(landed).toMatchObject({ state: 'landed', sha: tip, attempts: 1, gate: { exitCode: 0 } })
    expect(origin(world, 'rev-parse', 'main')).toBe(landed.landedSha)
    expect(origin(world, 'log', '-1', '--format=%B', 'main').trim()).toContain(message.replace(/^x\n/, 'Land x\n'))
    expect(origin(world, 'rev-list', '--parents', '-1', 'main').split(' ')).toHaveLength(
      parents === 'two parents' ? 3 : 2,
    )
    expect(origin(world, 'ls-tree', '--name-only', 'main').split('\n')).toEqual(
      expect.arrayContaining(['a', 'b', 'later']),
    )
    expect(origin(world, 'merge-base', 'main', base)).toBe(base)
    expect(world.repo.sha('main')).toBe(local)
    expect(runs(world)).toBe(1)
    expect(readFileSync(landed.gate?.log ?? '', 'utf8')).toContain('[exit code 0]')
    await assertClean(world)
  })

  test('as the commit that was queued, not what was committed since', async () => {
    await using world = await landingWorld()
    branch(world, 'x', ['a', '1\n'])
    const queued = await queue(world, 'x')
    world.repo.git('checkout', '-q', 'x')
    world.repo.commit('unseen', 'x\n')
    world.repo.git('checkout', '-q', 'main')
    await work(world)
    expect(await landing(world, queued)).toMatchObject({ state: 'landed' })
    expect(origin(world, 'ls-tree', '--name-only', 'main')).not.toContain('unseen')
    const again = await queue(world, 'x')
    await work(world)
    expect(await landing(world, again)).toMatchObject({ state: 'landed' })
    expect(origin(world, 'ls-tree', '--name-only', 'main')).toContain('unseen')
  })

  test('and starts over when the remote moves while it is tested', async () => {
    await using world = await landingWorld(
      {},
      {
        prepare: (repo, box) => {
          // The first run pushes something else.
          const push = `[ -e ${box.path('moved')} ] || { touch ${box.path('moved')}; git -C ${box.path('other')} push -q origin HEAD:main; }`
          repo.commit('.coppice/config.yaml', JSON.stringify({ landing: { gates: [push] } }))
        },
      },
    )
    world.box.raw(world.box.root, 'clone', '-q', world.box.path('origin.git'), world.box.path('other'))
    world.box.raw(world.box.path('other'), 'commit', '-q', '--allow-empty', '-m', 'theirs')
    branch(world, 'x', ['a', '1\n'])
    const queued = await queue(world, 'x')
    expect(await work(world)).toEqual({ outcome: 'done', left: false })
    expect(await landing(world, queued)).toMatchObject({ state: 'landed', attempts: 2 })
    expect(origin(world, 'log', '--format=%s', '-2', 'main')).toBe('x: a\ntheirs')
    await assertClean(world)
  })

  test('without gates, and with nothing to do if the base has it already', async () => {
    await using world = await landingWorld({ gates: [] })
    const tip = branch(world, 'x', ['a', '1\n'])
    const queued = await queue(world, 'x')
    world.repo.git('push', '-q', 'origin', `${tip}:main`)
    await work(world)
    expect(await landing(world, queued)).toMatchObject({ state: 'landed', landedSha: tip, gate: undefined })
  })
})

describe('a push whose process died', () => {
  test.each([
    ['before it', 'landing.push-intent', 2],
    ['before anybody confirmed it', 'landing.pushed', 1],
  ])('%s: the remote says whether it has to be pushed again', async (_, at, attempts) => {
    await using world = await landingWorld()
    branch(world, 'x', ['a', '1\n'])
    const queued = await queue(world, 'x')
    const failpoint = async (name: string): Promise<void> => {
      if (name === at) throw new Error('died')
    }
    const dying = { ...world.fleet, isolation: { ...world.context, failpoint } }
    expect(await workQueue(dying, world.codebase)).toMatchObject({ outcome: 'blocked', why: { kind: 'failed' } })
    const { push } = await world.context.store.landings.queue(world.codebase.id)
    const there = origin(world, 'rev-parse', 'main')
    expect([push === undefined, there === push?.to]).toEqual([false, attempts === 1])
    // Somebody pushes more on top of it.
    const more = world.box.raw(world.repo.path, 'commit-tree', '-p', there, '-m', 'more', `${there}^{tree}`)
    world.repo.git('push', '-q', 'origin', `${more}:main`)
    expect(await work(world)).toEqual({ outcome: 'done', left: false })
    expect(await landing(world, queued)).toMatchObject({ state: 'landed', attempts })
    expect(
      origin(world, 'log', '--format=%s', 'main')
        .split('\n')
        .filter((line) => line === 'x: a'),
    ).toHaveLength(1)
    await assertClean(world)
  })

  test('is not settled while the remote can not be asked', async () => {
    await using world = await landingWorld()
    branch(world, 'x', ['a', '1\n'])
    const queued = await queue(world, 'x')
    const failpoint = async (name: string): Promise<void> => {
      if (name === 'landing.pushed') throw new Error('died')
    }
    await workQueue({ ...world.fleet, isolation: { ...world.context, failpoint } }, world.codebase)
    renameSync(world.box.path('origin.git'), world.box.path('away.git'))
    expect(await work(world)).toMatchObject({ outcome: 'blocked', why: { kind: 'offline' } })
    expect(await landing(world, queued)).toMatchObject({ state: 'testing' })
    renameSync(world.box.path('away.git'), world.box.path('origin.git'))
    await work(world)
    expect(await landing(world, queued)).toMatchObject({ state: 'landed', attempts: 1 })
  })
})

describe('a branch that can not land', () => {
  test('because of a red gate is refused with its log, and the base stays', async () => {
    await using world = await landingWorld()
    const before = origin(world, 'rev-parse', 'main')
    branch(world, 'x', ['red-x', ''])
    const queued = await queue(world, 'x')
    await work(world)
    const refused = await landing(world, queued)
    expect(refused).toMatchObject({ state: 'refused', why: { kind: 'gate-failed' }, gate: { exitCode: 1 } })
    expect(readFileSync(refused.gate?.log ?? '', 'utf8')).toContain('red-x is red')
    expect(origin(world, 'rev-parse', 'main')).toBe(before)
    await assertClean(world)
  })

  test.each(['squash', 'merge', 'rebase'])('because of a conflict (%s) is refused with its paths', async (strategy) => {
    await using world = await landingWorld({ strategy })
    branch(world, 'x', ['shared.txt', 'one\nmine\nthree\n'])
    world.repo.commit('shared.txt', 'one\ntheirs\nthree\n')
    world.repo.git('push', '-q', 'origin', 'main')
    // The repository's own driver would resolve it, and run a program.
    world.repo.git('config', 'merge.mine.driver', `touch ${world.box.path('driver-ran')}`)
    writeFileSync(join(world.repo.commonDir, 'info', 'attributes'), 'shared.txt merge=mine\n')
    const queued = await queue(world, 'x')
    await work(world)
    expect(await landing(world, queued)).toMatchObject({
      state: 'refused',
      why: { kind: 'conflict', paths: ['shared.txt'] },
    })
    expect(existsSync(world.box.path('driver-ran'))).toBe(false)
    expect(runs(world)).toBe(0)
  })

  test('is not blamed for a base that is red itself', async () => {
    await using world = await landingWorld()
    world.repo.commit('red-base', '')
    world.repo.git('push', '-q', 'origin', 'main')
    branch(world, 'x', ['a', '1\n'])
    const queued = await queue(world, 'x')
    expect(await work(world)).toMatchObject({ outcome: 'blocked', why: { kind: 'base-red', base: 'main' } })
    expect(await landing(world, queued)).toMatchObject({ state: 'queued', why: undefined })
    world.repo.git('rm', '-q', 'red-base')
    world.repo.git('commit', '-qm', 'mend')
    world.repo.git('push', '-q', 'origin', 'main')
    expect(await work(world)).toEqual({ outcome: 'done', left: false })
    expect(await landing(world, queued)).toMatchObject({ state: 'landed' })
    expect((await world.context.store.landings.blockedQueues()).length).toBe(0)
  })

  test('because a gate takes too long: everything it started is dead, and so is its tree', async () => {
    await using world = await landingWorld(
      {},
      {
        prepare: (repo, box) =>
          void repo.commit(
            '.coppice/config.yaml',
            JSON.stringify({ landing: { timeout: '1s', gates: [`touch ${box.path('began')}; (sleep 500 & wait)`] } }),
          ),
      },
    )
    branch(world, 'x', ['a', '1\n'])
    // The base is tested too: it takes as long, so that nobody is blamed.
    await queue(world, 'x')
    expect(await work(world)).toMatchObject({ outcome: 'blocked', why: { kind: 'base-red' } })
    expect(processesAt(world.box.root)).toEqual([])
    await assertClean(world)
  })
})

describe('a batch', () => {
  test('of 20 branches with 2 red ones runs the gates at most 0.6 times as often as one by one', async () => {
    await using world = await landingWorld({ batch: 8 })
    const queued: Landing[] = []
    for (let i = 0; i < 20; i += 1) {
      branch(world, `b${i}`, [i === 0 || i === 12 ? `red-${i}` : `file-${i}`, `${i}\n`])
      queued.push(await queue(world, `b${i}`))
    }
    expect(await work(world)).toEqual({ outcome: 'done', left: false })
    const states = await Promise.all(queued.map(async (one) => (await landing(world, one)).state))
    expect(states).toEqual(states.map((_, i) => (i === 0 || i === 12 ? 'refused' : 'landed')))
    expect(runs(world)).toBeLessThanOrEqual(12)
    expect(
      origin(world, 'ls-tree', '--name-only', 'main')
        .split('\n')
        .filter((file) => file.startsWith('file-')),
    ).toHaveLength(18)
    await assertClean(world)
  }, 60_000)

  test('tests a member that conflicts with an earlier one later, on the new base', async () => {
    await using world = await landingWorld({ batch: 8 })
    // The first is red, so what the second conflicts with never lands.
    branch(world, 'one', ['shared.txt', 'one\nmine\nthree\n'], ['red-one', ''])
    branch(world, 'two', ['shared.txt', 'one\ntheirs\nthree\n'])
    const [one, two] = [await queue(world, 'one'), await queue(world, 'two')]
    await work(world)
    expect(await landing(world, one)).toMatchObject({ state: 'refused', why: { kind: 'gate-failed' } })
    expect(await landing(world, two)).toMatchObject({ state: 'landed' })
  })

  test('that is red only together lands the first, and gives back the one that fails on top of it', async () => {
    await using world = await landingWorld(
      { batch: 8 },
      {
        prepare: (repo) =>
          void repo.commit(
            '.coppice/config.yaml',
            JSON.stringify({ landing: { batch: 8, gates: ['! [ -e a -a -e b ]'] } }),
          ),
      },
    )
    for (const name of ['a', 'c', 'b', 'd']) branch(world, name, [name, ''])
    const queued = [await queue(world, 'a'), await queue(world, 'c'), await queue(world, 'b'), await queue(world, 'd')]
    await work(world)
    const states = await Promise.all(queued.map(async (one) => (await landing(world, one)).state))
    expect(states).toEqual(['landed', 'landed', 'refused', 'landed'])
  })
})

test('a red gate that passes when it is run again is reported as flaky, and lands', async () => {
  await using world = await landingWorld(
    {},
    {
      prepare: (repo, box) => {
        const flaky = `[ -e ${box.path('second')} ] || { touch ${box.path('second')}; exit 1; }`
        repo.commit('.coppice/config.yaml', JSON.stringify({ landing: { retries: 1, gates: [flaky] } }))
      },
    },
  )
  branch(world, 'x', ['a', '1\n'])
  const queued = await queue(world, 'x')
  await work(world)
  expect(await landing(world, queued)).toMatchObject({ state: 'landed' })
  expect(world.told).toMatchObject([{ kind: 'flaky-gate', landing: queued.id }])
  const [event] = world.told
  expect(readFileSync(event !== undefined && 'log' in event ? event.log : '', 'utf8')).toMatch(
    /exit code 1[^]*exit code 0/,
  )
})

describe('nothing is pushed', () => {
  test('to a remote whose address was changed, until a person confirms it', async () => {
    await using world = await landingWorld()
    branch(world, 'x', ['a', '1\n'])
    const { store } = world.context
    await store.codebases.update(world.codebase.id, { remoteUrl: world.box.path('origin.git') })
    const queued = await queue(world, 'x')
    const other = world.box.bare('other.git').path
    world.repo.git('config', 'remote.origin.pushurl', other)
    expect(await work(world)).toMatchObject({ outcome: 'blocked', why: { kind: 'remote-changed', to: other } })
    expect(world.box.raw(other, 'for-each-ref')).toBe('')
    expect(runs(world)).toBe(0)
    world.repo.git('config', '--unset', 'remote.origin.pushurl')
    await work(world)
    expect(await landing(world, queued)).toMatchObject({ state: 'landed' })
  })

  test('while nobody has approved the gates; they come from base, never from the branch', async () => {
    await using world = await landingWorld({}, { context: { approve: async () => false } })
    branch(world, 'x', ['.coppice/config.yaml', JSON.stringify({ landing: { gates: [] } })])
    const queued = await queue(world, 'x')
    expect(await work(world)).toMatchObject({ outcome: 'blocked', why: { kind: 'not-approved' } })
    expect(await landing(world, queued)).toMatchObject({ state: 'queued' })
    expect(runs(world)).toBe(0)
  })

  test('without a remote: the base is moved only where nobody has it checked out', async () => {
    await using world = await landingWorld({}, { remote: false })
    branch(world, 'x', ['a', '1\n'])
    const refused = await land(world.fleet, world.codebase, { what: { branch: 'x' }, by: 'cli' })
    expect(refused).toMatchObject({ outcome: 'refused', why: { kind: 'blocked', why: { kind: 'base-checked-out' } } })
    world.repo.git('checkout', '-q', '--detach')
    const head = world.repo.sha()
    const queued = await queue(world, 'x')
    expect(await work(world)).toEqual({ outcome: 'done', left: false })
    const { landedSha } = await landing(world, queued)
    expect([world.repo.sha('main'), world.repo.sha()]).toEqual([landedSha, head])
  })

  test('for the base itself, a branch without commits, or one that nobody has', async () => {
    await using world = await landingWorld()
    world.repo.git('branch', 'empty')
    const why = async (name: string) => await land(world.fleet, world.codebase, { what: { branch: name }, by: 'cli' })
    expect(await why('main')).toMatchObject({ why: { kind: 'is-base' } })
    expect(await why('empty')).toMatchObject({ why: { kind: 'no-commits' } })
    expect(await why('gone')).toMatchObject({ why: { kind: 'no-branch' } })
    expect(await why('pr-3-review')).toMatchObject({ why: { kind: 'untrusted' } })
  })
})

test('only one process works a queue off; another takes over when it has died', async () => {
  await using world = await landingWorld()
  branch(world, 'x', ['a', '1\n'])
  const queued = await queue(world, 'x')
  const { store, host } = world.context
  const alive = { host, process: { pid: process.ppid, startTime: 'unknown' } }
  const other = { pid: 1, startTime: world.context.self.startTime.replace(/^\d+/, '1') }
  const claim = (process: typeof other) => store.landings.claimQueue(world.codebase.id, undefined, { host, process })
  const [first, second] = await Promise.all([work(world), work(world)])
  expect([first.outcome, second.outcome].toSorted()).toEqual(['busy', 'done'])
  expect(await landing(world, queued)).toMatchObject({ state: 'landed' })
  // Of another host: never judged dead.
  await store.landings.claimQueue(world.codebase.id, undefined, { ...alive, host: 'another' })
  expect(await work(world)).toMatchObject({ outcome: 'busy', holder: { host: 'another' } })
  await store.landings.claimQueue(world.codebase.id, { ...alive, host: 'another' }, undefined)
  // Its process id belongs to another process by now.
  await claim(other)
  expect(await work(world)).toEqual({ outcome: 'done', left: false })
})

test('what a killed process left of its gates is ended and deleted, and that of a living one is not', async () => {
  await using world = await landingWorld()
  const directory = scratchDirectory(world.context.worktreesBase)
  branch(world, 'x', ['a', '1\n'])
  await queue(world, 'x')
  await work(world)
  const { self } = world.context
  const make = (id: string, owner: string): void => {
    world.box.raw(world.box.root, 'init', '-q', join(directory, id))
    writeFileSync(join(directory, `${id}.owner`), owner)
  }
  make(
    'dead',
    identityWord({
      pid: self.pid,
      startTime: self.startTime.replace(/\d/, (digit) => String((Number(digit) + 1) % 10)),
    }),
  )
  make('mine', identityWord(self))
  make('unreadable', 'nobody knows')
  const left = (id: string) =>
    spawnDetached({
      command: 'sleep',
      args: ['300'],
      cwd: join(directory, id),
      env: { PATH: world.box.env['PATH'], COPPICE_RUN: scratchMark(world.context.home, id).id },
    })
  const [dead, mine] = [await left('dead'), await left('mine')]
  await clearScratchTrees(world.context)
  expect([liveness(dead), liveness(mine)]).toEqual(['dead', 'alive'])
  await killTree(mine, { graceMs: 0, clock: Date.now })
  expect(readdirSync(directory).toSorted()).toEqual(['mine', 'mine.owner', 'unreadable', 'unreadable.owner'])
})

type AtWork = { readonly agent: FleetAgent; readonly environment: IsolatedEnvironment; readonly item: number }

const atWork = async (world: FleetWorld, file: string, content = ''): Promise<AtWork> => {
  const { id } = await world.addItem(`Write ${file}`)
  const slung = await sling(world.fleet, { item: id, by: 'cli' })
  if (slung.outcome !== 'started') throw new Error(`not started: ${JSON.stringify(slung)}`)
  commitIn(world, slung.environment, file, content)
  return { agent: slung.agent, environment: slung.environment, item: id }
}

const commitIn = ({ box }: FleetWorld, { path }: IsolatedEnvironment, file: string, content = ''): void => {
  writeFileSync(join(path, file), content)
  box.raw(path, 'add', '-A')
  box.raw(path, 'commit', '-qm', `Write ${file}`)
}

const finish = async (world: FleetWorld, { name, spawn }: FleetAgent, mode = 'land'): Promise<void> => {
  expect(await done(world.fleet, { agent: name, spawn, mode })).toMatchObject({ outcome: 'done' })
}

const latest = async ({ context }: FleetWorld): Promise<Landing> =>
  (await context.store.landings.list({ limit: 1 }))[0] ?? expect.unreachable('nothing is queued')

const kinds = ({ told }: FleetWorld): string[] => told.map(({ kind }) => kind)

describe("an item's work", () => {
  test('that lands settles the item, and removes its worktree and branch', async () => {
    await using world = await landingWorld()
    const { agent, environment, item } = await atWork(world, 'a')
    await finish(world, agent)
    expect(await work(world)).toEqual({ outcome: 'done', left: false })
    expect(await world.item(item)).toMatchObject({ state: 'landed', environmentId: undefined })
    expect(existsSync(environment.path)).toBe(false)
    expect(world.repo.git('branch', '--list', environment.branch)).toBe('')
    expect(origin(world, 'log', '-1', '--format=%s', 'main')).toBe('Write a')
    expect(kinds(world)).toEqual(['started', 'queued', 'landed'])
    await assertHooksAgree(world)
    await assertClean(world)
  })

  test('that is red goes back to an agent in the same worktree with the log, twice, and is parked then', async () => {
    await using world = await landingWorld()
    const { agent, environment, item } = await atWork(world, 'red-a')
    await finish(world, agent)
    let last = agent
    for (const file of ['b', 'c']) {
      expect(await work(world)).toEqual({ outcome: 'done', left: false })
      expect(await world.item(item)).toMatchObject({ state: 'hooked', environmentId: environment.id })
      const [again = expect.unreachable('nobody was started')] = await world.context.store.fleetAgents.ofItems([item])
      expect([again.name, again.environmentId, again.spawn === last.spawn]).toEqual([agent.name, environment.id, false])
      const primer = await primeAgent(world.fleet, { agent: again.name, spawn: again.spawn })
      const { log = '' } = (await latest(world)).gate ?? {}
      expect('agent' in primer && primerText(primer, view)).toContain(`failed (log: ${log})`)
      commitIn(world, environment, file)
      await finish(world, again)
      last = again
    }
    await work(world)
    expect(await world.item(item)).toMatchObject({ state: 'parked', parked: { kind: 'gate-failed', attempts: 3 } })
    expect(existsSync(environment.path)).toBe(true)
    expect(kinds(world).filter((kind) => kind === 'sent-back' || kind === 'parked')).toEqual([
      'sent-back',
      'sent-back',
      'parked',
    ])
    await assertHooksAgree(world)
    // A person mends it, and lands it.
    world.box.raw(environment.path, 'rm', '-q', 'red-a')
    world.box.raw(environment.path, 'commit', '-qm', 'mend')
    const landed = await land(world.fleet, world.codebase, { what: { item: await world.item(item) }, by: 'cli' })
    expect(landed).toMatchObject({ outcome: 'queued' })
    await work(world)
    expect(await world.item(item)).toMatchObject({ state: 'landed' })
  })

  test('that conflicts waits for a person at once if the repository says so', async () => {
    await using world = await landingWorld({ returns: 0 })
    const { agent, item } = await atWork(world, 'shared.txt', 'mine\n')
    world.repo.commit('shared.txt', 'theirs\n')
    world.repo.git('push', '-q', 'origin', 'main')
    await finish(world, agent)
    await work(world)
    expect(await world.item(item)).toMatchObject({ state: 'parked', parked: { kind: 'conflict', attempts: 1 } })
  })

  test('that was sent back waits for room in the fleet instead of a person', async () => {
    await using world = await landingWorld()
    const { agent, item } = await atWork(world, 'red-a')
    await finish(world, agent)
    const { store, host } = world.context
    await store.fleetControl.set(host, { state: 'paused', why: 'mass death', since: 1 })
    expect(await work(world)).toEqual({ outcome: 'done', left: true })
    expect(await world.item(item)).toMatchObject({ state: 'in_review' })
    await store.fleetControl.set(host, { state: 'down', why: 'evening', since: 2 })
    expect(await work(world)).toEqual({ outcome: 'fleet-down' })
    await store.fleetControl.set(host, { state: 'up', why: 'morning', since: 3 })
    expect(await work(world)).toEqual({ outcome: 'done', left: false })
    expect(await world.item(item)).toMatchObject({ state: 'hooked' })
  })

  test('does not land while its agent is still finishing, or once the item was closed', async () => {
    await using world = await landingWorld()
    const { agent, item } = await atWork(world, 'a')
    const { context: isolation } = world
    const early: QueueOutcome[] = []
    const failpoint = async (name: string): Promise<void> => {
      if (name === 'formula.enqueue.done' || name === 'leave.session') early.push(await work(world))
    }
    await finish({ ...world, fleet: { ...world.fleet, isolation: { ...isolation, failpoint } } }, agent)
    expect(early).toEqual([1, 2].map(() => ({ outcome: 'done', left: true })))
    expect(await latest(world)).toMatchObject({ state: 'queued' })
    await closeItem(world.fleet, item, 'cli')
    expect(await latest(world)).toMatchObject({ state: 'superseded' })
    expect(await work(world)).toEqual({ outcome: 'done', left: false })
    expect(origin(world, 'ls-tree', '--name-only', 'main').split('\n')).not.toContain('a')
  })

  test('done: auto lands it where landing is configured and pull requests are not possible', async () => {
    await using world = await landingWorld()
    expect(await chooseFormula(world.fleet, world.codebase, 'auto')).toMatchObject({ name: 'land' })
    world.repo.git('rm', '-q', '.coppice/config.yaml')
    world.repo.git('commit', '-qm', 'no landing')
    world.repo.git('push', '-q', 'origin', 'main')
    expect(await chooseFormula(world.fleet, world.codebase, 'auto')).toMatchObject({ name: 'push' })
  })
})

describe('a pull request that `done` opened', () => {
  type Reviewed = AtWork & { readonly world: FleetWorld; readonly double: GithubDouble; readonly number: number }

  const reviewed = async (file: string, check: (reviewed: Reviewed) => Promise<void>): Promise<void> => {
    const double = await startDouble()
    try {
      const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })
      const parts = { log, clock: Date.now, secrets: createSecrets() }
      const forge = createGithubForge({ token: 'ghp_x', apiUrl: double.url }, parts, { timeoutMs: 10_000 })
      await using world = await landingWorld({}, { context: { forge } })
      await world.context.store.codebases.update(world.codebase.id, { github: 'acme/app' })
      double.branches = () => origin(world, 'for-each-ref', '--format=%(refname:short)', 'refs/heads').split('\n')
      const at = await atWork(world, file)
      await finish(world, at.agent, 'pr')
      const { pullRequest = '' } = await world.item(at.item)
      await check({ ...at, world, double, number: Number(pullRequest.split('/').at(-1)) })
    } finally {
      await double.close()
    }
  }

  /** As GitHub would squash it. */
  const merge = (it: Reviewed, { push = true } = {}): string => {
    const { world, environment } = it
    const head = origin(world, 'rev-parse', environment.branch)
    const main = origin(world, 'rev-parse', 'main')
    const commit = world.repo.git('commit-tree', '-p', main, '-m', 'Squashed', `${head}^{tree}`)
    if (push) world.repo.git('push', '-q', 'origin', `${commit}:main`)
    setPull(it, { state: 'closed', merged: true, merge_commit_sha: commit })
    return commit
  }

  const setPull = ({ world, double, number, environment }: Reviewed, change: object): void => {
    const repo = { full_name: 'acme/app' }
    const head = { ref: environment.branch, sha: origin(world, 'rev-parse', environment.branch), repo }
    double.pulls.set(`acme/app#${number}`, { number, state: 'open', head, base: { ref: 'main', repo }, ...change })
  }

  const watched = async ({ world }: Reviewed): Promise<QueueOutcome> => {
    const codebase = (await world.context.store.codebases.get(world.codebase.id)) ?? world.codebase
    await watchPullRequests(world.fleet, codebase)
    await watchPullRequests(world.fleet, codebase)
    return work(world)
  }

  test('is tested once on the merged result; then its item has landed and its worktree is gone', async () => {
    await reviewed('a', async (it) => {
      const { world, item, environment } = it
      setPull(it, {})
      await watched(it)
      expect([(await world.item(item)).state, runs(world)]).toEqual(['in_review', 0])
      const commit = merge(it)
      expect(await watched(it)).toEqual({ outcome: 'done', left: false })
      expect(await world.item(item)).toMatchObject({ state: 'landed' })
      expect(await latest(world)).toMatchObject({ state: 'landed', landedSha: commit, gate: { exitCode: 0 } })
      expect([existsSync(environment.path), runs(world)]).toEqual([false, 1])
      expect(kinds(world)).toEqual(['started', 'pull-request', 'landed'])
      await assertClean(world)
    })
  })

  test('is red after the merge: its item waits for a person, and nothing is reverted', async () => {
    await reviewed('red-a', async (it) => {
      const { world, item, environment } = it
      const commit = merge(it)
      await watched(it)
      await watched(it)
      expect(await world.item(item)).toMatchObject({ state: 'parked', parked: { kind: 'gate-failed', attempts: 1 } })
      expect(origin(world, 'rev-parse', 'main')).toBe(commit)
      expect([existsSync(environment.path), runs(world)]).toEqual([true, 1])
      expect(kinds(world)).toEqual(['started', 'pull-request', 'parked'])
    })
  })

  test('counts as merged only if the remote has the merge', async () => {
    await reviewed('a', async (it) => {
      const { world, item, environment } = it
      merge(it, { push: false })
      await watched(it)
      expect(await world.item(item)).toMatchObject({ state: 'parked', parked: { kind: 'formula-failed' } })
      expect([existsSync(environment.path), runs(world)]).toEqual([true, 0])
    })
  })

  test('is closed without a merge: its item waits for a person', async () => {
    await reviewed('a', async (it) => {
      const { world, item, environment } = it
      setPull(it, { state: 'closed' })
      await watched(it)
      expect(await world.item(item)).toMatchObject({ state: 'parked', parked: { kind: 'pull-request-closed' } })
      expect(existsSync(environment.path)).toBe(true)
      // It is reopened and merged after all.
      merge(it)
      await watched(it)
      expect(await world.item(item)).toMatchObject({ state: 'landed' })
    })
  })
})

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
    const { context, provider, fleet } = world
    const workplace: Workplace = {
      context,
      environments: async () => provider,
      fleet: async () => fleet,
      keepSpares: () => undefined,
      platforms: async () => knownPlatforms,
      databaseName: '',
    }
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
