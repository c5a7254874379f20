import { existsSync, lstatSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deleteCommand } from '../../src/cli/commands/delete.ts'
import { examineHome } from '../../src/cli/doctor/records.ts'
import { recoverRepositoryClones } from '../../src/isolation/codebases/clone-repository.ts'
import { reconcile } from '../../src/isolation/reconcile.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { discardDirectory } from '../../src/isolation/trash/trash.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { inside, issue, messageOf, remove, removed } from './scene.ts'

let world: World
beforeAll(async () => {
  world = await makeWorld()
  await issue(world, 1)
})
afterAll(() => world[Symbol.asyncDispose]())

const inTrash = (name: string): string => join(world.context.worktreesBase, '.trash', name)
const inodeOf = (path: string): string => String(lstatSync(path, { bigint: true }).ino)

/** A directory with something precious in it. */
const precious = (path: string): string => {
  mkdirSync(path, { recursive: true })
  writeFileSync(join(path, 'gold'), 'gold\n')
  return path
}

const worktreeMovedTo = (name: string, to: (path: string) => string): string => {
  const { path } = world.repo.worktree(name, '-b', name)
  writeFileSync(join(path, 'gold'), 'gold\n')
  mkdirSync(dirname(to(path)), { recursive: true })
  const target = to(path)
  world.repo.git('worktree', 'move', path, target)
  return target
}

/** Each answers where it lies; something precious is in it. */
const strangers: [string, () => string][] = [
  ['a worktree that was moved there', () => worktreeMovedTo('moved', () => inTrash('gone-mine'))],
  [
    'a worktree that was moved there under a name that we would give it',
    () => worktreeMovedTo('named', (path) => inTrash(`gone-named.${inodeOf(path)}`)),
  ],
  [
    'a worktree that was moved there without git',
    () => {
      const { path } = world.repo.worktree('by-hand', '-b', 'by-hand')
      const target = inTrash(`gone-by-hand.${inodeOf(precious(path))}`)
      renameSync(path, target)
      return target
    },
  ],
  ['a directory with the prefix of what is given up', () => precious(inTrash('gone-x'))],
  ["a directory with another one's number", () => precious(inTrash('gone-x.12345678'))],
  ['a directory with another name', () => precious(inTrash('mine'))],
  ['a directory in the trash beside worktrees', () => precious(world.box.path('trees/project/.trash/gone-x.1'))],
  [
    'a directory behind a link in place of a trash',
    () => {
      const path = precious(world.box.path('elsewhere/x'))
      const inode = inodeOf(path)
      const target = world.box.path('elsewhere', `gone-x.${inode}`)
      renameSync(path, target)
      mkdirSync(world.box.path('trees/linked'), { recursive: true })
      symlinkSync(world.box.path('elsewhere'), world.box.path('trees/linked/.trash'))
      return world.box.path('trees/linked/.trash', `gone-x.${inode}`)
    },
  ],
  [
    'a directory outside of every trash',
    () => {
      const path = precious(world.box.path('trees/project/x'))
      const target = world.box.path('trees/project', `gone-x.${inodeOf(path)}`)
      renameSync(path, target)
      return target
    },
  ],
  [
    'a trash that is in no root of ours',
    () => {
      const path = precious(world.box.path('foreign/.trash/x'))
      const target = world.box.path('foreign/.trash', `gone-x.${inodeOf(path)}`)
      renameSync(path, target)
      return target
    },
  ],
  ['a directory among the clones', () => precious(join(world.context.home, 'repos/.gone-x'))],
  ['a worktree that is in use', () => precious(world.box.path('trees/project/issue-1'))],
]

/** `coppice internal delete <path>`, as it runs in the background. */
const deleteInBackground = async (...words: string[]): Promise<unknown> => {
  const call = { words, open: async () => ({ context: world.context }) }
  const answered = await deleteCommand.execute(call as never)
  return answered.json(undefined as never)
}

describe('what a person put into the trash is never deleted', () => {
  test.each(strangers)('%s', async (_, put) => {
    const path = put()
    await reconcile(world.context, world.codebase)
    await recoverRepositoryClones(world.context)
    expect(await deleteInBackground(path)).toEqual({ deleted: 0 })
    expect(existsSync(join(path, 'gold'))).toBe(true)
  })

  test('and doctor names it', async () => {
    const findings = await examineHome(world.context, [world.codebase])
    const named = findings.map(({ detail }) => detail).join('\n')
    for (const path of ['gone-mine', 'gone-x', 'gone-x.12345678', 'mine']) expect(named).toContain(inTrash(path))
  })
})

test('what was given up goes, also when a new worktree has the name of its record', async () => {
  const reaped: string[] = []
  const context = { ...world.context, deleteInBackground: (paths: readonly string[]) => void reaped.push(...paths) }
  const slow: World = { ...world, context, provider: createEnvironments(context) }
  const environment = await issue(slow, 2)
  await removed(slow, environment)
  expect((await issue(slow, 2)).path).toBe(environment.path)
  expect(reaped).toHaveLength(1)
  const discarded = await discardDirectory(
    world.context.worktreesBase,
    precious(world.box.path('trees/project/old')),
    'old',
  )
  expect(await deleteInBackground(discarded)).toEqual({ deleted: 1 })
  await reconcile(world.context, world.codebase)
  expect([discarded, ...reaped].filter((path) => existsSync(path))).toEqual([])
  expect(inside(world, environment).git('status', '--short')).toBe('')
})

test('a link in place of the trash takes no worktree anywhere', async () => {
  await using own = await makeWorld()
  const environment = await issue(own, 1)
  mkdirSync(own.box.path('elsewhere'))
  symlinkSync(own.box.path('elsewhere'), own.box.path('trees/.trash'))
  expect(await messageOf(remove(own, environment))).toContain('is a link, so nothing can be moved to the trash')
  expect(readdirSync(own.box.path('elsewhere'))).toEqual([])
  expect(inside(own, environment).git('status', '--short')).toBe('')
})

test('doctor suggests to delete no directory of another tool that has worktrees or a checkout in it', async () => {
  await using other = await makeWorld()
  const { codebase, context, provider } = other
  const place = other.box.path(`archon/${codebase.name}`)
  for (const name of ['issue-1', 'feature/login']) {
    other.repo.git('worktree', 'add', '-q', join(place, name), '-b', name)
  }
  const own = { branchOrigin: 'created' } as const
  await provider.adopt(codebase, join(place, 'issue-1'), { createdBy: 'archon', aliases: [], own })
  expect(await examineHome(context, [codebase])).toEqual([])
  const left = precious(join(place, 'left'))
  expect(await examineHome(context, [codebase])).toMatchObject([{ remedy: expect.stringContaining(left) }])
  expect(await examineHome(context, [{ ...codebase, checkoutPath: place }])).toEqual([])
})
