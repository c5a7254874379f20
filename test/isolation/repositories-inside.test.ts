import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { makeWorld, type World } from '../helpers/world.ts'
import { type Inside, inside, issue, refusal, remove, removed, thereAndBack } from './scene.ts'
import { describeReason } from '../../src/commands/views/reasons.ts'

const prepare = {
  remote: true,
  prepare: (repo: { commit(file: string, text: string): unknown }) =>
    void repo.commit('.gitignore', 'ign/\nnode_modules/\n'),
}

const lib = 'node_modules/@scope/lib'

const cloneInto = (world: World, tree: Inside, name: string, ...options: string[]): Inside => {
  world.box.raw(world.box.root, 'clone', '-q', ...options, world.box.path('origin.git'), join(tree.path, name))
  return inside(world, { path: join(tree.path, name) })
}

/** What was done in a clone of a remote that has all of its commits. */
const works: [string, (clone: Inside, world: World) => void, string | ((at: string) => string)][] = [
  ['a commit', (clone) => void clone.commit('a', 'a\n'), '1 commit on no remote'],
  [
    'a commit on a detached HEAD',
    (clone) => {
      clone.git('switch', '-q', '--detach')
      clone.commit('a', 'a\n')
    },
    '1 commit on no remote',
  ],
  [
    'a commit that only its reflog knows',
    (clone) => {
      clone.commit('a', 'a\n')
      clone.git('reset', '-q', '--hard', 'HEAD~1')
    },
    '1 commit on no remote',
  ],
  [
    'a commit under a tag',
    (clone) => {
      clone.git('switch', '-q', '--detach')
      clone.commit('a', 'a\n')
      clone.git('tag', 'mine')
      clone.git('switch', '-q', 'main')
      clone.git('reflog', 'expire', '--expire=now', '--all')
    },
    '1 commit on no remote',
  ],
  [
    'a tag on a file',
    (clone) => void clone.git('tag', 'notes', clone.git('hash-object', '-w', 'README')),
    'refs/tags/notes is on no remote',
  ],
  [
    'a stash',
    (clone) => {
      clone.write('README', 'stashed\n')
      clone.git('stash', '-q')
    },
    '2 commits on no remote',
  ],
  ['an edit', (clone) => clone.write('README', 'edited\n'), '1 file changed'],
  [
    'an edit behind assume-unchanged',
    (clone) => {
      clone.git('update-index', '--assume-unchanged', 'README')
      clone.write('README', 'edited\n')
    },
    '1 file changed',
  ],
  ['an untracked file', (clone) => clone.write('draft', 'draft\n'), '1 untracked'],
  ['a bisect', (clone) => void clone.git('bisect', 'start'), 'a bisect is in progress'],
  [
    'a promise of objects that only its remote has',
    (clone) => void clone.git('config', 'extensions.partialClone', 'origin'),
    'it is a partial clone',
  ],
  [
    'a worktree of its own',
    (clone, world) => void clone.git('worktree', 'add', '-q', '--detach', world.box.path('elsewhere')),
    'it has worktrees of its own',
  ],
  [
    'a repository with a commit deep in it',
    (clone, world) => {
      mkdirSync(join(clone.path, 'vendor/x'), { recursive: true })
      writeFileSync(join(clone.path, '.git/info/exclude'), 'vendor/\n')
      const inner = inside(world, { path: join(clone.path, 'vendor/x') })
      inner.git('init', '-q')
      inner.commit('a', 'a\n')
    },
    (at) => `${at}/vendor/x: 1 commit on no remote`,
  ],
  [
    'a submodule with a commit',
    (clone, world) => {
      const module = join(clone.path, '.git/modules/sub')
      world.box.raw(clone.path, 'clone', '-q', '--bare', clone.path, module)
      world.box.raw(module, 'config', 'core.bare', 'false')
    },
    (at) => `${at}/.git/modules/sub: 2 commits on no remote`,
  ],
]

