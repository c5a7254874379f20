import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { reconcile } from '../../src/isolation/reconcile.ts'
import { keepSpares } from '../../src/isolation/providers/worktree/spare.ts'
import { checkInvariants, checkRecoveredOnce } from '../helpers/invariants.ts'
import { type TestRepo, writeIn } from '../helpers/repo.ts'
import { takeInventory } from './inventory.ts'
import { killAt, temporaryOf } from './kill.ts'
import { operations } from './operations.ts'
import { makeScenarioWorld } from './arrange.ts'
import type { World, WorldOptions } from '../helpers/world.ts'

/** Somebody finds the half-made directory and works in it before anyone has recovered. */
const meddlings: Record<string, (path: string, git: (...args: string[]) => string) => void> = {
  'a file': (path) => writeIn(path, 'found.ts', 'a file in a half-made tree\n'),
  'an edit': (path) => writeIn(path, 'README', 'an edit in a half-made tree\n'),
  'an edit that a filter hides': (path, git) => {
    writeIn(path, 'a.nb', 'one\nhidden in a half-made tree\n')
    git('add', 'a.nb')
  },
  'an ignored file': (path) => writeIn(path, 'found.local', 'an ignored file in a half-made tree\n'),
  'a staged file': (path, git) => {
    writeIn(path, 'found.ts', 'staged in a half-made tree\n')
    git('add', 'found.ts')
  },
  'a file below a submodule that was never fetched': (path) => writeIn(path, 'sub/found.ts', 'below a submodule\n'),
  'an edit in a submodule': (path) => writeIn(path, 'lib/a.txt', 'edited in a submodule\r\n'),
  'an ignored file in a submodule': (path) => writeIn(path, 'lib/found.local', 'ignored in a submodule\n'),
  'an edit in a submodule that a filter hides': (path, git) => {
    writeIn(path, 'lib/a.nb', 'one\nhidden in a submodule\n')
    git('-C', 'lib', 'add', 'a.nb')
  },
  'a commit': (path, git) => {
    writeIn(path, 'found.ts', 'committed in a half-made tree\n')
    git('add', 'found.ts')
    git('commit', '-q', '-m', 'found')
  },
  'a commit on a detached HEAD': (path, git) => {
    git('checkout', '-q', '--detach')
    writeIn(path, 'found.ts', 'committed on no branch\n')
    git('add', 'found.ts')
    git('commit', '-q', '-m', 'found')
  },
  'a commit that was taken back': (path, git) => {
    writeIn(path, 'found.ts', 'only in the reflog\n')
    git('add', 'found.ts')
    git('commit', '-q', '-m', 'found')
    git('reset', '-q', '--hard', 'HEAD~1')
  },
  'a stranger’s own branch': (path, git) => {
    git('checkout', '-q', '-b', 'their-own')
    writeIn(path, 'found.ts', 'on a branch of their own\n')
    git('add', 'found.ts')
    git('commit', '-q', '-m', 'found')
  },
}

/** A filter drops all lines but the first, another keeps the size, and a checkout writes CRLF. */
const filtered: WorldOptions = {
  prepare: (repo, box) => {
    box.raw(repo.path, 'config', '--global', 'filter.strip.clean', 'head -n 1')
    box.raw(repo.path, 'config', '--global', 'filter.lower.clean', 'tr A-Z a-z')
    withFilters(repo)
  },
}

const withFilters = (repo: TestRepo): void => {
  repo.write('.gitattributes', '*.nb filter=strip\n*.low filter=lower\n*.txt text eol=crlf\n')
  for (const path of ['a.nb', 'a.low']) repo.write(path, 'one\n')
  repo.git('add', '-A')
  repo.commit('a.txt', 'one\ntwo\n')
}

const addSubmodule = ({ box, repo }: World): void => {
  const lib = box.repo('lib')
  lib.write('.gitignore', '*.local\n')
  withFilters(lib)
  repo.git('submodule', '--quiet', 'add', lib.path, 'lib')
  repo.git('commit', '-q', '-m', 'lib')
}

