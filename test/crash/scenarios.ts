import { join } from 'node:path'
import { expect } from 'vitest'
import type { ProviderName } from '../../src/domain/provider-name.ts'
import { writeIn } from '../helpers/repo.ts'
import type { World, WorldOptions } from '../helpers/world.ts'
import { interruptAt } from './abandon.ts'
import {
  detach,
  dirtIsBack,
  dressed,
  environmentOfFive,
  loseDirectory,
  makeDirty,
  makeFive,
  onOtherBranch,
  meddle,
  ownCommit,
  pushPullRequest,
  remote,
  spared,
  theirs,
  warm,
} from './arrange.ts'
import { type OperationName, operations } from './operations.ts'
import { everyCase } from '../helpers/every-case.ts'

export type Scenario = {
  readonly name: string
  readonly operation: OperationName
  readonly options?: WorldOptions
  readonly arrange?: (world: World) => Promise<unknown>
  /** A first crash, for those scenarios whose operation is the recovery itself. */
  readonly interrupt?: (world: World) => Promise<unknown>
  readonly strangers?: (world: World) => string[]
  /** Branches that may stay: of an environment that is removed. */
  readonly mayKeep?: readonly string[]
  /** The failpoints of interest, where the others are another scenario's. */
  readonly only?: RegExp
  /** Of those, the ones where it differs from the scenario that it varies. `npm run test:every-case` takes the others, too. */
  readonly usually?: RegExp
  /** Errors are injected at its failpoints, too; where a pattern, usually only at those. */
  readonly errors?: boolean | RegExp
  /** What has to be true when the operation was done again. */
  readonly after?: (world: World) => Promise<unknown>
}

/** An existing branch is kept, and a fork's comes from elsewhere: the steps around the tree and the branch. */
const differsInCreate = /tree|attached|active/

