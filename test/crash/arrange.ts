import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import { toWork } from '../../src/domain/work.ts'
import { keepSpares } from '../../src/isolation/providers/worktree/spare.ts'
import { firstCommit, type Template, writeIn } from '../helpers/repo.ts'
import { type World, type WorldOptions, makeWorld } from '../helpers/world.ts'
import { temporaryOf } from './kill.ts'
import { operations } from './operations.ts'

const withCode: Template = (repo) => {
  firstCommit(repo)
  repo.write('.gitignore', '*.local\n')
  repo.git('add', '.gitignore')
  repo.commit('src/code.ts', 'export const code = 1\n')
}

/** The world of a scenario; its temporary files go into a directory of their own. */
export const makeScenarioWorld = (scenario: { readonly options?: WorldOptions }): Promise<World> =>
  makeWorld({
    template: withCode,
    ...scenario.options,
    prepare: (repo, box) => {
      mkdirSync(temporaryOf({ box }))
      box.env['TMPDIR'] = temporaryOf({ box })
      scenario.options?.prepare?.(repo, box)
    },
    context: { approve: async () => true, ...scenario.options?.context },
  })

export const environmentOfFive = async ({ context, codebase }: World): Promise<IsolatedEnvironment> => {
  const found = await context.store.environments.liveByWork(codebase.id, toWork('issue', '5'))
  if (found === undefined) throw new Error('issue 5 has no environment')
  return found
}

export const makeFive = async (world: World): Promise<IsolatedEnvironment> => {
  await operations['take-up-again'](world.context, world.codebase)
  return environmentOfFive(world)
}

export const ownCommit = (world: World, path: string, file = 'own.ts'): void => {
  writeIn(path, file, `only in ${file}\n`)
  world.box.raw(path, 'add', file)
  world.box.raw(path, 'commit', '-q', '-m', `own ${file}`)
}

/** Committed, staged, changed, untracked and ignored, each with bytes of its own. */
export const makeDirty = async (world: World): Promise<void> => {
  const { path } = await makeFive(world)
  ownCommit(world, path)
  writeIn(path, 'staged.ts', 'staged\n')
  world.box.raw(path, 'add', 'staged.ts')
  writeIn(path, 'staged.ts', 'staged, then changed\n')
  writeIn(path, 'README', 'changed\n')
  writeIn(path, 'new/untracked.ts', 'untracked\n')
  writeIn(path, 'secret.local', 'ignored\n')
}

export const dirtIsBack = async (world: World): Promise<void> => {
  const { path } = await environmentOfFive(world)
  expect(world.box.raw(path, 'status', '--short', '--untracked-files=all').split('\n')).toEqual([
    ' M README',
    'AM staged.ts',
    '?? new/untracked.ts',
  ])
  const read = (file: string): string => readFileSync(join(path, file), 'utf8')
  expect([read('README'), read('staged.ts'), read('new/untracked.ts'), read('secret.local'), read('own.ts')]).toEqual([
    'changed\n',
    'staged, then changed\n',
    'untracked\n',
    'ignored\n',
    'only in own.ts\n',
  ])
}

export const detach = async (world: World): Promise<void> => {
  const { path } = await makeFive(world)
  world.box.raw(path, 'checkout', '-q', '--detach')
  ownCommit(world, path, 'detached.ts')
}

export const onOtherBranch = async (world: World): Promise<void> => {
  const { path } = await makeFive(world)
  world.box.raw(path, 'switch', '-q', '-c', 'other')
  ownCommit(world, path, 'other.ts')
}

/** Staged in git's record only: the directory is away. */
export const loseDirectory = async (world: World): Promise<void> => {
  const { path } = await makeFive(world)
  ownCommit(world, path)
  writeIn(path, 'staged.ts', 'staged\n')
  world.box.raw(path, 'add', 'staged.ts')
  renameSync(path, world.box.path('unmounted'))
  await operations.reconcile(world.context, world.codebase)
}

export const theirs = ({ repo }: World): string => repo.worktree('theirs', '-b', 'their-branch').path
export const spared: WorldOptions = { settings: { spares: 1 } }
export const warm = (world: World): Promise<number> => keepSpares(world.context, world.codebase)

export const dressed: WorldOptions = {
  prepare: (repo) => {
    repo.commit(
      '.coppice/config.yaml',
      'worktree:\n  copy: ["env.local"]\n  ports: ["WEB"]\n  setup: ["echo made > made.local"]\n  teardown: ["echo torn"]\n',
    )
    writeFileSync(join(repo.path, 'env.local'), 'SECRET=1\n')
    mkdirSync(join(repo.path, '.beads'))
  },
}

export const remote: WorldOptions = { remote: true }
export const pushPullRequest = async ({ repo }: World): Promise<void> => {
  repo.git('checkout', '-q', '-b', 'feature')
  repo.commit('feature.ts', 'feature\n')
  repo.git('push', '-q', 'origin', 'feature:refs/heads/feature', 'feature:refs/pull/7/head', 'feature:refs/pull/8/head')
  repo.git('checkout', '-q', 'main')
  repo.git('branch', '-q', '-D', 'feature')
}

export const meddle = async (world: World, branch: string): Promise<void> => {
  const path = join(world.context.worktreesBase, world.codebase.name, branch)
  writeIn(path, 'found.ts', 'written into a half-made tree\n')
  writeIn(path, 'found.local', 'ignored, in a half-made tree\n')
}
