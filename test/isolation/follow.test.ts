import { mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeWorld, type World } from '../helpers/world.ts'
import { type Inside, inside, resolved } from './scene.ts'

/*
 * A pull request's head moves to a commit that a stranger chose. What the tree holds beyond its commits stays. One world:
 * each row has a pull request of its own.
 */

let world: World
let fork: Inside
beforeAll(async () => {
  world = await makeWorld({
    remote: true,
    settings: { worktreesPerCodebase: 100 },
    prepare: (repo, box) => {
      box.repo('lib').commit('.gitignore', '*.log\n')
      repo.git('submodule', '--quiet', 'add', box.path('lib'), 'lib')
      repo.commit('.gitignore', 'ign/\nlink\n*.log\n')
      repo.commit('pkg/f', 'f\n')
    },
  })
  world.box.raw(world.box.root, 'clone', '-q', world.box.path('origin.git'), world.box.path('fork'))
  fork = inside(world, { path: world.box.path('fork') })
})
afterAll(() => world[Symbol.asyncDispose]())

let pulls = 0
/** A review of a new pull request, and what becomes of it when the head moves. */
const review = async () => {
  const number = (pulls += 1)
  const push = (): string => {
    fork.git('push', '-q', '--force', 'origin', `HEAD:refs/pull/${number}/head`)
    return fork.git('rev-parse', 'HEAD')
  }
  const ask = (prSha: string) => resolved(world, 'pr', number, { hints: { isForkPR: true, prBranch: 'x', prSha } })
  fork.git('reset', '-q', '--hard', 'origin/main')
  fork.commit('one', `${number}\n`)
  const first = push()
  const { environment } = await ask(first)
  const tree = inside(world, environment)
  const move = async (how: How, change: (fork: Inside) => void) => {
    if (how === 'rewritten') fork.git('reset', '-q', '--hard', 'origin/main')
    change(fork)
    const target = push()
    const { notices } = await ask(target)
    const head = tree.git('rev-parse', 'HEAD')
    return { notices: notices.join(), isMoved: head === target, isLeft: head === first }
  }
  return { tree, move }
}

const hows = ['moved on', 'rewritten'] as const
type How = (typeof hows)[number]

/** Tracks a file there, whatever was. */
const fileAt =
  (path: string) =>
  (at: Inside): void => {
    const [top = ''] = path.split('/')
    at.git('rm', '-rq', '--cached', '--ignore-unmatch', top)
    rmSync(join(at.path, top), { recursive: true, force: true })
    at.commit(path, 'theirs\n')
  }

type Row = { readonly lay: (tree: Inside) => void; readonly kept: string; readonly change: (fork: Inside) => void }
const ignored = (path: string) => (tree: Inside) => tree.write(path, 'precious\n')

const rows: Record<string, Row> = {
  'an ignored file that it tracks': { lay: ignored('x.log'), kept: 'x.log', change: fileAt('x.log') },
  'a file in an ignored directory': { lay: ignored('ign/a'), kept: 'ign/a', change: fileAt('ign/a') },
  'an ignored directory, for another file in it': { lay: ignored('ign/a'), kept: 'ign/a', change: fileAt('ign/b') },
  'an ignored directory, for a file of that name': { lay: ignored('ign/a'), kept: 'ign/a', change: fileAt('ign') },
  'a directory with an ignored file': { lay: ignored('data/a.log'), kept: 'data/a.log', change: fileAt('data') },
  'the directories above one': { lay: ignored('data/b/c/a.log'), kept: 'data/b/c/a.log', change: fileAt('data/b') },
  'a tracked directory with an ignored file': { lay: ignored('pkg/a.log'), kept: 'pkg/a.log', change: fileAt('pkg') },
  'an ignored file, for a directory of that name': {
    lay: ignored('a.log'),
    kept: 'a.log',
    change: fileAt('a.log/inner'),
  },
  'an ignored link, for a directory of that name': {
    lay: (tree) => {
      mkdirSync(join(tree.path, 'ign'))
      tree.write('ign/a', 'precious\n')
      symlinkSync('ign', join(tree.path, 'link'))
    },
    kept: 'link/a',
    change: fileAt('link/b'),
  },
  'an ignored repository': {
    lay: (tree) => {
      tree.git('init', '-q', 'ign/pkg')
      tree.git('-C', 'ign/pkg', 'commit', '-q', '--allow-empty', '-m', 'only here')
    },
    kept: 'ign/pkg/.git/HEAD',
    change: fileAt('ign'),
  },
  'a repository in a tracked directory': {
    lay: (tree) => {
      tree.git('init', '-q', 'pkg')
      tree.git('-C', 'pkg', 'add', '.')
      tree.git('-C', 'pkg', 'commit', '-q', '-m', 'only here')
    },
    kept: 'pkg/.git/HEAD',
    change: fileAt('pkg'),
  },
  'an empty repository in a tracked directory': {
    lay: (tree) => void tree.git('init', '-q', 'pkg'),
    kept: 'pkg/.git/HEAD',
    change: fileAt('pkg'),
  },
  'a submodule with ignored files': {
    lay: (tree) => {
      tree.git('submodule', '--quiet', 'update', '--init')
      tree.write('lib/a.log', 'precious\n')
    },
    kept: 'lib/a.log',
    change: fileAt('lib'),
  },
  'a submodule': {
    lay: (tree) => void tree.git('submodule', '--quiet', 'update', '--init'),
    kept: 'lib/.git',
    change: fileAt('lib/inner'),
  },
}

describe('a pull request that moved on or was rewritten never replaces', () => {
  test.each(Object.entries(rows))('%s', async (_what, { lay, kept, change }) => {
    const { tree, move } = await review()
    lay(tree)
    for (const how of hows) {
      const { notices, isLeft } = await move(how, change)
      expect({ how, isLeft, kept: tree.has(kept) }).toEqual({ how, isLeft: true, kept: true })
      expect(notices).toMatch(/it would overwrite or delete|there is a repository inside/)
    }
  })
})

test.each(hows)('a pull request that was %s moves what is in nobody’s way', async (how) => {
  const { tree, move } = await review()
  for (const path of ['ign/a', 'pkg/a.log', 'data/a.log']) tree.write(path, 'mine\n')
  tree.git('submodule', '--quiet', 'update', '--init')
  tree.write('lib/a.log', 'mine\n')
  const { isMoved } = await move(how, (at) => {
    for (const path of ['pkg/f', 'data/b', 'ign2', 'two']) at.commit(path, 'theirs\n')
  })
  expect(isMoved).toBe(true)
  for (const path of ['ign/a', 'pkg/a.log', 'data/a.log', 'lib/a.log']) expect(tree.read(path)).toBe('mine\n')
  expect(tree.read('pkg/f')).toBe('theirs\n')
})

test('a submodule that was never fetched gives way to files', async () => {
  const { tree, move } = await review()
  expect(await move('moved on', fileAt('lib/inner'))).toMatchObject({ isMoved: true })
  expect(tree.read('lib/inner')).toBe('theirs\n')
})