const ofWorktrees: readonly Scenario[] = [
  { name: 'create on a fresh branch', errors: true, operation: 'create-fresh' },
  {
    name: 'create on an existing branch',
    usually: differsInCreate,
    operation: 'create-existing',
    arrange: async ({ repo }) => {
      repo.git('checkout', '-q', '-b', 'issue-2')
      repo.commit('mine.ts', 'mine\n')
      repo.git('checkout', '-q', 'main')
    },
  },
  {
    name: 'create with a spare',
    errors: /spare-/,
    usually: /spare-/,
    operation: 'create-fresh',
    options: spared,
    arrange: warm,
  },
  {
    name: 'create with a spare that lies behind',
    only: /spare-/,
    usually: /switched|moved/,
    operation: 'create-fresh',
    options: spared,
    arrange: async (world) => {
      await warm(world)
      world.repo.commit('later.ts', 'later\n')
    },
  },
  {
    name: 'create of a pull request from a fork',
    usually: differsInCreate,
    operation: 'create-fork-pr',
    options: remote,
    arrange: pushPullRequest,
  },
  {
    name: 'create of a pull request of our own',
    // Where its branch follows that of the remote.
    errors: /attached/,
    only: /tree|attached|unlocked/,
    operation: 'create-own-pr',
    options: remote,
    arrange: pushPullRequest,
  },
  {
    name: 'create with copies, ports and setup',
    usually: /attached|dressed|active/,
    errors: /dressed/,
    operation: 'create-fresh',
    options: dressed,
  },
  {
    name: 'create where the old directory is missing',
    only: /^(?:remove|save)\./,
    usually: /intent|missing|branch|recorded$/,
    operation: 'take-up-again',
    arrange: loseDirectory,
    mayKeep: ['issue-5'],
  },
  {
    name: 'adopt',
    operation: 'adopt',
    arrange: async (world) => theirs(world),
    strangers: ({ box }) => [box.path('theirs')],
    // Adopting twice gives the same environment.
    after: async ({ context, codebase }) => expect(await context.store.environments.live(codebase.id)).toHaveLength(1),
  },
  {
    name: 'remove a clean one',
    usually: /saved|moved|forgotten|branch|recorded/,
    operation: 'remove-clean',
    arrange: makeFive,
  },
  {
    name: 'remove one with commits of its own',
    only: /^remove\./,
    usually: /moved|branch|given-up/,
    operation: 'remove-clean',
    arrange: async (world) => ownCommit(world, (await makeFive(world)).path),
    mayKeep: ['issue-5'],
  },
  {
    name: 'remove a dressed one',
    only: /^remove\./,
    usually: /saved|given-up/,
    operation: 'remove-clean',
    options: dressed,
    arrange: makeFive,
  },
  {
    name: 'remove a dirty one by force',
    errors: true,
    operation: 'remove-forced',
    arrange: makeDirty,
    mayKeep: ['issue-5'],
  },
  {
    name: 'remove a detached one by force',
    only: /^remove\.|objects/,
    usually: /objects|moved|branch/,
    operation: 'remove-forced',
    arrange: detach,
    mayKeep: ['issue-5'],
  },
  {
    name: 'remove one whose directory is missing',
    errors: /missing/,
    operation: 'remove-forced',
    arrange: loseDirectory,
    mayKeep: ['issue-5'],
  },
  {
    name: 'restore a dirty one',
    // What only a restore does, and of the steps that it shares with a creation the first and the last.
    errors: /tree|files|record|filled|active/,
    operation: 'restore',
    arrange: async (world) => {
      await makeDirty(world)
      await operations['remove-forced'](world.context, world.codebase)
    },
    mayKeep: ['issue-5'],
    after: dirtIsBack,
  },
  {
    name: 'restore one whose HEAD was on another branch',
    usually: /own-branch/,
    errors: true,
    operation: 'restore',
    arrange: async (world) => {
      await onOtherBranch(world)
      await operations['remove-forced'](world.context, world.codebase)
    },
    mayKeep: ['issue-5', 'other'],
    after: async ({ repo }) => expect(repo.git('rev-parse', 'issue-5')).toBe(repo.git('rev-parse', 'main')),
  },
  { name: 'make a spare', errors: true, operation: 'spare', options: spared },
  {
    name: 'clone',
    operation: 'clone',
    options: remote,
    errors: true,
    after: async ({ context }) => expect(await context.store.codebases.list(context.host)).toHaveLength(2),
  },
  { name: 'lease and release', operation: 'lease', arrange: makeFive },
  {
    name: 'recover a create',
    operation: 'reconcile',
    interrupt: (world) => interruptAt(world, 'create-fresh', 'create.attached'),
  },
  {
    name: 'recover a create that somebody has worked in',
    usually: /save\.ref|undo/,
    operation: 'reconcile',
    interrupt: async (world) => {
      await interruptAt(world, 'create-fresh', 'create.attached')
      await meddle(world, 'issue-1')
    },
    after: async ({ context, codebase }) => {
      const [point] = await context.store.restorePoints.list(codebase.id)
      const saved = point && (await context.store.environments.get(point.environmentId))
      expect(saved?.status).toBe('removed')
    },
  },
  {
    name: 'recover a create from a spare',
    usually: /undo\.(?:moved|forgotten)/,
    operation: 'reconcile',
    options: spared,
    arrange: warm,
    interrupt: (world) => interruptAt(world, 'create-fresh', 'create.spare-moved'),
  },
  {
    name: 'recover a spare',
    usually: /undo\.(?:moved|branch)/,
    operation: 'reconcile',
    options: spared,
    interrupt: (world) => interruptAt(world, 'spare', 'spare.tree'),
  },
  {
    name: 'recover a restore',
    usually: /undo\.(?:saved|checked|forgotten)/,
    operation: 'reconcile',
    arrange: async (world) => {
      await makeDirty(world)
      await operations['remove-forced'](world.context, world.codebase)
    },
    interrupt: (world) => interruptAt(world, 'restore', 'restore.filled'),
    mayKeep: ['issue-5'],
  },
  {
    name: 'recover a removal by undoing it',
    usually: /undo/,
    operation: 'reconcile',
    arrange: makeDirty,
    interrupt: (world) => interruptAt(world, 'remove-forced', 'remove.moved'),
    after: dirtIsBack,
  },
  {
    name: 'recover a removal whose path somebody has taken',
    usually: /undo/,
    operation: 'reconcile',
    arrange: makeDirty,
    interrupt: async (world) => {
      await interruptAt(world, 'remove-forced', 'remove.moved')
      writeIn((await environmentOfFive(world)).path, 'elsewhere.ts', 'put where the environment was\n')
    },
    strangers: ({ context, codebase }) => [join(context.worktreesBase, codebase.name, 'issue-5')],
    after: dirtIsBack,
  },
  {
    name: 'recover a removal by finishing it',
    usually: /^remove\./,
    operation: 'reconcile',
    arrange: makeFive,
    interrupt: (world) => interruptAt(world, 'remove-forced', 'remove.forgotten'),
  },
  {
    name: 'recover the removal of a missing one',
    usually: /undo/,
    operation: 'reconcile',
    arrange: loseDirectory,
    interrupt: (world) => interruptAt(world, 'remove-forced', 'remove.missing-saved'),
    mayKeep: ['issue-5'],
  },
  {
    name: 'recover a lease of the dead',
    operation: 'reconcile',
    arrange: makeFive,
    interrupt: (world) => interruptAt(world, 'lease', 'lease.released'),
  },
]

