import { createHash } from 'node:crypto'
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import { toBranchName, toSha } from '../../src/domain/names.ts'
import type { RemedyPart } from '../../src/domain/remedy.ts'
import { toWork } from '../../src/domain/work.ts'
import { examineCodebase } from '../../src/cli/doctor/records.ts'
import { resolveCodebase } from '../../src/isolation/codebases/codebases.ts'
import { onlyHere } from '../../src/isolation/codebases/only-here.ts'
import type { IsolationContext } from '../../src/isolation/context.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { mergeStatuses } from '../../src/isolation/merge-proof/merge-status.ts'
import { finishBranch } from '../../src/isolation/providers/clone/deliver.ts'
import { importTips } from '../../src/isolation/providers/clone/import-commits.ts'
import { reconcile } from '../../src/isolation/reconcile.ts'
import { followRenames, presenceOf } from '../../src/isolation/provider-of.ts'
import { abandonAt } from '../crash/abandon.ts'
import { makeScenarioWorld } from '../crash/arrange.ts'
import { firstCommit } from '../helpers/repo.ts'
import { remedyIn, said as words } from '../helpers/words.ts'
import { makeWorld, type World, type WorldOptions } from '../helpers/world.ts'
import {
  ask,
  inside,
  issue,
  messageOf,
  refusal,
  remove,
  removed,
  resolved,
  thereAndBack,
  type Inside,
} from './scene.ts'

const open = (options: WorldOptions = {}): Promise<World> =>
  makeWorld({ ...options, settings: { isolationProvider: 'clone', ...options.settings } })

const gc = (world: World): string => {
  world.repo.git('reflog', 'expire', '--expire=now', '--all')
  return world.repo.git('gc', '-q', '--prune=now')
}

const fsck = (at: (...args: string[]) => string): string => at('fsck', '--connectivity-only', '--no-dangling')

const fsckRepository = ({ box, repo }: World): string =>
  fsck((...args) => box.raw(repo.commonDir, '--git-dir=.', ...args))

const refsOf = (world: World, pattern: string): string[] =>
  world.repo.git('for-each-ref', '--format=%(refname)', pattern).split('\n').filter(Boolean)

/** Without what is about the machine that the test runs on. */
const said = ({ notices }: { readonly notices: readonly string[] }): string =>
  notices.filter((notice) => !notice.startsWith('could not inspect process')).join('\n')

/** Somebody asks how the environments stand, as `list` does. */
const look = (world: World) => mergeStatuses(world.context, world.codebase)

const git = (made: IsolatedEnvironment, ...parts: string[]): string => join(made.path, '.git', ...parts)

