import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { toRepoPath } from '../../src/domain/names.ts'
import { askRemoteRefs } from '../../src/git/remote-refs.ts'
import { listWithFacts } from '../../src/isolation/facts.ts'
import { isClean } from '../../src/domain/removal/uncommitted.ts'
import { trustEnvironment } from '../../src/isolation/providers/checkout/trust-environment.ts'
import { type TestRepo, writeIn } from '../helpers/repo.ts'
import { forgeIndex } from './forge-index.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { type Inside, inside, issue, messageOf, refusal, remove, removed, resolved, thereAndBack } from './scene.ts'
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

  test('a person who trusts a worktree gets the submodules that are missing, and first deals with what is in others', async () => {
    await using world = await makeWorld({
      remote: true,
      prepare: (repo, box) => {
        box.repo('deep').commit('deep.c', 'int x;\n')
        const lib = box.repo('lib')
        lib.commit('src/a.c', 'int x;\n')
        lib.commit('lib.c', 'int x;\n')
        lib.git('submodule', '--quiet', 'add', box.path('deep'), 'deep')
        lib.git('commit', '-q', '-m', 'deep')
        for (const name of ['lib', 'other']) repo.git('submodule', '--quiet', 'add', box.path('lib'), name)
        repo.git('commit', '-q', '-m', 'lib')
      },
    })
    const theirs = world.repo.git('commit-tree', '-m', 'theirs', '-p', 'HEAD', 'HEAD^{tree}')
    world.repo.git(
      'push',
      '-q',
      'origin',
      ...[1, 2, 3, 4, 5, 6, 7, 8].map((number) => `${theirs}:refs/pull/${number}/head`),
    )
    const prepared = async (number: number, work: (tree: Inside, lib: Inside) => void) => {
      const { environment } = await resolved(world, 'pr', number, { hints: { isForkPR: true } })
      const tree = inside(world, environment)
      expect(tree.has('lib/lib.c')).toBe(false)
      const lib = inside(world, { path: join(tree.path, 'lib') })
      work(tree, lib)
      return { environment, tree, lib, trust: () => trustEnvironment(world.context, world.codebase, environment) }
    }
    const trusted = async (...[number, work]: Parameters<typeof prepared>) => {
      const { environment, tree, lib, trust } = await prepared(number, work)
      const { notices } = inWords(await trust())
      expect(tree.read('other/deep/deep.c')).toBe('int x;\n')
      return { environment, tree, lib, notices }
    }
    const refusals: Readonly<Record<string, (tree: Inside, lib: Inside) => unknown>> = {
      'submodule lib is at another commit': (tree, lib) => [
        tree.git('submodule', '--quiet', 'update', '--init', 'lib'),
        lib.commit('lib.c', 'int mine;\n'),
      ],
      'submodule lib has files but no .git': (tree) => tree.write('lib/lib.c', 'int mine;\n'),
      'submodule lib has changes': (tree) => [
        tree.git('clone', '-q', world.box.path('lib'), 'lib'),
        tree.write('lib/planted', 'x'),
      ],
      '1 changed (lib)': (tree) => {
        rmSync(join(tree.path, 'lib'), { recursive: true })
        symlinkSync(world.box.path('elsewhere'), join(tree.path, 'lib'))
      },
    }
    for (const [i, [reason, work]] of Object.entries(refusals).entries()) {
      const { tree, trust } = await prepared(i + 1, work)
      expect(await messageOf(trust())).toContain(reason)
      expect(tree.has('other/deep/deep.c')).toBe(false)
    }

    let commit = ''
    const emptied = await trusted(5, (tree, lib) => {
      tree.git('submodule', '--quiet', 'update', '--init', 'lib')
      commit = lib.commit('lib.c', 'int mine;\n')
      tree.git('submodule', '--quiet', 'deinit', '-f', 'lib')
      // Only its HEAD names the commit.
      const module = join(tree.git('rev-parse', '--absolute-git-dir'), 'modules/lib')
      for (const name of ['index', 'logs', 'packed-refs', 'refs/remotes', 'refs/heads/main', 'modules']) {
        rmSync(join(module, name), { recursive: true, force: true })
      }
    })
    const gitDir = emptied.tree.git('rev-parse', '--absolute-git-dir')
    expect(emptied.tree.git('--git-dir', join(gitDir, 'modules/lib'), 'rev-parse', 'HEAD')).toBe(commit)
    expect(emptied.notices.join()).toContain('Submodule lib was not fetched: its repository is still there')

    // Inside a submodule git lists neither, but runs what the configuration of the first says.
    const planted = await prepared(8, (tree) => {
      tree.git('submodule', '--quiet', 'update', '--init', '--recursive')
      world.box.raw(join(tree.path, 'lib/src'), 'init', '-q')
      execFileSync('mkfifo', [join(tree.path, 'lib/src/pipe')])
    })
    expect(await messageOf(planted.trust())).toContain('2 untracked (lib/src, lib/src/pipe)')

    // Git was killed while it fetched one.
    const half = await trusted(7, (tree) => {
      const modules = join(tree.git('rev-parse', '--absolute-git-dir'), 'modules')
      mkdirSync(modules)
      tree.git('init', '-q', `--separate-git-dir=${join(modules, 'lib')}`, 'lib')
    })
    expect(half.tree.read('lib/lib.c')).toBe('int x;\n')
    // Fetched in depth by the first time.
    await world.context.store.environments.update(half.environment.id, { trust: 'unproven', vouchedLog: undefined })
    const row = await world.context.store.environments.get(half.environment.id)
    if (row === undefined) throw new Error('the row is gone')
    expect((await trustEnvironment(world.context, world.codebase, row)).wasTrusted).toBe(false)

    // A fetched one at its commit is no obstacle, unless a file in it was changed behind a forged index.
    const fetched = await prepared(6, (tree) => tree.git('submodule', '--quiet', 'update', '--init', 'lib'))
    forgeIndex(fetched.lib, 'lib.c', 'int evil;\n')
    expect(await messageOf(fetched.trust())).toContain('1 changed (lib/lib.c)')
    fetched.lib.write('lib.c', 'int x;\n')
    fetched.lib.git('reset', '-q', '--hard')
    await fetched.trust()
    expect(fetched.tree.has('lib/deep/deep.c')).toBe(true)
  })

  /** What was done to a submodule, what the refusal says about it, and what is there again after a restore. */
  type Place = {
    readonly made: (tree: Inside, at: string, world: World) => void
    readonly refused: (at: string) => RegExp
    readonly seen: (at: string) => [path: string, content: string][]
    readonly check?: (submodule: Inside) => void
  }
  const noGit = (at: string): RegExp => new RegExp(`submodule ${at} has files but no \\.git`)
  const inPlace = (at: string): RegExp => new RegExp(`submodule ${at}\\b`)
  const fetched: Record<string, Place> = {
    'unpushed commits': {
      made: (tree, at) => {
        tree.git('-C', at, 'switch', '-q', '-c', 'work')
        tree.write(`${at}/lib.c`, 'int y;\n')
        tree.git('-C', at, 'commit', '-q', '-a', '-m', 'unpushed')
        tree.git('add', at)
        tree.git('commit', '-q', '-m', at)
      },
      refused: (at) => new RegExp(`nothing-unreachable no: 1 commit in submodule ${at} that no remote has`),
      seen: (at) => [[`${at}/lib.c`, 'int y;\n']],
      check: (submodule) => expect(submodule.git('log', '-1', '--format=%s', 'work')).toBe('unpushed'),
    },
    'changed and untracked files': {
      made: (tree, at) => {
        tree.write(`${at}/lib.c`, 'int changed;\n')
        tree.write(`${at}/draft.c`, 'int draft;\n')
      },
      refused: (at) => new RegExp(`nothing-uncommitted no: submodule ${at} has changes`),
      seen: (at) => [[`${at}/lib.c`, 'int changed;\n']],
      check: (submodule) => {
        expect(submodule.git('status', '--short').split('\n')).toEqual([' M lib.c', '?? draft.c'])
        expect(submodule.git('rev-parse', '--git-dir')).not.toContain('/project/.git\n')
      },
    },
    'files of one whose .git was deleted': {
      made: (tree, at) => {
        tree.write(`${at}/new.c`, 'precious\n')
        rmSync(join(tree.path, at, '.git'))
      },
      refused: noGit,
      seen: (at) => [
        [`${at}/new.c`, 'precious\n'],
        [`${at}/lib.c`, 'int x;\n'],
        [`${at}/.git`, 'none'],
      ],
    },
    'files in a submodule of a submodule that was never fetched': {
      made: (tree, at) => {
        tree.git('-C', at, 'update-index', '--add', '--cacheinfo', `160000,${tree.git('rev-parse', 'HEAD')},deep`)
        tree.git('-C', at, 'commit', '-q', '-m', 'deep')
        tree.git('-C', at, 'push', '-q', 'origin', 'HEAD:refs/heads/deep')
        tree.git('add', at)
        tree.git('commit', '-q', '-m', 'deep')
        tree.write(`${at}/deep/p`, 'precious\n')
      },
      refused: (at) => noGit(`${at}/deep`),
      seen: (at) => [
        [`${at}/deep/p`, 'precious\n'],
        [`${at}/lib.c`, 'int x;\n'],
      ],
    },
    'a file in its place': {
      made: (tree, at) => {
        rmSync(join(tree.path, at), { recursive: true })
        tree.write(at, 'precious\n')
      },
      refused: (at) => new RegExp(`submodule ${at} is at another commit`),
      seen: (at) => [[at, 'precious\n']],
    },
    'a link to a directory elsewhere in its place': {
      made: (tree, at, { box }) => {
        rmSync(join(tree.path, at), { recursive: true })
        writeIn(box.path('elsewhere'), 'gold', 'gold\n')
        symlinkSync(box.path('elsewhere'), join(tree.path, at))
      },
      refused: inPlace,
      seen: (at) => [
        [`${at}/gold`, 'gold\n'],
        [`${at}/.git`, 'none'],
      ],
    },
    'files committed in its place': {
      made: (tree, at) => {
        rmSync(join(tree.path, at, '.git'))
        tree.git('rm', '-q', '--cached', at)
        tree.git('add', at)
        tree.git('commit', '-q', '-m', 'vendor')
        tree.write(`${at}/lib.c`, 'precious\n')
      },
      refused: () => /1 file changed/,
      seen: (at) => [
        [`${at}/lib.c`, 'precious\n'],
        [`${at}/.git`, 'none'],
      ],
    },
  }
  const neverFetched: Record<string, Place> = {
    'files in it': {
      made: (tree, at) => tree.write(`${at}/p`, 'precious\n'),
      refused: noGit,
      seen: (at) => [[`${at}/p`, 'precious\n']],
    },
    'a link in it': {
      made: (tree, at) => symlinkSync('precious', join(tree.path, at, 'p')),
      refused: noGit,
      seen: (at) => [[`${at}/p`, '-> precious']],
    },
    'a file in its place': {
      made: (tree, at) => {
        rmSync(join(tree.path, at), { recursive: true })
        tree.write(at, 'precious\n')
      },
      refused: inPlace,
      seen: (at) => [[at, 'precious\n']],
    },
    'a link in its place': {
      made: (tree, at) => {
        rmSync(join(tree.path, at), { recursive: true })
        symlinkSync('precious', join(tree.path, at))
      },
      refused: inPlace,
      seen: (at) => [[at, '-> precious']],
    },
    'a file in its place, not shown by git': {
      made: (tree, at) => {
        tree.git('update-index', '--assume-unchanged', at)
        rmSync(join(tree.path, at), { recursive: true })
        tree.write(at, 'precious\n')
      },
      refused: (at) => new RegExp(`skip-worktree or timestamps: ${at}`),
      seen: (at) => [[at, 'precious\n']],
    },
  }
  const names = (places: Record<string, Place>): [string, string, Place][] =>
    Object.entries(places).map(([what, place], i) => [what, `lib-${i}`, place])

  // Beside each other in one tree: the refusal and the list count each of them.
  test.for([
    ['that were fetched', fetched, { changed: 3, hidden: 0, submodules: 3, unpushed: 1 }],
    ['that were never fetched', neverFetched, { changed: 2, hidden: 1, submodules: 2, unpushed: 0 }],
  ] as const)(
    '%s keep the tree with anything in them or in their place, which comes back',
    async ([, places, dirty]) => {
      await using world = await makeWorld({
        prepare: (repo, box) => {
          box.repo('lib').commit('lib.c', 'int x;\n')
          for (const [, at] of names(places)) repo.git('submodule', '--quiet', 'add', box.path('lib'), at)
          repo.commit('.coppice/config.yaml', `worktree:\n  submodules: ${places === fetched}\n`)
        },
      })
      const environment = await issue(world, 42)
      for (const [, at, { made }] of names(places)) made(inside(world, environment), at, world)
      const reasons = (await refusal(world, environment)).join('\n')
      const unsaid = names(places).filter(([, at, { refused }]) => !refused(at).test(reasons))
      expect([unsaid.map(([what]) => what), reasons]).toEqual([[], reasons])
      const [facts] = await listWithFacts(world.context, world.codebase)
      expect(facts?.dirty).toMatchObject(dirty)
      const back = await thereAndBack(world, environment)
      const found = (path: string): string => {
        const at = lstatSync(join(back.path, path), { throwIfNoEntry: false })
        if (at === undefined) return 'none'
        return at.isSymbolicLink() ? `-> ${readlinkSync(join(back.path, path))}` : back.read(path)
      }
      const expected = names(places).flatMap(([what, at, { seen }]) => seen(at).map((one) => [what, ...one]))
      expect(expected.map(([what = '', path = '']) => [what, path, found(path)])).toEqual(expected)
      for (const [, at, { check }] of names(places)) check?.(inside(world, { path: join(back.path, at) }))
    },
  )

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