/**
 * Scenarios that go the same way for other providers, and the failpoints where they differ: how an environment is made,
 * saved, forgotten, delivered and undone. `npm run test:every-case` takes all failpoints of all of them.
 */
const never = /$^/
const variants: Readonly<Record<Exclude<ProviderName, 'worktree'>, Readonly<Record<string, RegExp>>>> = {
  clone: {
    'create on a fresh branch': /pinned|adding|tree|token/,
    'create of a pull request of our own': never,
    'remove a clean one': /moved|forgetting|forgotten|delivered|given-up/,
    'remove one with commits of its own': /delivered|branch/,
    'remove a dirty one by force': /objects|moved|forgetting/,
    'remove a detached one by force': never,
    'restore a dirty one': /pinned|record/,
    'recover a create': never,
    'recover a create that somebody has worked in': /undo\.(?:moved|discarded)/,
    'recover a restore': never,
    'recover a removal by undoing it': /undo/,
    'recover a removal by finishing it': /delivered|given-up/,
  },
}

/** A name that no scenario has. */
export const unusedVariants = Object.values(variants)
  .flatMap((differs) => Object.keys(differs))
  .filter((variant) => !ofWorktrees.some(({ name }) => name === variant))

export const scenarios: readonly Scenario[] = [
  ...ofWorktrees,
  ...Object.entries(variants).flatMap(([provider, differs]) =>
    ofWorktrees
      .filter(({ name }) => name in differs && (everyCase || differs[name] !== never))
      .map((scenario) => ({
        ...scenario,
        name: `${scenario.name}, a ${provider}`,
        usually: differs[scenario.name] ?? never,
        errors: scenario.errors === undefined ? false : never,
        options: {
          ...scenario.options,
          settings: { ...scenario.options?.settings, isolationProvider: provider as ProviderName },
        },
      })),
  ),
  {
    name: 'remove a clone with a branch and a tag that only it has',
    usually: /forgetting|delivered|branch/,
    operation: 'remove-forced',
    options: { settings: { isolationProvider: 'clone' } },
    arrange: async (world) => {
      const { path } = await makeFive(world)
      world.box.raw(path, 'switch', '-q', '-c', 'spike')
      ownCommit(world, path, 'spike.ts')
      world.box.raw(path, 'tag', 'found')
      world.box.raw(path, 'switch', '-q', 'issue-5')
    },
    after: async ({ repo }) => expect(repo.git('tag', '--list')).toBe(''),
  },
]
