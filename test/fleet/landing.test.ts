import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { toBranchName } from '../../src/domain/names.ts'
import { toWork } from '../../src/domain/work.ts'
import { describe, expect, test } from 'vitest'
import type { Landing } from '../../src/domain/fleet/landing.ts'
import { land } from '../../src/fleet/landing/land.ts'
import { workQueue } from '../../src/fleet/landing/queue.ts'
import { clearScratchTrees } from '../../src/isolation/codebases/landing/scratch-tree.ts'
import { scratchDirectory } from '../../src/isolation/paths.ts'
import { identityWord } from '../../src/domain/process-identity.ts'
import { liveness } from '../../src/process/identity.ts'
import { killTree } from '../../src/process/kill.ts'
import { scratchMark } from '../../src/process/run-mark.ts'
import { spawnDetached } from '../../src/process/spawn.ts'
import { processesAt } from '../helpers/invariants.ts'
import { landingWorld, runs, branch, queue, work, landing, origin, assertClean } from '../helpers/landing.ts'

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

  test('only as it was queued last, even if that was while it was tested', async () => {
    await using world = await landingWorld()
    branch(world, 'x', ['a', '1\n'])
    const first = await queue(world, 'x')
    let second: Landing | undefined
    const failpoint = async (name: string): Promise<void> => {
      if (name !== 'landing.gates' || second !== undefined) return
      world.repo.git('checkout', '-q', 'x')
      world.repo.commit('b', '2\n')
      world.repo.git('checkout', '-q', 'main')
      second = await queue(world, 'x')
    }
    await workQueue({ ...world.fleet, isolation: { ...world.context, failpoint } }, world.codebase)
    expect(await landing(world, first)).toMatchObject({ state: 'superseded', landedSha: undefined })
    expect(second && (await landing(world, second))).toMatchObject({ state: 'landed' })
    expect(origin(world, 'rev-list', '--count', 'main')).toBe('4')
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

  test('is not recorded as landed without looking at the remote, which said yes and meant something else', async () => {
    await using world = await landingWorld()
    branch(world, 'x', ['a', '1\n'])
    const queued = await queue(world, 'x')
    const before = origin(world, 'rev-parse', 'main')
    const hook = join(world.box.path('origin.git'), 'hooks', 'post-receive')
    mkdirSync(dirname(hook), { recursive: true })
    writeFileSync(hook, `#!/bin/sh\ngit update-ref refs/heads/main ${before}\n`, { mode: 0o755 })
    expect(await work(world)).toMatchObject({ outcome: 'blocked', why: { kind: 'base-moves', attempts: 5 } })
    expect(await landing(world, queued)).toMatchObject({ state: 'queued', landedSha: undefined })
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
    // A state that lasts is reported once.
    expect(await work(world)).toMatchObject({ outcome: 'blocked' })
    expect(world.told).toMatchObject([{ kind: 'landing-blocked', codebase: 'project', why: { kind: 'base-red' } }])
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

  test('over what somebody did to the local base meanwhile', async () => {
    await using world = await landingWorld({}, { remote: false })
    branch(world, 'x', ['a', '1\n'])
    world.repo.git('checkout', '-q', '--detach')
    const queued = await queue(world, 'x')
    const theirs = world.repo.git('commit-tree', '-p', 'main', '-m', 'theirs', 'main^{tree}')
    const failpoint = async (name: string): Promise<void> => {
      if (name === 'landing.push-intent' && world.repo.git('log', '-1', '--format=%s', 'main') !== 'theirs') {
        world.repo.git('update-ref', 'refs/heads/main', theirs)
      }
    }
    await workQueue({ ...world.fleet, isolation: { ...world.context, failpoint } }, world.codebase)
    expect(await landing(world, queued)).toMatchObject({ state: 'landed', attempts: 2 })
    expect(world.repo.git('log', '-2', '--format=%s', 'main')).toBe('x: a\ntheirs')
  })

  test('from a worktree that nobody has vouched for', async () => {
    await using world = await landingWorld()
    const made = await world.provider.create({
      codebase: world.codebase,
      work: toWork('task', 'theirs'),
      hints: {},
      createdBy: 'test',
      aliases: [],
      branch: toBranchName('theirs'),
    })
    if (made.outcome !== 'created') throw new Error(made.outcome)
    world.box.raw(made.environment.path, 'commit', '-q', '--allow-empty', '-m', 'theirs')
    await world.context.store.environments.update(made.environment.id, { trust: 'unproven' })
    const outcome = await land(world.fleet, world.codebase, { what: { branch: 'theirs' }, by: 'cli' })
    expect(outcome).toMatchObject({ outcome: 'refused', why: { kind: 'untrusted' } })
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