const spared: WorldOptions = { settings: { spares: 1 } }

test.concurrent.each(Object.keys(meddlings))('%s put into a half-made environment survives recovery', async (what) => {
  await using world = await makeScenarioWorld({ options: filtered })
  if (what.includes('in a submodule')) addSubmodule(world)
  if (what.includes('below a submodule')) {
    world.repo.commit('.coppice/config.yaml', 'worktree:\n  submodules: false\n')
    world.repo.git('update-index', '--add', '--cacheinfo', `160000,${world.repo.sha()},sub`)
    world.repo.git('commit', '-q', '-m', 'sub')
  }
  const early = await takeInventory(world)
  await killAt(world, 'create-fresh', what.includes('in a submodule') ? 'create.dressed' : 'create.attached')
  const path = join(world.context.worktreesBase, 'project', 'issue-1')
  meddlings[what]?.(path, (...args) => world.box.raw(path, ...args))
  const before = { ...(await takeInventory(world)), branches: early.branches }
  const expectations = { before, mayKeep: ['issue-1', 'their-own'], temporary: temporaryOf(world) }
  expect((await reconcile(world.context, world.codebase)).left).toEqual([])
  expect(await checkInvariants(world, expectations)).toEqual([])
  expect(await checkRecoveredOnce(world)).toEqual([])
  await operations['create-fresh'](world.context, world.codebase)
  expect(await checkInvariants(world, expectations)).toEqual([])
})

test('what a checkout wrote is nobody’s work, whatever it was converted to and even if only half of it is there', async () => {
  await using world = await makeScenarioWorld({ options: filtered })
  addSubmodule(world)
  await killAt(world, 'create-fresh', 'create.dressed')
  const path = join(world.context.worktreesBase, 'project', 'issue-1')
  expect(readFileSync(join(path, 'lib/a.txt'), 'utf8')).toBe('one\r\ntwo\r\n')
  expect(readFileSync(join(path, 'a.txt'), 'utf8')).toBe('one\r\ntwo\r\n')
  writeIn(path, 'a.txt', 'one\r\ntw')
  expect((await reconcile(world.context, world.codebase)).left).toEqual([])
  expect(existsSync(path)).toBe(false)
  expect(await world.context.store.restorePoints.list(world.codebase.id)).toEqual([])
})

test('a file put into a half-made spare survives recovery', async () => {
  await using world = await makeScenarioWorld({ options: spared })
  await killAt(world, 'spare', 'spare.token')
  const [entry] = await world.context.store.journal.open(world.context.host)
  const path = String(entry?.data['path'])
  writeIn(path, 'found.ts', 'a file in a half-made spare\n')
  const before = await takeInventory(world)
  await reconcile(world.context, world.codebase)
  expect((await checkInvariants(world, { before })).filter((problem) => problem.startsWith('G1'))).toEqual([])
})

test.each([
  ['a file', 'found.ts', 'found\n'],
  ['an edit that a filter hides', 'a.nb', 'one\nhidden\n'],
  ['an edit that a filter hides and that keeps the size', 'a.low', 'ONE\n'],
])('%s put into a waiting spare stays there, and is in no environment', async (_what, file, content) => {
  await using world = await makeScenarioWorld({ options: { ...spared, ...filtered } })
  await keepSpares(world.context, world.codebase)
  const [spare] = await world.context.store.spares.list(world.codebase.id)
  const path = spare?.path ?? ''
  writeIn(path, file, content)
  // Git shows one of another size until it is staged.
  if (file === 'a.nb') world.box.raw(path, 'add', file)
  // The spare would have to be brought to this commit.
  for (const name of ['a.nb', 'a.low']) world.repo.commit(name, 'two\n')
  await operations['create-fresh'](world.context, world.codebase)
  const made = join(world.context.worktreesBase, 'project', 'issue-1')
  expect(existsSync(join(made, 'found.ts'))).toBe(false)
  for (const name of ['a.nb', 'a.low']) expect(readFileSync(join(made, name), 'utf8')).toBe('two\n')
  expect(readFileSync(join(path, file), 'utf8')).toBe(content)
})
