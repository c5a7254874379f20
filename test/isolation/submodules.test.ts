import { existsSync, lstatSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { toRepoPath } from '../../src/domain/names.ts'
import { askRemoteRefs } from '../../src/git/remote-refs.ts'
import { listWithFacts } from '../../src/isolation/facts.ts'
import { isClean } from '../../src/domain/removal/uncommitted.ts'
import { trustEnvironment } from '../../src/isolation/providers/checkout/trust-environment.ts'
import { type TestRepo, writeIn } from '../helpers/repo.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { type Inside, inside, issue, refusal, remove, removed, resolved, thereAndBack } from './scene.ts'
import { inWords } from '../helpers/words.ts'

describe.concurrent('submodules', () => {
  /** As `worktree list` shows it: never clean where a removal would be refused. */
  const isListedClean = async (world: World): Promise<boolean> => {
    const [facts] = await listWithFacts(world.context, world.codebase)
    if (facts?.dirty === undefined) throw new Error('it could not be looked at')
    return isClean(facts.dirty)
  }

  const withSubmodule = (more?: string | ((lib: TestRepo) => void)) =>
    makeWorld({
      prepare: (repo, box) => {
        const lib = box.repo('lib')
        lib.commit('lib.c', 'int x;\n')
        if (typeof more === 'function') more(lib)
        repo.git('submodule', '--quiet', 'add', box.path('lib'), 'lib')
        repo.git('commit', '-q', '-m', 'lib')
        if (typeof more === 'string') repo.commit('.coppice/config.yaml', more)
      },
    })

  test('a submodule with unpushed commits keeps the tree, and its commits come back', async () => {
    await using world = await withSubmodule()
    const environment = await issue(world, 42)
    const lib = inside(world, { path: join(environment.path, 'lib') })
    expect(lib.read('lib.c')).toBe('int x;\n')
    lib.git('switch', '-q', '-c', 'work')
    const commit = lib.commit('lib.c', 'int y;\n')
    const reasons = await refusal(world, environment)
    expect(reasons).toContain('nothing-unreachable no: 1 commit in submodule lib that no remote has')
    inside(world, environment).git('commit', '-q', '-a', '-m', 'lib')
    expect(await isListedClean(world)).toBe(false)
    const back = await thereAndBack(world, environment)
    const again = inside(world, { path: join(back.path, 'lib') })
    expect(again.git('rev-parse', 'work')).toBe(commit)
    expect(again.read('lib.c')).toBe('int y;\n')
  })

  test('a submodule with changed and untracked files keeps the tree, and they come back', async () => {
    await using world = await withSubmodule()
    const environment = await issue(world, 42)
    const lib = inside(world, { path: join(environment.path, 'lib') })
    lib.write('lib.c', 'int changed;\n')
    lib.write('draft.c', 'int draft;\n')
    expect(await refusal(world, environment)).toContain('nothing-uncommitted no: submodule lib has changes')
    expect(await isListedClean(world)).toBe(false)
    const back = await thereAndBack(world, environment)
    const again = inside(world, { path: join(back.path, 'lib') })
    expect(again.git('status', '--short').split('\n')).toEqual([' M lib.c', '?? draft.c'])
    expect(again.read('lib.c')).toBe('int changed;\n')
    expect(again.git('rev-parse', '--git-dir')).not.toContain('/project/.git\n')
  })

  test('what only a submodule has keeps the tree, whichever ref or reflog has it; tags it came with do not', async () => {
    await using world = await withSubmodule((lib) => {
      lib.git('checkout', '-q', '--detach')
      lib.commit('release.c', 'int release;\n')
      lib.git('tag', '-a', '-m', 'a release on no branch', 'v1')
      lib.git('tag', 'a-file', 'HEAD:release.c')
      lib.git('checkout', '-q', 'main')
    })
    const things: Record<string, (lib: Inside) => void> = {
      '1 commit that only tags in submodule lib have': (lib) => {
        lib.commit('lib.c', 'int y;\n')
        lib.git('tag', 'mine')
        lib.git('checkout', '-q', 'origin/main')
      },
      '2 commits that only the reflog of submodule lib has': (lib) => {
        lib.commit('lib.c', 'int y;\n')
        lib.commit('lib.c', 'int z;\n')
        lib.git('reset', '-q', '--hard', 'origin/main')
      },
      'submodule lib has worktrees of its own': (lib) =>
        void lib.git('worktree', 'add', '-q', '--detach', world.box.path('of-lib')),
      'refs/tags/mine in submodule lib was not pushed': (lib) => void lib.git('tag', 'mine', 'HEAD:lib.c'),
    }
    for (const [number, [reason, make]] of Object.entries(things).entries()) {
      const environment = await issue(world, number + 1)
      make(inside(world, { path: join(environment.path, 'lib') }))
      expect(await refusal(world, environment)).toEqual([`nothing-unreachable no: ${reason}`])
    }
    const environment = await issue(world, 42)
    const lib = inside(world, { path: join(environment.path, 'lib') })
    expect(lib.git('tag').split('\n')).toEqual(['a-file', 'v1'])
    const { restorePoint } = await removed(world, environment)
    // The list of tags comes back with the submodule.
    const { environment: back } = await world.provider.restore(restorePoint)
    // As an earlier version, or `git submodule update`, leaves it: then the remote is asked.
    const list = join(inside(world, back).git('rev-parse', '--git-dir'), 'modules/lib/coppice-tags')
    expect(existsSync(list)).toBe(true)
    rmSync(list)
    await removed(world, back)
  })

  test('a submodule that is pinned to a commit on no branch keeps nothing that nobody worked in', async () => {
    await using world = await makeWorld({
      prepare: (repo, box) => {
        const lib = box.repo('lib')
        lib.commit('lib.c', 'int x;\n')
        lib.git('checkout', '-q', '--detach')
        const pinned = lib.commit('lib.c', 'int pinned;\n')
        lib.git('update-ref', 'refs/pull/1/head', pinned)
        lib.git('config', 'uploadpack.allowAnySHA1InWant', 'true')
        lib.git('checkout', '-q', 'main')
        repo.git('submodule', '--quiet', 'add', box.path('lib'), 'lib')
        box.raw(join(repo.path, 'lib'), 'fetch', '-q', 'origin', 'refs/pull/1/head')
        box.raw(join(repo.path, 'lib'), 'checkout', '-q', pinned)
        repo.git('add', 'lib')
        repo.git('commit', '-q', '-m', 'lib')
      },
    })
    await removed(world, await issue(world, 1))
  })

  test('what a submodule has in tags alone can be pushed, and then the tree can go', async () => {
    await using world = await withSubmodule(() => undefined)
    const environment = await issue(world, 1)
    const lib = inside(world, { path: join(environment.path, 'lib') })
    lib.commit('lib.c', 'int y;\n')
    lib.git('tag', 'mine')
    lib.git('checkout', '-q', 'origin/main')
    const outcome = await remove(world, environment)
    if (outcome.outcome !== 'refused') throw new Error(outcome.outcome)
    const [{ fact } = {}] = outcome.reasons
    if (fact?.kind !== 'submodule-commits') throw new Error(JSON.stringify(fact))
    const { submodule } = fact
    expect(submodule).toMatchObject({ gitDir: expect.stringMatching(/modules\/lib$/) as string, remote: 'origin' })
    expect(fact.tips).toMatchObject([{ at: 'tag', ref: 'refs/tags/mine', isFree: true }])
    // An agent can write the address: over ssh the user's keys would be offered there.
    const origin = lib.git('remote', 'get-url', 'origin')
    lib.git('remote', 'set-url', 'origin', 'ssh://git@localhost/x.git')
    const repo = { commonDir: toRepoPath(submodule.gitDir) }
    const asked = askRemoteRefs(world.context.git, repo, 'origin', { anonymous: true })
    await expect(asked).rejects.toThrow("transport 'ssh' not allowed")
    expect((await remove(world, environment)).outcome).toBe('refused')
    lib.git('remote', 'set-url', 'origin', origin)
    lib.git('push', '-q', 'origin', '--tags')
    await removed(world, environment)
  })

  test('a person who trusts a worktree gets the submodules that are missing, and no other moves', async () => {
    await using world = await makeWorld({
      remote: true,
      prepare: (repo, box) => {
        box.repo('deep').commit('deep.c', 'int x;\n')
        const lib = box.repo('lib')
        lib.commit('lib.c', 'int x;\n')
        lib.git('submodule', '--quiet', 'add', box.path('deep'), 'deep')
        lib.git('commit', '-q', '-m', 'deep')
        for (const name of ['lib', 'other']) repo.git('submodule', '--quiet', 'add', box.path('lib'), name)
        repo.git('commit', '-q', '-m', 'lib')
      },
    })
    const theirs = world.repo.git('commit-tree', '-m', 'theirs', '-p', 'HEAD', 'HEAD^{tree}')
    world.repo.git('push', '-q', 'origin', ...[1, 2, 3, 4].map((number) => `${theirs}:refs/pull/${number}/head`))
    const trusted = async (number: number, work: (tree: Inside, lib: Inside) => void) => {
      const { environment } = await resolved(world, 'pr', number, { hints: { isForkPR: true } })
      const tree = inside(world, environment)
      expect(tree.has('lib/lib.c')).toBe(false)
      const lib = inside(world, { path: join(tree.path, 'lib') })
      work(tree, lib)
      const { notices } = inWords(await trustEnvironment(world.context, world.codebase, environment))
      expect(tree.read('other/deep/deep.c')).toBe('int x;\n')
      return { tree, lib, notices }
    }
    let commit = ''
    const committed = await trusted(1, (tree, lib) => {
      tree.git('submodule', '--quiet', 'update', '--init', 'lib')
      commit = lib.commit('lib.c', 'int mine;\n')
    })
    expect(committed.lib.git('rev-parse', 'HEAD')).toBe(commit)
    expect(committed.tree.has('lib/deep/deep.c')).toBe(true)
    expect(committed.notices).toEqual([])

    const written = await trusted(2, (tree) => tree.write('lib/lib.c', 'int mine;\n'))
    expect(written.tree.read('lib/lib.c')).toBe('int mine;\n')
    expect(written.notices).toEqual(['Submodule lib was not fetched: there are files in its directory.'])

    const emptied = await trusted(3, (tree, lib) => {
      tree.git('submodule', '--quiet', 'update', '--init', 'lib')
      commit = lib.commit('lib.c', 'int mine;\n')
      tree.git('submodule', '--quiet', 'deinit', '-f', 'lib')
    })
    const gitDir = emptied.tree.git('rev-parse', '--absolute-git-dir')
    expect(emptied.tree.git('--git-dir', join(gitDir, 'modules/lib'), 'rev-parse', 'HEAD')).toBe(commit)
    expect(emptied.notices.join()).toContain('Submodule lib was not fetched: its repository is still there')

    const replaced = await trusted(4, (tree) => {
      rmSync(join(tree.path, 'lib'), { recursive: true })
      symlinkSync(world.box.path('elsewhere'), join(tree.path, 'lib'))
    })
    expect(replaced.notices).toEqual(['Submodule lib was not fetched: something else is in its place.'])
  })

  const places: [
    string,
    { brought: boolean; made: (tree: Inside, world: World) => void; refused: RegExp; seen: string[] },
  ][] = [
    [
      'files in a submodule that was never fetched',
      {
        brought: false,
        made: (tree) => tree.write('lib/p', 'precious\n'),
        refused: /submodule lib has files but no \.git/,
        seen: ['lib/p', 'precious\n'],
      },
    ],
    [
      'a link in a submodule that was never fetched',
      {
        brought: false,
        made: (tree) => symlinkSync('precious', join(tree.path, 'lib/p')),
        refused: /submodule lib has files but no \.git/,
        seen: ['lib/p', '-> precious'],
      },
    ],
    [
      'files of a submodule whose .git was deleted',
      {
        brought: true,
        made: (tree) => {
          tree.write('lib/new.c', 'precious\n')
          rmSync(join(tree.path, 'lib/.git'))
        },
        refused: /submodule lib has files but no \.git/,
        seen: ['lib/new.c', 'precious\n', 'lib/lib.c', 'int x;\n', 'lib/.git', 'none'],
      },
    ],
    [
      'files in a submodule of a submodule that was never fetched',
      {
        brought: true,
        made: (tree) => {
          tree.git('-C', 'lib', 'update-index', '--add', '--cacheinfo', `160000,${tree.git('rev-parse', 'HEAD')},deep`)
          tree.git('-C', 'lib', 'commit', '-q', '-m', 'deep')
          tree.git('-C', 'lib', 'push', '-q', 'origin', 'HEAD:refs/heads/deep')
          tree.git('commit', '-q', '-a', '-m', 'deep')
          tree.write('lib/deep/p', 'precious\n')
        },
        refused: /submodule lib\/deep has files but no \.git/,
        seen: ['lib/deep/p', 'precious\n', 'lib/lib.c', 'int x;\n'],
      },
    ],
    [
      'a file in place of a submodule',
      {
        brought: false,
        made: (tree) => {
          rmSync(join(tree.path, 'lib'), { recursive: true })
          tree.write('lib', 'precious\n')
        },
        refused: /submodule lib/,
        seen: ['lib', 'precious\n'],
      },
    ],
    [
      'a link in place of a submodule',
      {
        brought: false,
        made: (tree) => {
          rmSync(join(tree.path, 'lib'), { recursive: true })
          symlinkSync('precious', join(tree.path, 'lib'))
        },
        refused: /submodule lib/,
        seen: ['lib', '-> precious'],
      },
    ],
    [
      'a file in place of a submodule, not shown by git',
      {
        brought: false,
        made: (tree) => {
          tree.git('update-index', '--assume-unchanged', 'lib')
          rmSync(join(tree.path, 'lib'), { recursive: true })
          tree.write('lib', 'precious\n')
        },
        refused: /skip-worktree or timestamps: lib/,
        seen: ['lib', 'precious\n'],
      },
    ],
    [
      'a file in place of a submodule that was fetched',
      {
        brought: true,
        made: (tree) => {
          rmSync(join(tree.path, 'lib'), { recursive: true })
          tree.write('lib', 'precious\n')
        },
        refused: /submodule lib is at another commit/,
        seen: ['lib', 'precious\n'],
      },
    ],
    [
      'a link to a directory elsewhere in place of a submodule that was fetched',
      {
        brought: true,
        made: (tree, { box }) => {
          rmSync(join(tree.path, 'lib'), { recursive: true })
          writeIn(box.path('elsewhere'), 'gold', 'gold\n')
          symlinkSync(box.path('elsewhere'), join(tree.path, 'lib'))
        },
        refused: /submodule lib/,
        seen: ['lib/gold', 'gold\n', 'lib/.git', 'none'],
      },
    ],
    [
      'files committed in place of a submodule',
      {
        brought: true,
        made: (tree) => {
          rmSync(join(tree.path, 'lib/.git'))
          tree.git('rm', '-q', '--cached', 'lib')
          tree.git('add', 'lib')
          tree.git('commit', '-q', '-m', 'vendor')
          tree.write('lib/lib.c', 'precious\n')
        },
        refused: /1 file changed/,
        seen: ['lib/lib.c', 'precious\n', 'lib/.git', 'none'],
      },
    ],
  ]
  test.for(places)('%s keep the tree, and come back', async ([, { brought, made, refused, seen }]) => {
    await using world = await withSubmodule(`worktree:\n  submodules: ${brought}\n`)
    const environment = await issue(world, 42)
    made(inside(world, environment), world)
    expect((await refusal(world, environment)).join('\n')).toMatch(refused)
    expect(await isListedClean(world)).toBe(false)
    const back = await thereAndBack(world, environment)
    const found = (path: string): string => {
      const at = lstatSync(join(back.path, path), { throwIfNoEntry: false })
      if (at === undefined) return 'none'
      return at.isSymbolicLink() ? `-> ${readlinkSync(join(back.path, path))}` : back.read(path)
    }
    expect(seen.map((text, i) => (i % 2 === 0 ? text : found(seen[i - 1] ?? '')))).toEqual(seen)
  })

  test('a repository with commits of its own, added like a submodule, keeps the tree', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    const tree = inside(world, environment)
    tree.git('init', '-q', 'own')
    inside(world, { path: join(environment.path, 'own') }).commit('a', 'precious\n')
    tree.git('-c', 'advice.addEmbeddedRepo=false', 'add', 'own')
    tree.git('commit', '-q', '-m', 'own')
    expect((await refusal(world, environment)).join()).toContain('it contains a repository: own')
    expect(await isListedClean(world)).toBe(false)
  })

  test('a clean environment with submodules is listed as clean, and comes back with them', async () => {
    await using world = await withSubmodule()
    const environment = await issue(world, 42)
    expect(await isListedClean(world)).toBe(true)
    const back = await thereAndBack(world, environment)
    expect(back.read('lib/lib.c')).toBe('int x;\n')
    expect(back.git('status', '--short')).toBe('')
  })
})
