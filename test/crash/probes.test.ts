import { lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import { type GateName, gateNames } from '../../src/domain/removal/gates.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import type { Store } from '../../src/store/store.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { writeIn } from '../helpers/repo.ts'
import type { World } from '../helpers/world.ts'
import { fingerprint, refsOf, takeInventory } from './inventory.ts'
import { gitWrapper, temporaryOf } from './kill.ts'
import { operations } from './operations.ts'
import { environmentOfFive, makeScenarioWorld } from './arrange.ts'

type Probe = {
  readonly gate: GateName
  readonly how: string
  /** What the tree is like before its question is made to fail. */
  readonly arrange?: (world: World, environment: IsolatedEnvironment) => void
  /** Makes the question fail; may give another store to ask. */
  readonly fail: (world: World, environment: IsolatedEnvironment) => Store | void | Promise<void>
}

const adminDir = ({ repo }: World, { adminName }: IsolatedEnvironment): string =>
  join(repo.commonDir, 'worktrees', adminName ?? '-')

/** A name that leads to itself: reading it fails, and not because nothing is there. Holds for root, too. */
const makeLoop = (path: string): void => {
  rmSync(path, { recursive: true, force: true })
  symlinkSync(path, path)
}

/** The store, except that one question throws. */
const throwing = (world: World, part: 'leases' | 'conversations'): Store => {
  const broken = { ofEnvironments: () => Promise.reject(new Error('the disk is on fire')) }
  return new Proxy(world.context.store, {
    get: (store, name) => {
      const value: unknown = Reflect.get(store, name)
      return name === part ? { ...store[part], ...broken } : value
    },
  })
}

/** From here on git fails for one of its commands, as it does on a full disk or a repository it does not understand. */
const gitFails = (world: World, words: string): void => {
  const bin = gitWrapper(
    world,
    `case " $* " in *" ${words} "*) echo 'fatal: no' >&2; exit 128;; esac\nexec "$REAL" "$@"`,
  )
  world.box.env['PATH'] = `${bin}:${world.box.env['PATH']}`
}

const probes: readonly Probe[] = [
  { gate: 'ours', how: 'its token cannot be read', fail: (w, e) => makeLoop(join(adminDir(w, e), 'coppice')) },
  { gate: 'ours', how: 'the record cannot be read', fail: (w, e) => makeLoop(join(adminDir(w, e), 'gitdir')) },
  { gate: 'ours', how: 'its .git cannot be read', fail: (_w, e) => makeLoop(join(e.path, '.git')) },
  { gate: 'not-in-use', how: 'the leases cannot be had', fail: (w) => throwing(w, 'leases') },
  { gate: 'not-in-use', how: 'the lock cannot be read', fail: (w, e) => makeLoop(join(adminDir(w, e), 'locked')) },
  {
    gate: 'not-in-use',
    how: 'a lease is held on another host',
    fail: ({ context }, { id }) =>
      context.store.leases.insert({
        id: 'elsewhere',
        host: 'another-host',
        environmentId: id,
        purpose: 'a run',
        holder: { pid: 1, startTime: '1' },
        createdAt: 1,
      }),
  },
  { gate: 'nobody-elses', how: 'the conversations cannot be had', fail: (w) => throwing(w, 'conversations') },
  { gate: 'nothing-uncommitted', how: 'git status fails', fail: (w) => gitFails(w, 'status') },
  {
    gate: 'nothing-uncommitted',
    how: 'git ls-files fails',
    // In this format the index is not judged without git.
    arrange: (w, e) => void w.box.raw(e.path, 'update-index', '--index-version', '4'),
    fail: (w) => gitFails(w, 'ls-files'),
  },
  {
    gate: 'nothing-uncommitted',
    how: 'the index is corrupt',
    fail: (w, e) => writeFileSync(join(adminDir(w, e), 'index'), 'DIRC and nothing that makes sense'),
  },
  {
    gate: 'nothing-unreachable',
    how: 'git rev-list fails',
    arrange: (w, e) => void w.box.raw(e.path, 'checkout', '-q', '--detach'),
    fail: (w) => gitFails(w, 'rev-list'),
  },
  {
    gate: 'nothing-unreachable',
    how: 'HEAD makes no sense',
    fail: (w, e) => writeFileSync(join(adminDir(w, e), 'HEAD'), 'gibberish\n'),
  },
  ...(['no-worktree-inside', 'no-repository-inside'] as const).map((gate) => ({
    gate,
    how: 'the record of another worktree cannot be read',
    arrange: (w: World) => void w.repo.worktree('another', '--detach'),
    fail: (w: World) => makeLoop(join(w.repo.commonDir, 'worktrees/another/gitdir')),
  })),
  {
    gate: 'no-kept-files',
    how: 'what is tracked cannot be had',
    arrange: (_w, e) => writeIn(e.path, 'kept.local', 'mine\n'),
    fail: (w) => gitFails(w, 'ls-files'),
  },
]

const makeOne = async (): Promise<World> => {
  const world = await makeScenarioWorld({
    options: { prepare: (repo) => void repo.commit('.coppice/config.yaml', 'worktree:\n  keep: ["kept.local"]\n') },
  })
  await operations['take-up-again'](world.context, world.codebase)
  writeIn((await environmentOfFive(world)).path, 'secret.local', 'ignored, the only copy\n')
  return world
}

describe('a question that cannot be answered removes nothing', () => {
  test.each(probes.map((probe) => [probe.gate, probe.how, probe] as const))('%s: %s', async (gate, _how, probe) => {
    await using world = await makeOne()
    const environment = await environmentOfFive(world)
    probe.arrange?.(world, environment)
    const refs = [...refsOf(world)]
    const store = (await probe.fail(world, environment)) ?? world.context.store
    const before = fingerprint(environment.path.replace(/\/$/, ''))
    const provider = createEnvironments({ ...world.context, store })
    for (const force of [false, true]) {
      const outcome = await provider.destroy(environment, { trigger: 'command', force })
      if (outcome.outcome !== 'refused') throw new Error(`not refused: ${JSON.stringify(outcome)}`)
      expect(outcome.reasons).toContainEqual(expect.objectContaining({ gate, answer: 'cannot-tell' }))
    }
    expect(fingerprint(environment.path)).toBe(before)
    expect([...refsOf(world)]).toEqual(refs)
    expect(await world.context.store.environments.get(environment.id)).toMatchObject({ status: 'active' })
    expect(await world.context.store.journal.open(world.context.host)).toEqual([])
  })

  test('every gate has one', () => {
    // To fail, the mount table has to be mounted over: test/isolation/inside.test.ts does that.
    const asked = new Set<GateName>(['no-mount', ...probes.map(({ gate }) => gate)])
    expect(gateNames.filter((gate) => !asked.has(gate))).toEqual([])
  })
})

/** Past the gates: what fails then leaves everything as it was. */
const late: readonly (readonly [string, (world: World) => void])[] = [
  ['the second look', (world) => gitFailsOnce(world, 'status', 2)],
  ['writing the saved files', (world) => gitFails(world, 'hash-object')],
  ['writing the saved tree', (world) => gitFails(world, 'write-tree')],
  ['writing the saved commit', (world) => gitFails(world, 'commit-tree')],
  ['keeping the restore point', (world) => gitFailsOnce(world, 'update-ref', 1)],
  ['the home’s disk', (world) => symlinkSync('/nowhere', join(world.context.home, 'restore'))],
  ['the trash', (world) => writeFileSync(join(world.context.worktreesBase, '.trash'), 'not a directory')],
]

/** Only the how-manyth time: what has to be taken back afterwards needs git, too. */
const gitFailsOnce = (world: World, words: string, time: number): void => {
  const seen = world.box.path('seen')
  mkdirSync(seen)
  const count = `n=1; while [ -e '${seen}'/$n ]; do n=$((n+1)); done; : > '${seen}'/$n; [ $n -eq ${time} ]`
  const bin = gitWrapper(
    world,
    `case " $* " in *" ${words} "*) if ${count}; then exit 128; fi;; esac\nexec "$REAL" "$@"`,
  )
  world.box.env['PATH'] = `${bin}:${world.box.env['PATH']}`
}

describe('a removal that fails on the way leaves everything as it was', () => {
  test.each(late)('%s', async (_what, fail) => {
    await using world = await makeOne()
    const environment = await environmentOfFive(world)
    writeIn(environment.path, 'README', 'changed\n')
    const before = await takeInventory(world, [environment.path])
    const path = world.box.env['PATH'] ?? ''
    fail(world)
    await expect(world.provider.destroy(environment, { trigger: 'command', force: true })).rejects.toBeInstanceOf(Error)
    world.box.env['PATH'] = path
    for (const file of ['restore', '.trash']) {
      const place = join(file === 'restore' ? world.context.home : world.context.worktreesBase, file)
      if (lstatSync(place, { throwIfNoEntry: false })?.isDirectory() === false) rmSync(place)
    }
    expect(await checkInvariants(world, { before, temporary: temporaryOf(world) })).toEqual([])
    expect(await world.context.store.environments.get(environment.id)).toMatchObject({ status: 'active' })
  })
})

test('a git that will not forget its record stops the removal, and everything is as it was', async () => {
  await using world = await makeOne()
  const environment = await environmentOfFive(world)
  writeIn(environment.path, 'README', 'changed\n')
  const before = await takeInventory(world)
  const path = world.box.env['PATH'] ?? ''
  gitFails(world, 'worktree remove')
  const removal = world.provider.destroy(environment, { trigger: 'command', force: true })
  await expect(removal).rejects.toThrow(/worktree remove/)
  world.box.env['PATH'] = path
  expect(await world.context.store.environments.get(environment.id)).toMatchObject({ status: 'active' })
  expect(readFileSync(join(environment.path, 'README'), 'utf8')).toBe('changed\n')
  expect(await checkInvariants(world, { before, temporary: temporaryOf(world) })).toEqual([])
})