describe.concurrent('a clone is out of reach of the shared git directory', () => {
  test('no hard link, no remote that names it, and hooks, config, refs and stash of its own', async () => {
    await using world = await open({ remote: true })
    writeFileSync(join(world.repo.commonDir, 'hooks/pre-commit'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
    world.repo.git('config', 'user.name', 'Grace')
    world.repo.git('config', 'filter.x.clean', 'false')
    world.repo.git('branch', 'unrelated')
    const made = await issue(world, 1)
    const at = inside(world, made)
    for (const file of readdirSync(git(made), { recursive: true, encoding: 'utf8' })) {
      const found = lstatSync(git(made, file))
      expect([file, found.isFile() ? found.nlink : 1, found.isSymbolicLink()]).toEqual([file, 1, false])
    }
    expect(at.git('config', '--local', '--list')).not.toContain(world.repo.path)
    expect(at.git('remote', '-v')).toContain(world.box.path('origin.git'))
    expect(at.git('config', 'user.name')).toBe('Grace')
    expect(at.tryGit('config', 'filter.x.clean')).toMatch(/failed/)
    expect(at.git('for-each-ref', '--format=%(refname)').split('\n')).toEqual([
      'refs/heads/issue-1',
      'refs/remotes/origin/main',
    ])
    const before = [
      world.repo.git('for-each-ref', 'refs/heads', 'refs/tags', 'refs/stash'),
      world.repo.git('config', '-l'),
    ]
    at.commit('new', 'x')
    at.write('new', 'y')
    at.git('stash')
    at.git('tag', 'mine')
    at.git('config', 'core.hooksPath', '/tmp/hooks')
    at.git('gc', '-q', '--prune=now')
    expect([
      world.repo.git('for-each-ref', 'refs/heads', 'refs/tags', 'refs/stash'),
      world.repo.git('config', '-l'),
    ]).toEqual(before)
  })

  test('it follows a repository that was moved, also beside one that somebody has spoilt', async () => {
    await using world = await open()
    await resolveCodebase(world.context, { cwd: world.repo.path })
    const spoilt = await issue(world, 1)
    const made = await issue(world, 2)
    const sha = inside(world, made).commit('mine', 'x')
    rmSync(git(spoilt, 'objects/info/alternates'))
    execFileSync('mkfifo', [git(spoilt, 'objects/info/alternates')])
    renameSync(world.repo.path, world.box.path('re named'))
    await resolveCodebase(world.context, { cwd: world.box.path('re named') })
    fsck(inside(world, made).git)
    await removed(world, made)
    expect(world.box.raw(world.box.path('re named'), 'rev-parse', 'issue-2')).toBe(sha)
  })

  test('a command in it is about the codebase, not about a new one', async () => {
    await using world = await open()
    const made = await issue(world, 1)
    const found = await resolveCodebase(world.context, { cwd: made.path })
    expect(found.id).toBe(world.codebase.id)
    const asked = { createdBy: 'test', aliases: [] }
    expect((await world.provider.adopt(world.codebase, made.path, asked)).id).toBe(made.id)
    world.box.raw(world.box.root, 'clone', '-q', world.repo.path, world.box.path('mine'))
    await expect(world.provider.adopt(world.codebase, world.box.path('mine'), asked)).rejects.toMatchObject({
      code: 'not-adoptable',
    })
  })
})

describe.concurrent('a gc of the repository takes nothing that a clone stands on', () => {
  test('its start, when the branch it began at is rewritten, and its base, when that is gone', async () => {
    await using world = await open()
    const { repo } = world
    const at = inside(world, await issue(world, 1))
    at.commit('mine', 'x')
    repo.git('commit', '-q', '--amend', '-m', 'rewritten')
    gc(world)
    fsck(at.git)
    repo.git('switch', '-q', '--orphan', 'other')
    repo.commit('x', 'x')
    repo.git('branch', '-D', 'main')
    gc(world)
    fsck(at.git)
    at.commit('more', 'y')
  })

  test('a branch that it fetched after the repository had, once somebody looked', async () => {
    await using world = await open({ remote: true })
    const made = await issue(world, 1)
    const at = inside(world, made)
    await look(world)
    world.repo.git('switch', '-q', '-c', 'feature')
    world.repo.commit('feature', 'f')
    world.repo.git('push', '-q', 'origin', 'feature')
    world.repo.git('switch', '-q', 'main')
    at.git('fetch', '-q', 'origin')
    at.git('switch', '-q', '-c', 'spike', 'origin/feature')
    at.git('switch', '-q', 'issue-1')
    await look(world)
    world.repo.git('branch', '-D', 'feature')
    world.repo.git('update-ref', '-d', 'refs/remotes/origin/feature')
    world.repo.git('push', '-q', 'origin', ':feature')
    gc(world)
    fsck(at.git)
    const spawned = world.context.git.spawned()
    const status = await look(world)
    expect(status).toHaveLength(1)
    // Nothing has changed in it: whatever runs is about the repository.
    expect(
      refsOf(world, `refs/coppice/clone/${made.id}`)
        .sort()
        .map((name) => name.slice(name.lastIndexOf('/') + 1)),
    ).toEqual(['base', 'others', 'issue-1', 'tip'])
    expect(world.context.git.spawned() - spawned).toBeLessThan(8)
  })

  test('what a restored one has in its other refs, after its restore point expired', async () => {
    await using world = await open()
    world.repo.git('switch', '-q', '-c', 'feature')
    const feature = world.repo.commit('feature', 'f')
    world.repo.git('switch', '-q', 'main')
    const made = await issue(world, 1)
    inside(world, made).git('update-ref', 'refs/keep/feature', feature)
    const { restorePoint } = await removed(world, made, { force: true })
    const { environment } = await world.provider.restore(restorePoint)
    world.repo.git('update-ref', '-d', restorePoint.ref)
    world.repo.git('branch', '-D', 'feature')
    gc(world)
    fsck(inside(world, environment).git)
  })

  test('a head of its pull request that it moved to, when that is rewritten before anybody looks', async () => {
    await using world = await open({ remote: true })
    const push = (message: string): string => {
      const sha = world.repo.git('commit-tree', '-p', 'main', '-m', message, 'main^{tree}')
      world.repo.git('push', '-q', '-f', 'origin', `${sha}:refs/pull/9/head`)
      return sha
    }
    const hints = (prSha: string) => ({ prSha, prBranch: 'theirs', isForkPR: true })
    const { environment } = await resolved(world, 'pr', 9, { hints: hints(push('one')) })
    const at = inside(world, environment)
    const two = push('two')
    await resolved(world, 'pr', 9, { hints: hints(two) })
    expect(at.git('rev-parse', 'HEAD')).toBe(two)
    at.write('README', 'dirty')
    await resolved(world, 'pr', 9, { hints: hints(push('three')) })
    expect(at.git('rev-parse', 'HEAD')).toBe(two)
    gc(world)
    fsck(at.git)
  })
})

describe.concurrent('what a clone has comes back to the repository', () => {
  test('its branch, when somebody asks, and again when it is removed', async () => {
    await using world = await open()
    const made = await issue(world, 1)
    const at = inside(world, made)
    const one = at.commit('one', '1')
    await look(world)
    expect(world.repo.git('rev-parse', `refs/coppice/clone/${made.id}/tip`)).toBe(one)
    const two = at.commit('two', '2')
    at.git('gc', '-q', '--prune=now')
    at.git('repack', '-adq')
    const gone = await removed(world, made)
    expect([gone.branchDeleted, said(gone)]).toEqual([false, ''])
    expect(world.repo.git('rev-parse', 'issue-1')).toBe(two)
    expect(refsOf(world, 'refs/coppice/clone')).toEqual([])
    expect(readdirSync(world.box.path('state/clones'))).toEqual([])
    gc(world)
    fsckRepository(world)
  })

  test('commits that could not be brought when its branch was judged', async () => {
    await using world = await open()
    const made = await issue(world, 1)
    const at = inside(world, made)
    const lock = join(world.repo.commonDir, `refs/coppice/clone/${made.id}/tip.lock`)
    const sha = at.commit('mine', 'x')
    writeFileSync(lock, '')
    const context: IsolationContext = {
      ...world.context,
      failpoint: async (name) => {
        if (name === 'remove.intent') rmSync(lock, { force: true })
      },
    }
    const gone = await createEnvironments(context).destroy(made, { trigger: 'command', force: true })
    expect(gone).toMatchObject({ outcome: 'removed', branchDeleted: false })
    expect(world.repo.git('rev-parse', 'issue-1')).toBe(sha)
  })

  test('the content of large files, and none under a false name', async () => {
    await using world = await open()
    const made = await issue(world, 1)
    inside(world, made).commit('mine', 'x')
    const store = (content: string, oid = createHash('sha256').update(content).digest('hex')): string => {
      const name = `lfs/objects/${oid.slice(0, 2)}/${oid.slice(2, 4)}/${oid}`
      mkdirSync(dirname(git(made, name)), { recursive: true })
      writeFileSync(git(made, name), content)
      return name
    }
    const [good, bad] = [store('large'), store('poison', 'ab'.repeat(32))]
    truncateSync(git(made, store('huge')), 65 * 1024 * 1024)
    await removed(world, made)
    expect(readFileSync(join(world.repo.commonDir, good), 'utf8')).toBe('large')
    expect(existsSync(join(world.repo.commonDir, bad))).toBe(false)
  })

  test('two that look at the same moment both see it', async () => {
    await using world = await open()
    const at = inside(world, await issue(world, 1))
    for (const round of [1, 2]) {
      at.commit('mine', String(round))
      const seen = await Promise.all([look(world), look(world), look(world)])
      expect(seen.flat().map(({ merged }) => merged.value)).toEqual(['no', 'no', 'no'])
    }
  })
})

/** What somebody leaves in a clone, and how the refusal names it. */
const onlyThere: readonly (readonly [RegExp, (world: World, at: Inside) => void])[] = [
  [
    /a stash that only this clone has\n[^]*an older stash that only this clone has: stash@\{1\}/,
    (_world, at) => {
      for (const text of ['x', 'y']) {
        at.write('README', text)
        at.git('stash')
      }
    },
  ],
  [
    /refs\/remotes\/origin\/side holds/,
    ({ box }, at) => {
      at.git('push', '-q', 'origin', `${at.git('commit-tree', '-m', 'side', 'HEAD^{tree}')}:refs/heads/side`)
      box.raw(box.path('origin.git'), 'branch', '-D', 'side')
    },
  ],
  [
    /refs\/foo\/bar holds what only this clone has/,
    (_world, at) => at.git('update-ref', 'refs/foo/bar', at.git('commit-tree', '-m', 'foo', 'HEAD^{tree}')),
  ],
  [
    /refs\/tags\/file holds/,
    ({ repo }, at) => {
      at.write('x', 'only here')
      at.git('tag', 'file', at.git('hash-object', '-w', 'x'))
      rmSync(join(at.path, 'x'))
      repo.git('tag', 'file')
    },
  ],
  [
    /refs\/tags\/words holds/,
    ({ repo }, at) => {
      at.git('tag', '-a', '-m', 'words', 'words')
      repo.git('tag', 'words')
    },
  ],
  [
    /refs\/heads\/no-commit holds/,
    (_world, at) =>
      writeFileSync(join(at.path, '.git/refs/heads/no-commit'), `${at.git('rev-parse', 'HEAD:README')}\n`),
  ],
  [
    /refs\/heads\/spike holds/,
    ({ repo }, at) => {
      repo.git('branch', 'spike')
      at.git('update-ref', 'refs/heads/spike', at.git('commit-tree', '-m', 'spike', 'HEAD^{tree}'))
    },
  ],
  [/1 worktree made from this clone/, ({ box }, at) => at.git('worktree', 'add', '-q', '--detach', box.path('linked'))],
  [
    /a rebase is in progress/,
    (_world, at) => {
      at.commit('README', 'one')
      at.tryGit('-c', 'sequence.editor=sed -i s/pick/edit/', 'rebase', '-q', '-i', 'HEAD~')
    },
  ],
  [/1 commit on a detached HEAD/, (_world, at) => at.commit('x', 'x')],
]

describe.concurrent('a clone is not removed while only it has', () => {
  test('stashes, refs of whatever name, worktrees, a rebase, a detached HEAD; by force all of it comes back', async () => {
    await using world = await open({ remote: true })
    const made = await issue(world, 1)
    const at = inside(world, made)
    for (const [, leave] of onlyThere) leave(world, at)
    const reasons = (await refusal(world, made)).join('\n')
    for (const [reason] of onlyThere) expect(reasons).toMatch(reason)
    const refs = at.git('for-each-ref')
    const back = await thereAndBack(world, made)
    expect(back.git('for-each-ref')).toBe(refs)
    gc(world)
    fsckRepository(world)
    back.git('log', '-p', '--all', '--reflog')
  })

  test('commits of a submodule that nobody has pushed', async () => {
    await using world = await open({
      prepare: (repo, box) => {
        const library = box.repo('library')
        repo.git('-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', library.path, 'lib')
        repo.git('commit', '-q', '-m', 'a submodule')
      },
    })
    const made = await issue(world, 1)
    const at = inside(world, made)
    expect(at.has('lib/README')).toBe(true)
    const lib = inside(world, { path: join(made.path, 'lib') })
    const base = lib.git('rev-parse', 'HEAD')
    const sha = lib.commit('x', 'x')
    lib.git('switch', '-q', '-c', 'kept')
    lib.git('switch', '-q', '--detach', base)
    expect((await refusal(world, made)).join()).toMatch(/1 commit in submodule lib that no remote has/)
    const back = await thereAndBack(world, made)
    expect(world.box.raw(join(back.path, 'lib'), 'rev-parse', 'kept')).toBe(sha)
  })

  test('a commit on another branch, made in one that a crash had left half made', async () => {
    const options: WorldOptions = { settings: { isolationProvider: 'clone' } }
    await using world = await makeScenarioWorld({ options })
    await abandonAt(world, 'create-fresh', 'create.attached')
    const at = inside(world, { path: world.box.path('trees/project/issue-1') })
    at.git('switch', '-q', '-c', 'found')
    const sha = at.commit('found', 'x')
    at.git('switch', '-q', 'issue-1')
    await reconcile(world.context, world.codebase)
    const [point] = await world.context.store.restorePoints.list(world.codebase.id)
    if (point === undefined) throw new Error('nothing was saved')
    gc(world)
    const { environment } = await world.provider.restore(point)
    expect(inside(world, environment).git('rev-parse', 'found')).toBe(sha)
  })

  test('the history it borrows, when somebody moves one away that a crash had left half made', async () => {
    const options: WorldOptions = { settings: { isolationProvider: 'clone' } }
    await using world = await makeScenarioWorld({ options })
    await abandonAt(world, 'create-fresh', 'create.attached')
    const away = world.box.path('away')
    renameSync(world.box.path('trees/project/issue-1'), away)
    await reconcile(world.context, world.codebase)
    world.repo.git('commit', '-q', '--amend', '-m', 'rewritten')
    gc(world)
    fsck((...args) => world.box.raw(away, ...args))
    expect(await world.context.store.journal.open(world.context.host)).toEqual([])
    const [found] = await examineCodebase(world.context, world.codebase)
    expect(found?.detail).toContain("keeps commits for a clone that Coppice doesn't manage")
    execFileSync('sh', ['-c', remedyIn(found).replace('if that clone is deleted, run ', '')], { env: world.box.env })
    expect(await examineCodebase(world.context, world.codebase)).toEqual([])
  })
})

describe.concurrent('a clone whose directory is gone', () => {
  /** Its branch and another one have commits, and somebody has looked since. */
  const gone = async (world: World) => {
    const made = await issue(world, 1)
    const at = inside(world, made)
    const mine = at.commit('mine', 'x')
    at.git('switch', '-q', '-c', 'side')
    const side = at.commit('side', 's')
    at.git('switch', '-q', 'issue-1')
    await look(world)
    rmSync(made.path, { recursive: true })
    return { made, mine, side }
  }
  const pointOf = async (world: World) => {
    const [point] = await world.context.store.restorePoints.list(world.codebase.id)
    if (point === undefined) throw new Error('nothing was saved')
    return point
  }

  test('goes on from its branch when its work is taken up anew, and its other branches can be restored', async () => {
    await using world = await open()
    const { mine, side } = await gone(world)
    const anew = await issue(world, 1)
    expect(inside(world, anew).git('rev-parse', 'HEAD')).toBe(mine)
    const point = await pointOf(world)
    await removed(world, anew, { force: true })
    gc(world)
    const { environment } = await world.provider.restore(point)
    expect(inside(world, environment).git('rev-parse', 'issue-1', 'side').split('\n')).toEqual([mine, side])
    expect(said(await removed(world, environment, { force: true }))).toBe('')
  })

  test('is removed by force, also when a crash comes before the end, and comes back with its other branches', async () => {
    await using world = await open()
    const { made, mine, side } = await gone(world)
    const crashAt = async (failpoint: string): Promise<string | undefined> => {
      const context: IsolationContext = {
        ...world.context,
        failpoint: async (name) => {
          if (name === failpoint) throw new Error('crashed')
        },
      }
      const failing = createEnvironments(context).destroy(made, { trigger: 'command', force: true })
      expect(await messageOf(failing)).toBe('crashed')
      await reconcile(world.context, world.codebase)
      return (await world.context.store.environments.get(made.id))?.status
    }
    expect(await crashAt('remove.missing-saved')).toBe('missing')
    expect(await crashAt('remove.delivered')).toBe('removed')
    expect([world.repo.git('rev-parse', 'issue-1'), refsOf(world, 'refs/heads/side')]).toEqual([mine, []])
    expect(refsOf(world, 'refs/coppice/clone')).toEqual([])
    gc(world)
    const { environment } = await world.provider.restore(await pointOf(world))
    expect(inside(world, environment).git('rev-parse', 'HEAD', 'side').split('\n')).toEqual([mine, side])
  })
})

test('what a clone was given, and names that it no longer has, stop no removal', async () => {
  await using world = await open({ remote: true })
  // Its branch is there already, and begins before base.
  world.repo.git('branch', 'issue-1')
  world.repo.commit('second', 's')
  world.repo.git('push', '-q', 'origin', 'main')
  const made = await issue(world, 1)
  const at = inside(world, made)
  at.commit('mine', 'x')
  at.git('switch', '-q', '-c', 'side')
  at.commit('side', 's')
  at.git('switch', '-q', 'issue-1')
  await look(world)
  at.git('branch', '-q', '-D', 'side')
  at.git('push', '-q', 'origin', 'issue-1')
  await look(world)
  const names = world.repo.git('for-each-ref', '--format=%(refname)', `refs/coppice/clone/${made.id}/others`)
  expect(names === '' ? '' : world.repo.git('cat-file', 'blob', `${names}:refs`)).not.toContain('side')
  world.repo.git('commit', '-q', '--amend', '-m', 'rewritten')
  world.repo.git('push', '-q', '-f', 'origin', 'main')
  expect((await removed(world, made)).outcome).toBe('removed')
})

describe.concurrent('a clone that could not be made', () => {
  const fail = async (world: World, number: number, work: (at: Inside) => void) => {
    const path = world.box.path(`trees/project/issue-${number}`)
    const context: IsolationContext = {
      ...world.context,
      failpoint: async (name) => {
        if (name !== 'create.attached') return
        work(inside(world, { path }))
        throw new Error('failed')
      },
    }
    const failing = ask({ ...world, context, provider: createEnvironments(context) }, 'issue', number)
    await expect(failing).rejects.toThrow('failed')
    const points = await world.context.store.restorePoints.list(world.codebase.id)
    return { point: points.find(({ contents }) => contents.environment.path === path), isLeft: existsSync(path) }
  }

  test('is saved with what somebody did in it meanwhile, or left to them', async () => {
    await using world = await open()
    const hook = '.git/hooks/pre-commit'
    const rows: readonly (readonly [(at: Inside) => void, 'nothing' | 'saved' | 'left'])[] = [
      [() => undefined, 'nothing'],
      [(at) => at.write('found', 'x'), 'saved'],
      [(at) => at.git('tag', '-a', '-m', 'words', 'v1'), 'saved'],
      [(at) => at.write(hook, 'mine'), 'saved'],
      [(at) => at.git('config', 'alias.x', 'log'), 'saved'],
      [
        (at) => {
          at.commit('mine', 'x')
          at.git('switch', '-q', '--orphan', 'empty')
        },
        'saved',
      ],
      [(at) => at.git('worktree', 'add', '-q', world.box.path('outside')), 'left'],
      [
        (at) => {
          at.commit('mine', 'x')
          rmSync(join(at.path, '.git/HEAD'))
          for (const name of readdirSync(at.path)) if (name !== '.git') rmSync(join(at.path, name))
        },
        'left',
      ],
    ]
    for (const [i, [work, expected]] of rows.entries()) {
      const { point, isLeft } = await fail(world, i + 1, work)
      expect([i, point !== undefined, isLeft]).toEqual([i, expected === 'saved', expected === 'left'])
    }
  })

  test('comes back with its branches, tags, hooks and settings', async () => {
    await using world = await open()
    let mine = ''
    const { point } = await fail(world, 1, (at) => {
      mine = at.commit('mine', 'x')
      at.git('tag', '-a', '-m', 'words', 'v1')
      at.write('.git/hooks/pre-commit', 'mine')
      at.git('config', 'alias.x', 'log')
      at.git('switch', '-q', '--orphan', 'empty')
    })
    if (point === undefined) throw new Error('nothing was saved')
    gc(world)
    const back = inside(world, (await world.provider.restore(point)).environment)
    expect(back.git('rev-parse', 'issue-1', 'v1^{commit}').split('\n')).toEqual([mine, mine])
    expect([
      back.git('cat-file', 'tag', 'v1'),
      back.read('.git/hooks/pre-commit'),
      back.git('config', 'alias.x'),
    ]).toEqual([expect.stringContaining('words'), 'mine', 'log'])
  })
})

/** What is in the way of a clone's branch, what is said about that, and the branch that the repository gets. */
const inTheWay: readonly (readonly [
  what: string,
  change: (world: World, at: Inside) => void,
  notice: RegExp,
  added: string | undefined,
  own?: string,
])[] = [
  [
    'it has moved on in the repository',
    ({ repo }) => {
      repo.git('fetch', '-q', '../trees/project/issue-1', 'issue-1:issue-1')
      repo.git('switch', '-q', 'issue-1')
      repo.commit('further', 'x')
      repo.git('switch', '-q', 'main')
    },
    /^$/,
    undefined,
  ],
  [
    'it has diverged there',
    ({ repo }) => {
      repo.git('switch', '-q', '-c', 'issue-2')
      repo.commit('other', 'x')
      repo.git('switch', '-q', 'main')
    },
    /^issue-2 has other commits in the repository: the clone's branch is kept as issue-2-2$/,
    'refs/heads/issue-2-2',
  ],
  [
    'it is a directory of branches there',
    ({ repo }) => repo.git('branch', 'issue-3/part'),
    /^issue-3 can't exist beside issue-3\/part: the clone's branch is kept as issue-3-2$/,
    'refs/heads/issue-3-2',
  ],
  [
    'it is below a name that is a branch there by now',
    ({ repo }) => repo.git('branch', 'a'),
    /^a\/b can't exist beside a: the clone's branch is kept as a-b-2$/,
    'refs/heads/a-b-2',
    'a/b',
  ],
  [
    'it was renamed to a branch of the repository',
    ({ repo }, at) => {
      repo.git('branch', 'stable')
      at.git('branch', '-M', 'stable')
    },
    /^stable belongs to the repository: the clone's branch is kept as stable-2$/,
    'refs/heads/stable-2',
  ],
  [
    'a branch of the repository was checked out after its own was deleted',
    ({ repo }, at) => {
      repo.git('branch', 'steady')
      at.git('switch', '-q', '-c', 'steady')
      at.git('branch', '-D', 'issue-6')
    },
    /^steady .*kept as steady-2$/,
    'refs/heads/steady-2',
  ],
  [
    'it was renamed to a tag, and the next name is a branch of the remote',
    ({ repo }, at) => {
      repo.git('tag', 'v1')
      repo.git('update-ref', 'refs/remotes/v1-2', 'main')
      at.git('branch', '-M', 'v1')
    },
    /^v1 means something else in the repository: the clone's branch is kept as v1-3$/,
    'refs/heads/v1-3',
  ],
  [
    'it was renamed to a new name',
    (_world, at) => at.git('branch', '-M', 'topic'),
    /^issue-8 was renamed in the clone: the clone's branch is kept as topic$/,
    'refs/heads/topic',
  ],
  [
    'it was renamed to the beginning of a commit',
    (_world, at) => at.git('branch', '-M', 'deadbeef'),
    /^deadbeef .*kept as deadbeef-2$/,
    'refs/heads/deadbeef-2',
  ],
  [
    'it is checked out there',
    ({ repo }) => repo.git('switch', '-q', '-c', 'issue-10'),
    /^issue-10 is checked out in .*project: the clone's branch is kept as issue-10-2$/,
    'refs/heads/issue-10-2',
  ],
]

const onBranch = async (world: World, number: number, branch: string): Promise<IsolatedEnvironment> => {
  const answer = await world.provider.create({
    codebase: world.codebase,
    work: toWork('issue', String(number)),
    branch: toBranchName(branch),
    hints: {},
    createdBy: 'test',
    aliases: [],
  })
  if (answer.outcome !== 'created') throw new Error(answer.outcome)
  return answer.environment
}

describe.concurrent('a name that is chosen in a clone means nothing else in the repository', () => {
  test('its branch is brought under its own name or one that is free', async () => {
    await using world = await open()
    const { context, codebase, repo } = world
    const shas: string[] = []
    for (const [i, [, change, , , own]] of inTheWay.entries()) {
      const at = inside(world, await onBranch(world, i + 1, own ?? `issue-${i + 1}`))
      shas.push(at.commit('mine', String(i)))
      change(world, at)
    }
    const live = (await context.store.environments.live(codebase.id)).toSorted(
      (a, b) => Number(a.work.id) - Number(b.work.id),
    )
    const environments = (await followRenames(context, codebase, live)).map(({ environment }) => environment)
    expect([...(await importTips(context, codebase, environments)).values()]).toEqual([])
    const refs = (): string[] => repo.git('for-each-ref', 'refs/heads', 'refs/tags', 'refs/remotes').split('\n')
    const found: unknown[] = []
    for (const [i, [what]] of inTheWay.entries()) {
      const before = refs()
      const options = { goes: false, tip: toSha(shas[i] ?? ''), pointId: 'none' }
      const { deleted, notices = [] } = await finishBranch(context, codebase, environments[i]!, options)
      const after = refs()
      const added = after.filter((line) => !before.includes(line))
      const gone = before.filter((line) => !after.includes(line))
      found.push([what, deleted, words(notices).join('\n'), added, gone])
    }
    expect(found).toEqual(
      inTheWay.map(([what, , notice, ref], i) => [
        what,
        false,
        expect.stringMatching(notice),
        ref === undefined ? [] : [`${shas[i]} commit\t${ref}`],
        [],
      ]),
    )
    expect(repo.git('rev-parse', 'issue-1~')).toBe(shas[0])
  })

  test('its other branches, tags and notes are left to the restore point, and those with work stop a removal', async () => {
    await using world = await open({ remote: true })
    const made = await issue(world, 1)
    const at = inside(world, made)
    at.commit('mine', 'x')
    at.git('tag', '-a', '-m', 'pushed', 'pushed')
    at.git('push', '-q', 'origin', 'pushed')
    at.git('tag', '-a', '-m', 'monday', 'nightly')
    world.repo.git('tag', '-a', '-m', 'tuesday', 'nightly')
    world.repo.git('push', '-q', 'origin', 'nightly')
    const start = at.git('rev-parse', 'HEAD')
    const theirs = world.repo.git('commit-tree', '-p', 'main', '-m', 'theirs', 'main^{tree}')
    world.repo.git('push', '-q', 'origin', `${theirs}:refs/heads/theirs`)
    at.git('fetch', '-q')
    world.repo.git('push', '-q', 'origin', ':theirs')
    at.commit('evil', 'x')
    const names = ['refs/tags/origin/main', 'refs/tags/main', 'refs/heads/HEAD', 'refs/heads/-f', 'refs/notes/x']
    const many = Array.from({ length: 40 }, (_v, i) => `refs/tags/t${i}`)
    const lines = [...names, ...many].map((name) => `create ${name} HEAD\n`)
    execFileSync('git', ['update-ref', '--stdin'], { cwd: made.path, input: lines.join(''), env: world.box.env })
    at.git('reset', '-q', '--hard', start)
    const before = world.repo.git('for-each-ref', 'refs/heads', 'refs/tags', 'refs/notes', 'refs/remotes')
    const reasons = await refusal(world, made)
    expect(reasons.join('\n')).toMatch(/refs\/heads\/HEAD holds[^]* and 3\d more refs hold what only this clone has/)
    expect(reasons.join('\n')).not.toMatch(/pushed|theirs|nightly/)
    const { restorePoint } = await removed(world, made, { force: true })
    const after = world.repo.git('for-each-ref', 'refs/heads', 'refs/tags', 'refs/notes', 'refs/remotes')
    expect(after.replace(/.*refs\/heads\/issue-1\n/, '')).toBe(before)
    gc(world)
    const back = inside(world, (await world.provider.restore(restorePoint)).environment)
    expect(back.git('for-each-ref', '--format=%(refname)').split('\n')).toEqual(
      expect.arrayContaining([...names, ...many, 'refs/tags/pushed']),
    )
    expect(back.git('tag', '-l', '--format=%(contents)', 'nightly')).toBe('monday')
  })

  test('a branch that it was restored on under such a name does not become its own', async () => {
    await using world = await open()
    const made = await issue(world, 1)
    world.repo.git('branch', 'stable')
    inside(world, made).git('branch', '-M', 'stable')
    const { restorePoint } = await removed(world, made)
    const { environment } = await world.provider.restore(restorePoint)
    expect(environment.branch).toBe('stable')
    const sha = inside(world, environment).commit('mine', 'x')
    expect(said(await removed(world, environment))).toMatch(/kept as stable-2/)
    expect(world.repo.git('rev-parse', 'stable', 'stable-2').split('\n')).toEqual([
      world.repo.git('rev-parse', 'main'),
      sha,
    ])
  })

  test('a branch that somebody made in a repository without reflogs is theirs', async () => {
    await using world = await open({ prepare: (repo) => repo.git('config', 'core.logAllRefUpdates', 'false') })
    const made = await issue(world, 1)
    world.repo.git('branch', 'issue-1')
    const options = { goes: true, tip: world.repo.sha(), pointId: 'none' }
    await finishBranch(world.context, world.codebase, made, options)
    expect(refsOf(world, 'refs/heads/issue-1')).toEqual(['refs/heads/issue-1'])
  })
})

describe.concurrent('whatever is done to a clone, the repository stays whole', () => {
  const half = /history of .* is incomplete|was changed/
  /** Each takes away from a clone what its history stands on. */
  const spoilt: readonly (readonly [string, (world: World, at: Inside) => void])[] = [
    [
      'a history that ends in it',
      (_world, at) => {
        writeFileSync(join(at.path, '.git/shallow'), `${at.git('rev-parse', 'HEAD')}\n`)
        rmSync(join(at.path, '.git/logs'), { recursive: true })
      },
    ],
    [
      'other alternates',
      (world, at) => {
        world.box.raw(world.box.root, 'clone', '-q', world.repo.path, world.box.path('copy'))
        writeFileSync(join(at.path, '.git/objects/info/alternates'), `${world.box.path('copy/.git/objects')}\n`)
      },
    ],
    [
      'no alternates',
      (_world, at) => {
        at.git('repack', '-adq')
        rmSync(join(at.path, '.git/objects/info/alternates'))
      },
    ],
  ]

  test('a history that ends in it, other alternates, no alternates', async () => {
    await using world = await open()
    const made: IsolatedEnvironment[] = []
    for (const [i, [, change]] of spoilt.entries()) {
      const one = await issue(world, i + 1)
      const at = inside(world, one)
      at.commit('one', '1')
      at.commit('two', '2')
      change(world, at)
      made.push(one)
    }
    const statuses = await look(world)
    for (const [i, [what]] of spoilt.entries()) {
      const one = made[i]!
      const merged = statuses.find(({ environment }) => environment.id === one.id)?.merged
      expect
        .soft([what, merged])
        .toMatchObject([what, { value: 'cannot-tell', why: { message: expect.stringMatching(half) as string } }])
      expect
        .soft([what, await messageOf(removed(world, one, { force: true }))])
        .toEqual([what, expect.stringMatching(half)])
      expect.soft([what, existsSync(join(one.path, 'two'))]).toEqual([what, true])
    }
    gc(world)
    fsckRepository(world)
  })

  test('settings that send git elsewhere are not followed, and it can still be removed', async () => {
    await using world = await open()
    const made = await issue(world, 1)
    const at = inside(world, made)
    const sha = at.commit('one', '1')
    const settings = '[core]\n\tbare = true\n\tworktree = nowhere\n\thooksPath = hooks\n\tfsmonitor = touch ran\n'
    appendFileSync(
      git(made, 'config'),
      `${settings}[pack]\n\tpackSizeLimit = 1\n[uploadpack]\n\tpackObjectsHook = false\n`,
    )
    mkdirSync(git(made, 'hooks'), { recursive: true })
    for (const hook of ['post-checkout', 'reference-transaction', 'post-index-change']) {
      writeFileSync(git(made, 'hooks', hook), `#!/bin/sh\ntouch ${world.box.path('ran')}\n`, { mode: 0o755 })
    }
    await removed(world, made)
    expect(world.repo.git('rev-parse', 'issue-1')).toBe(sha)
    expect(existsSync(world.box.path('ran'))).toBe(false)
  })

  test('a million refs in one file are read by nobody', async () => {
    await using world = await open()
    const made = await issue(world, 1)
    writeFileSync(git(made, 'packed-refs'), '# pack-refs with: peeled fully-peeled sorted \n')
    truncateSync(git(made, 'packed-refs'), 17 * 1024 * 1024)
    expect((await look(world))[0]?.merged).toMatchObject({
      value: 'cannot-tell',
      why: { message: expect.stringMatching(/too large/) as string },
    })
    expect((await refusal(world, made)).join()).toMatch(/packed-refs is too large/)
  })

  test('one that cannot be read does not keep anybody from the others', async () => {
    await using world = await open()
    const spoilings: readonly ((at: Inside) => void)[] = [
      (at) => execFileSync('mkfifo', [join(at.path, '.git/HEAD')]),
      (at) => mkdirSync(join(at.path, '.git/HEAD')),
      (at) => symlinkSync('/dev/zero', join(at.path, '.git/HEAD')),
      (at) => {
        writeFileSync(join(at.path, '.git/HEAD'), 'ref: refs/heads/other\n')
        mkdirSync(join(at.path, '.git/info'), { recursive: true })
        execFileSync('mkfifo', [join(at.path, '.git/info/x')])
      },
    ]
    for (const [i, spoil] of spoilings.entries()) {
      const made = await issue(world, i + 1)
      rmSync(git(made, 'HEAD'))
      spoil(inside(world, made))
    }
    const fine = await issue(world, 9)
    inside(world, fine).git('branch', '-m', 'renamed')
    const live = await world.context.store.environments.live(world.codebase.id)
    const followed = await followRenames(world.context, world.codebase, live)
    const names = spoilings.map((_spoil, i) => `issue-${i + 1}`)
    expect(followed.map(({ environment }) => environment.branch).sort()).toEqual([...names, 'renamed'])
    expect(await look(world)).toHaveLength(spoilings.length + 1)
  })

  test('what is broken in its git directory is named by the doctor, whose remedies make it removable again', async () => {
    await using world = await open()
    const odd = (at: Inside, name: string): string => {
      rmSync(join(at.path, '.git', name))
      return join(at.path, '.git', name)
    }
    const spoilings: readonly ((at: Inside) => void)[] = [
      (at) => void odd(at, 'HEAD'),
      (at) => execFileSync('mkfifo', [odd(at, 'HEAD')]),
      (at) => mkdirSync(odd(at, 'HEAD')),
      (at) => writeFileSync(join(at.path, '.git/refs/heads/broken'), `${'12'.repeat(20)}\n`),
      (at) =>
        writeFileSync(join(at.path, `.git/refs/heads/${at.git('branch', '--show-current')}`), `${'12'.repeat(20)}\n`),
      (at) => {
        at.git('pack-refs', '--all')
        writeFileSync(join(at.path, '.git/packed-refs'), 'garbage\n')
      },
      (at) => writeFileSync(join(at.path, '.git/objects/info/alternates'), '/nowhere\n'),
    ]
    const all: { readonly made: IsolatedEnvironment; readonly sha: string }[] = []
    for (const i of spoilings.keys()) {
      const made = await issue(world, i + 1)
      all.push({ made, sha: inside(world, made).commit('mine', 'x') })
    }
    await look(world)
    for (const [i, spoil] of spoilings.entries()) spoil(inside(world, all[i]!.made))
    const examine = async () =>
      (await examineCodebase(world.context, world.codebase)).filter(({ state }) => state === 'problem')
    const named = new Set<string>()
    let problems = await examine()
    for (let round = 0; problems.length > 0 && round < 3; round += 1) {
      for (const { detail, remedy: way } of problems) {
        named.add(detail.split(':')[0] ?? '')
        const parts = Array.isArray(way) ? (way as readonly RemedyPart[]) : []
        const command = parts.flatMap((part) =>
          typeof part === 'object' && part.of === 'shell' ? part.command : [],
        )[0]
        if (command === undefined) throw new Error(`no command: ${detail}`)
        execFileSync('sh', ['-c', command], { env: world.box.env })
      }
      problems = await examine()
    }
    expect(problems).toEqual([])
    expect([...named].sort()).toEqual(all.map(({ made }) => made.branch))
    // The first three have the same file again: one of them stands for all.
    for (const { made } of all.slice(0, 3)) {
      expect(readFileSync(git(made, 'HEAD'), 'utf8')).toBe(`ref: refs/heads/${made.branch}\n`)
    }
    for (const { made, sha } of all.slice(2)) {
      await removed(world, made)
      expect(world.repo.git('rev-parse', made.branch)).toBe(sha)
    }
  })

  test('a repository of ours stays while a clone that is not tracked any more borrows from it', async () => {
    await using world = await open()
    const made = await issue(world, 1)
    await world.context.store.environments.transition(made.id, 'active', 'released')
    expect((await onlyHere(world.context, world.codebase)).join('\n')).toContain(`a clone borrows: ${made.path}`)
  })

  test('a git directory replaced by a file, a link, a FIFO or nothing is not ours', async () => {
    await using world = await open()
    const replacements: readonly ((path: string) => void)[] = [
      (path) => writeFileSync(path, 'gitdir: /nowhere\n'),
      (path) => symlinkSync('moved-git', path),
      (path) => execFileSync('mkfifo', [path]),
      () => undefined,
    ]
    for (const [i, replace] of replacements.entries()) {
      const made = await issue(world, i + 1)
      renameSync(git(made), join(made.path, 'moved-git'))
      replace(git(made))
      expect(await presenceOf(world.context, world.codebase, made)).toMatchObject({ state: 'not-ours' })
      expect((await remove(world, made, { force: true })).outcome).toBe('refused')
      expect(existsSync(join(made.path, 'README'))).toBe(true)
    }
    expect((await look(world)).map(({ merged }) => merged.value)).toEqual(replacements.map(() => 'cannot-tell'))
  })
})

describe.concurrent('a removed clone is restored', () => {
  test('from another file system, with names that are not UTF-8, stray files among its objects and commits that only its reflog has', async () => {
    const base = mkdtempSync('/var/tmp/coppice-test-')
    try {
      await using world = await open({ context: { worktreesBase: base } })
      const made = await issue(world, 1)
      const at = inside(world, made)
      const lost = at.commit('lost', 'x')
      at.git('reset', '-q', '--hard', 'HEAD~')
      at.git('branch', 'lfs/x')
      at.git('switch', '-q', 'lfs/x')
      const onBranch = at.commit('lost-too', 'x')
      at.git('reset', '-q', '--hard', 'HEAD~')
      at.git('switch', '-q', 'issue-1')
      const mine = at.commit('mine', 'x')
      writeFileSync(Buffer.concat([Buffer.from(git(made, 'odd-')), Buffer.from([0xff])]), 'x')
      writeFileSync(git(made, 'objects/maintenance.lock'), '')
      writeFileSync(git(made, 'objects/pack/tmp_pack'), '')
      truncateSync(git(made, 'objects/pack/tmp_pack'), 65 * 1024 * 1024)
      expect((await look(world))[0]?.merged.value).toBe('no')
      const back = await thereAndBack(world, made)
      gc(world)
      expect([lost, onBranch].map((sha) => back.git('cat-file', '-t', sha))).toEqual(['commit', 'commit'])
      expect([back.git('rev-parse', 'HEAD'), back.git('status', '--short')]).toEqual([mine, ''])
    } finally {
      rmSync(base, { recursive: true })
    }
  })

  test.each<[string, WorldOptions, (world: World) => void]>([
    [
      'of a repository that borrows objects itself',
      {},
      (world) => {
        const lender = world.box.path('lender')
        world.box.raw(world.box.root, 'clone', '-q', '--bare', world.repo.path, lender)
        writeFileSync(join(world.repo.commonDir, 'objects/info/alternates'), `${lender}/objects\n`)
        world.repo.git('repack', '-adlq')
      },
    ],
    [
      'of a shallow repository',
      {
        remote: true,
        template: (repo) => {
          firstCommit(repo)
          repo.commit('a', 'b')
        },
      },
      (world) => {
        writeFileSync(join(world.repo.commonDir, 'shallow'), `${world.repo.sha()}\n`)
        gc(world)
      },
    ],
    [
      'of a bare repository with SHA-256',
      {
        prepare: (repo, box) => {
          rmSync(repo.path, { recursive: true })
          box.raw(box.root, 'init', '-q', '--object-format=sha256', repo.path)
          repo.commit('README', 'x')
        },
      },
      (world) => world.repo.git('config', 'core.bare', 'true'),
    ],
  ])('%s', async (_, options, prepare) => {
    await using world = await open(options)
    prepare(world)
    const made = await issue(world, 1)
    const at = inside(world, made)
    const sha = at.commit('mine', 'x')
    at.write('draft', 'y')
    const back = await thereAndBack(world, made)
    expect([back.git('rev-parse', 'HEAD'), back.read('draft')]).toEqual([sha, 'y'])
    fsck(back.git)
    fsckRepository(world)
  })

  test('after its branch moved in the repository, twice', async () => {
    await using world = await open()
    let made = await issue(world, 1)
    for (const round of [1, 2]) {
      const at = inside(world, made)
      at.commit('mine', String(round))
      const { restorePoint } = await removed(world, made)
      world.repo.git('branch', '-f', made.branch, 'main')
      made = (await world.provider.restore(restorePoint)).environment
      expect(inside(world, made).read('mine')).toBe(String(round))
    }
    await removed(world, made)
  })
})

describe.concurrent('who serves an environment', () => {
  test('its row says, whatever the setting is now', async () => {
    await using world = await open()
    const cloned = await issue(world, 1)
    const context = {
      ...world.context,
      settings: { ...world.context.settings, isolationProvider: 'worktree' as const },
    }
    const linked = await issue({ ...world, context, provider: createEnvironments(context) }, 2)
    expect([cloned.provider, linked.provider]).toEqual(['clone', 'worktree'])
    expect([cloned, linked].map(({ path }) => lstatSync(join(path, '.git')).isDirectory())).toEqual([true, false])
    for (const made of [linked, cloned]) {
      const sha = inside(world, made).commit('mine', 'x')
      const { restorePoint } = await removed(world, made)
      expect(world.repo.git('rev-parse', made.branch)).toBe(sha)
      expect((await world.provider.restore(restorePoint)).environment.provider).toBe(made.provider)
    }
  })

  test('an unknown one is left alone, and the others are served', async () => {
    await using world = await open()
    const made = await issue(world, 1)
    const strange = { ...made, id: 'strange', provider: 'container', path: world.box.path('trees/project/strange') }
    const row = { ...strange, branch: 'strange', work: toWork('issue', '7') } as unknown as IsolatedEnvironment
    await world.context.store.environments.insert(row, undefined)
    mkdirSync(row.path)
    writeFileSync(join(row.path, 'work'), 'x')
    expect(await messageOf(remove(world, row, { force: true }))).toMatch(/no isolation provider "container"/)
    expect(await presenceOf(world.context, world.codebase, row)).toMatchObject({ state: 'cannot-tell' })
    expect(await messageOf(ask(world, 'issue', 7))).toMatch(/container/)
    await reconcile(world.context, world.codebase)
    const status = await look(world)
    expect(status.map(({ environment, merged }) => [environment.branch, merged.value])).toEqual([
      ['issue-1', 'empty'],
      ['strange', 'cannot-tell'],
    ])
    expect(await world.context.store.environments.get(row.id)).toMatchObject({ status: row.status })
    expect(existsSync(join(row.path, 'work'))).toBe(true)
  })

  test('a partial clone is refused with the way out, and leaves nothing', async () => {
    await using world = await open({ prepare: (repo) => repo.git('config', 'extensions.partialClone', 'origin') })
    expect(await messageOf(ask(world, 'issue', 1))).toMatch(/partial clone/)
    expect(refsOf(world, 'refs/coppice')).toEqual([])
    await reconcile(world.context, world.codebase)
  })
})