describe('a clone in node_modules', () => {
  test('with any work of its own keeps the tree, and the refusal says why of each', async () => {
    await using world = await makeWorld(prepare)
    const environment = await issue(world, 42)
    const tree = inside(world, environment)
    const all = works.map(([what, change, why], i) => {
      // Each of them has objects of its own.
      const at = `${lib}-${String(i).padStart(2, '0')}`
      change(cloneInto(world, tree, at), world)
      const said = `no-repository-inside no: it contains a repository: ${at} (${typeof why === 'string' ? why : why(at)})`
      return { what, said }
    })
    const reasons = await refusal(world, environment, { dryRun: true })
    expect(all.filter(({ said }) => !reasons.includes(said))).toEqual([])
    expect(reasons.toSorted()).toEqual(all.map(({ said }) => said).toSorted())
  })

  test('with so many others that nobody looks into all of them keeps the tree', async () => {
    await using world = await makeWorld(prepare)
    const environment = await issue(world, 42)
    const { path } = cloneInto(world, inside(world, environment), lib)
    for (let i = 0; i < 50; i += 1) cpSync(path, `${path}-${i}`, { recursive: true })
    expect(await refusal(world, environment, { dryRun: true })).toEqual([
      expect.stringContaining('(unknown: too many repositories to check)'),
    ])
  })

  test('without work of its own does not, and is kept: its remote may have deleted what only it still has', async () => {
    await using world = await makeWorld(prepare)
    const environment = await issue(world, 42)
    const clone = cloneInto(world, inside(world, environment), lib)
    clone.git('checkout', '-q', '-b', 'pushed')
    const sha = clone.commit('a', 'pushed, and deleted there since\n')
    clone.git('push', '-q', 'origin', 'pushed')
    const origin = clone.git('remote', 'get-url', 'origin')
    world.box.raw(origin, 'update-ref', '-d', 'refs/heads/pushed')
    const { leftOut, restorePoint } = await removed(world, environment)
    expect(leftOut).toEqual([{ path: 'node_modules/', reason: 'can be regenerated' }])
    const back = inside(world, (await world.provider.restore(restorePoint)).environment)
    expect(world.box.raw(join(back.path, lib), 'cat-file', '-t', sha)).toBe('commit')
  })

  test('that another one borrows its objects from is kept with it', async () => {
    await using world = await makeWorld(prepare)
    const environment = await issue(world, 42)
    const tree = inside(world, environment)
    const lender = cloneInto(world, tree, lib)
    world.box.raw(tree.path, 'clone', '-q', '--shared', lender.path, join(tree.path, 'ign/borrower'))
    const expected =
      'no-repository-inside no: it contains a repository: ign/borrower (it borrows objects from another repository)'
    expect(await refusal(world, environment)).toEqual([expected])
    const back = await thereAndBack(world, environment)
    expect(inside(world, { path: join(back.path, 'ign/borrower') }).git('status', '--short')).toBe('')
  })

  test('in which a commit is made while the tree is being removed brings everything back', async () => {
    let late: (() => void) | undefined
    await using world = await makeWorld({
      ...prepare,
      context: { failpoint: async (name) => void (name === 'remove.saved' && late?.()) },
    })
    const environment = await issue(world, 42)
    const clone = cloneInto(world, inside(world, environment), lib)
    late = () => void clone.git('commit', '-q', '--allow-empty', '-m', 'late')
    expect(await refusal(world, environment)).toEqual(['nothing-uncommitted no: it changed while it was being removed'])
    expect(clone.git('log', '-1', '--format=%s')).toBe('late')
  })
})

/** One tree for all of them: a dry run changes nothing. */
const oddities: [string, (tree: Inside, world: World) => void, string | undefined][] = [
  [
    'a .git that leads nowhere',
    (tree) => tree.write('ign/x/.git', 'gitdir: /nowhere/at/all\n'),
    'ign/x (unknown: ign/x/.git leads nowhere)',
  ],
  [
    'a .git file that is larger than any path',
    (tree) => tree.write('ign/x/.git', `gitdir: ${'\n'.repeat(100_000)}x`),
    'ign/x (unknown: ',
  ],
  [
    'a .git that is a FIFO',
    (tree) => {
      mkdirSync(join(tree.path, 'ign/x'), { recursive: true })
      execFileSync('mkfifo', [join(tree.path, 'ign/x/.git')])
    },
    'ign/x (unknown: ',
  ],
  [
    'a .git that is a link to a repository',
    (tree, world) => {
      mkdirSync(join(tree.path, 'ign/x'), { recursive: true })
      symlinkSync(join(world.repo.path, '.git'), join(tree.path, 'ign/x/.git'))
    },
    'ign/x (',
  ],
  [
    'a copy of the tree itself',
    (tree) => {
      mkdirSync(join(tree.path, 'ign/x'), { recursive: true })
      for (const name of ['.git', 'README']) cpSync(join(tree.path, name), join(tree.path, 'ign/x', name))
    },
    'ign/x (unknown: it is a copy of a worktree)',
  ],
  [
    'a repository with its git directory beside it',
    (tree, world) => {
      mkdirSync(join(tree.path, 'ign/x'), { recursive: true })
      world.box.raw(
        tree.path,
        'init',
        '-q',
        '--separate-git-dir',
        join(tree.path, 'ign/x/store'),
        join(tree.path, 'ign/x/files'),
      )
      inside(world, { path: join(tree.path, 'ign/x/files') }).commit('a', 'a\n')
    },
    'ign/x/files (1 commit on no remote)',
  ],
  [
    'a bare repository in an untracked directory',
    (tree, world) => {
      world.box.raw(tree.path, 'clone', '-q', '--bare', world.repo.path, join(tree.path, 'ign/x'))
    },
    'ign/x (',
  ],
  [
    'a name that is not UTF-8',
    (tree) => {
      const path = Buffer.from(`${tree.path}/ign/x/\xff`, 'latin1')
      mkdirSync(path, { recursive: true })
      mkdirSync(Buffer.concat([path, Buffer.from('/.git')]))
    },
    '(unknown: its name is not UTF-8)',
  ],
  [
    'directories that only look a little like git’s',
    (tree) => {
      tree.write('ign/x/HEAD', 'x')
      tree.write('ign/x/refs/a', 'x')
    },
    undefined,
  ],
]

