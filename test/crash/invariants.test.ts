import { spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import { toCodebaseId, toSha } from '../../src/domain/names.ts'
import type { JournalEntry } from '../../src/store/store.ts'
import { checkInvariants, checkRecoveredOnce } from '../helpers/invariants.ts'
import { writeIn } from '../helpers/repo.ts'
import type { World } from '../helpers/world.ts'
import { takeInventory } from './inventory.ts'
import { temporaryOf } from './kill.ts'
import { environmentOfFive, makeDirty, makeScenarioWorld } from './arrange.ts'

/** A checker that cannot complain shows nothing: each state is broken once, and the complaint is the expected one. */
type Breaking = readonly [string, (world: World, environment: IsolatedEnvironment) => unknown, RegExp]

const entry = (world: World): JournalEntry => ({
  id: 'stray',
  host: world.context.host,
  codebaseId: toCodebaseId('project-id'),
  environmentId: undefined,
  kind: 'create',
  step: 'adding',
  data: {},
  holder: world.context.self,
  child: undefined,
  startedAt: 1,
})

const breakings: readonly Breaking[] = [
  ['a file is deleted', (_w, e) => rmSync(join(e.path, 'new/untracked.ts')), /^G1: lost .*untracked\.ts/],
  ['an ignored file is changed', (_w, e) => writeIn(e.path, 'secret.local', 'x'), /^G1: lost .*secret\.local/],
  ['staged content is dropped', (w, e) => w.box.raw(e.path, 'reset', '-q'), /^G1: lost .*staged\.ts/],
  [
    'a commit is cut off',
    (w, e) => {
      w.box.raw(e.path, 'update-ref', 'HEAD', 'HEAD~1')
      w.box.raw(e.path, 'reflog', 'expire', '--expire=all', '--all')
    },
    /^G1: lost/,
  ],
  ['a directory vanishes', (_w, e) => rmSync(e.path, { recursive: true }), /^G3: issue-5 is active without/],
  [
    'another branch is checked out',
    (w, e) => w.box.raw(e.path, 'checkout', '-q', '-b', 'x'),
    /^G3: .*git has refs\/heads\/x/,
  ],
  [
    'git forgets it',
    (w) => rmSync(join(w.repo.commonDir, 'worktrees/issue-5'), { recursive: true }),
    /^G3: .*does not list/,
  ],
  [
    'its token goes',
    (w) => rmSync(join(w.repo.commonDir, 'worktrees/issue-5/coppice')),
    /^G3: issue-5 has lost its token/,
  ],
  ['a worktree appears', (w) => w.repo.worktree('new', '-b', 'new'), /^G3: git lists .*new, which nobody knows/],
  ['a directory appears', (w) => mkdirSync(join(w.context.worktreesBase, 'project/x')), /^G3: .*project\/x is there/],
  [
    'a row is stuck',
    (w, e) => w.context.store.environments.transition(e.id, 'active', 'removing'),
    /^G3: .*still removing/,
  ],
  ['a branch appears', (w) => w.repo.git('branch', 'stray'), /^G4: stray branch/],
  [
    'a lock file stays',
    (w) => writeFileSync(join(w.repo.commonDir, 'index.lock'), ''),
    /^G4: left in git's directory: index\.lock/,
  ],
  ['a record is locked', (w, e) => w.repo.git('worktree', 'lock', e.path), /^G4: locked record/],
  ['a half record stays', (w) => mkdirSync(join(w.repo.commonDir, 'worktrees/half')), /^G4: 3 admin directories/],
  [
    'a spare is left',
    (w) => mkdirSync(join(w.context.worktreesBase, '.spares/x'), { recursive: true }),
    /^G4: left in \.spares/,
  ],
  [
    'half a clone is left',
    (w) => mkdirSync(join(w.context.home, 'repos/.cloning-x'), { recursive: true }),
    /^G4: half a clone/,
  ],
  [
    'trash is left',
    (w) => mkdirSync(join(w.context.worktreesBase, '.trash/x'), { recursive: true }),
    /^G4: left in \.trash/,
  ],
  ['an intent is left', (w) => w.context.store.journal.begin(entry(w)), /^G4: journal/],
  ['a temporary directory is left', (w) => mkdirSync(join(temporaryOf(w), 'coppice-x')), /^G4: temporary coppice-x/],
  [
    'a restore ref is left',
    (w) => w.repo.git('update-ref', 'refs/coppice/restore/x', 'HEAD'),
    /^G4: restore point without a row/,
  ],
  [
    'a restore directory is left',
    (w) => mkdirSync(join(w.context.home, 'restore/x'), { recursive: true }),
    /^G4: restore directory/,
  ],
  [
    'configuration is left',
    (w) => w.repo.git('config', 'branch.gone.remote', 'origin'),
    /^G4: configuration of branch gone/,
  ],
  [
    'a port is left',
    async (w, e) => {
      await w.context.store.ports.lease('this-host', 4000, e.id, 'WEB', 1)
      await w.context.store.environments.transition(e.id, 'active', 'released')
    },
    /^G4: a port/,
  ],
  [
    'a spare’s row is left',
    (w) =>
      w.context.store.spares.insert({
        id: 's',
        host: 'this-host',
        codebaseId: w.codebase.id,
        path: '/nowhere',
        adminName: 's',
        sha: toSha('0'.repeat(40)),
        createdAt: 1,
      }),
    /^G3: spare \/nowhere is not a worktree/,
  ],
  ['the checkout changes', (w) => writeIn(w.repo.path, 'README', 'x'), /^G10/],
  [
    'the checkout’s index changes',
    (w) => {
      writeIn(w.repo.path, 'n', '')
      w.repo.git('add', 'n')
      rmSync(join(w.repo.path, 'n'))
    },
    /^G10/,
  ],
  ['the checkout’s HEAD changes', (w) => w.repo.git('checkout', '-q', '--detach'), /^G10/],
  ['a stranger’s file changes', (w) => writeIn(w.box.path('theirs'), 'README', 'x'), /^G6: .*theirs/],
  [
    'it is called missing',
    (w, e) => w.context.store.environments.transition(e.id, 'active', 'missing'),
    /^G11: issue-5 is called missing/,
  ],
  [
    'it is called removed',
    async (w, e) => {
      await w.context.store.environments.transition(e.id, 'active', 'removing')
      await w.context.store.environments.transition(e.id, 'removing', 'removed')
    },
    /^G11: issue-5 is called removed/,
  ],
]

const makeOne = async (): Promise<World> => {
  const world = await makeScenarioWorld({})
  await makeDirty(world)
  return world
}

const strangersOf = (world: World): string[] => [world.box.path('theirs')]

test.concurrent.each(breakings)('the checker complains when %s', async (_what, wound, complaint) => {
  await using world = await makeOne()
  const environment = await environmentOfFive(world)
  world.repo.worktree('theirs', '-b', 'theirs')
  const before = await takeInventory(world, strangersOf(world))
  const expectations = { before, strangers: strangersOf(world), temporary: temporaryOf(world) }
  expect(await checkInvariants(world, expectations)).toEqual([])
  await wound(world, environment)
  expect(await checkInvariants(world, expectations)).toContainEqual(expect.stringMatching(complaint))
})

test('the checker complains when a process is left', async () => {
  await using world = await makeOne()
  const environment = await environmentOfFive(world)
  const before = await takeInventory(world)
  const left = spawn('sleep', ['60'], { cwd: environment.path, stdio: 'ignore' })
  await once(left, 'spawn')
  const problems = await checkInvariants(world, { before })
  left.kill('SIGKILL')
  await once(left, 'exit')
  expect(problems).toContainEqual(expect.stringMatching(/^G4: process \d+: sleep/))
})

test('the checker complains when two live environments share a work, a branch or a path', async () => {
  await using world = await makeOne()
  const environment = await environmentOfFive(world)
  const before = await takeInventory(world)
  // The database itself refuses this, so a store is made up that has it.
  const environments = { ...world.context.store.environments, live: async () => [environment, environment] }
  const store = { ...world.context.store, environments }
  const problems = await checkInvariants({ ...world, context: { ...world.context, store } }, { before })
  expect(problems.filter((problem) => problem.startsWith('G2'))).toHaveLength(3)
})

test('the checker complains when a second recovery still finds something to do', async () => {
  await using world = await makeOne()
  const environment = await environmentOfFive(world)
  expect(await checkRecoveredOnce(world)).toEqual([])
  rmSync(environment.path, { recursive: true })
  expect(await checkRecoveredOnce(world)).toEqual(['G9: the second recovery changed something'])
})