test('whatever cannot be asked about itself keeps the tree, and nothing else does', async () => {
  await using world = await makeWorld(prepare)
  const environment = await issue(world, 42)
  const tree = inside(world, environment)
  const unexpected: Record<string, string> = {}
  for (const [what, plant, detail] of oddities) {
    plant(tree, world)
    const outcome = await remove(world, environment, { dryRun: true })
    const said = outcome.outcome === 'refused' ? outcome.reasons.map(describeReason).join('\n') : ''
    const isExpected = detail === undefined ? said === '' : said.includes(detail)
    if (!isExpected) unexpected[what] = said
    rmSync(join(tree.path, 'ign'), { recursive: true })
  }
  expect(unexpected).toEqual({})
})

test('files that look like a bare repository and are all tracked are no repository', async () => {
  await using world = await makeWorld(prepare)
  const environment = await issue(world, 42)
  const tree = inside(world, environment)
  world.box.raw(tree.path, 'clone', '-q', '--bare', world.repo.path, join(tree.path, 'fixtures/repo'))
  tree.write('fixtures/repo/refs/heads/.keep', '')
  tree.git('add', '-A')
  tree.git('commit', '-q', '-m', 'fixtures')
  expect(await remove(world, environment, { dryRun: true })).toMatchObject({ outcome: 'would-remove' })
  tree.write('fixtures/repo/objects/00/new', 'an object\n')
  expect(await refusal(world, environment, { dryRun: true })).toContainEqual(
    expect.stringContaining('it contains a repository: fixtures/repo'),
  )
})

test('a worktree that lost its .git, and one that somebody moved by hand, still keep the tree, and are never forced away', async () => {
  await using world = await makeWorld(prepare)
  const environment = await issue(world, 42)
  const tree = inside(world, environment)
  const path = join(tree.path, 'ign/a')
  world.repo.git('worktree', 'add', '-q', '--detach', path)
  rmSync(join(path, '.git'))
  const lost = 'no-worktree-inside no: it contains a worktree: ign/a'
  expect(await refusal(world, environment, { force: true })).toEqual([lost])
  tree.git('worktree', 'add', '-q', '--detach', join(tree.path, 'ign/x'))
  const inner = inside(world, { path: join(tree.path, 'ign/x') })
  inner.commit('only-here', 'only here\n')
  renameSync(inner.path, join(tree.path, 'ign/y'))
  const reasons = await refusal(world, environment, { force: true })
  expect(reasons).toContain(lost)
  expect(reasons.map((reason) => reason.split(' ')[0])).toEqual(['no-worktree-inside', 'no-worktree-inside'])
})

test('a bare repository whose HEAD was lost is still seen', async () => {
  await using world = await makeWorld(prepare)
  const environment = await issue(world, 42)
  const tree = inside(world, environment)
  const bare = join(tree.path, 'node_modules/store')
  world.box.raw(tree.path, 'clone', '-q', '--bare', world.repo.path, bare)
  rmSync(join(bare, 'HEAD'))
  expect((await refusal(world, environment)).join()).toContain('no-repository-inside')
})
