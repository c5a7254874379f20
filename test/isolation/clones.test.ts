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
import { toBranchName } from '../../src/domain/names.ts'
import { toWork } from '../../src/domain/work.ts'
import { resolveCodebase } from '../../src/isolation/codebases/codebases.ts'
import type { IsolationContext } from '../../src/isolation/context.ts'
import { createIsolation } from '../../src/isolation/isolation.ts'
import { mergeStatuses } from '../../src/isolation/merge-proof/merge-status.ts'
import { reconcile } from '../../src/isolation/reconcile.ts'
import { presenceOf } from '../../src/isolation/served-by.ts'
import { makeScenarioWorld } from '../crash/arrange.ts'
import { killAt } from '../crash/kill.ts'
import { firstCommit } from '../helpers/repo.ts'
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
  test.each<[string, (world: World, at: Inside) => void]>([
    [
      'its start, when the branch it began at is rewritten',
      ({ repo }) => repo.git('commit', '-q', '--amend', '-m', 'rewritten'),
    ],
    [
      'its base, when that is gone',
      ({ repo }) => {
        repo.git('switch', '-q', '--orphan', 'other')
        repo.commit('x', 'x')
        repo.git('branch', '-D', 'main')
      },
    ],
  ])('%s', async (_, change) => {
    await using world = await open()
    const at = inside(world, await issue(world, 1))
    at.commit('mine', 'x')
    change(world, at)
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
    ).toEqual(['base', 'others', 'start', 'tip'])
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

  test('branches, tags and notes under their names, hundreds at once', async () => {
    await using world = await open()
    const made = await issue(world, 1)
    const at = inside(world, made)
    at.git('switch', '-q', '-c', 'spike')
    const spike = at.commit('spike', 's')
    at.git('tag', '-a', '-m', 'found', 'found')
    at.git('notes', 'add', '-m', 'a note')
    at.git('tag', 'file', at.git('rev-parse', 'HEAD:spike'))
    at.git('switch', '-q', 'issue-1')
    const lines = Array.from({ length: 500 }, (_v, i) => `create refs/tags/t${i} ${spike}\n`)
    execFileSync('git', ['update-ref', '--stdin'], { cwd: made.path, input: lines.join(''), env: world.box.env })
    const spawned = world.context.git.spawned()
    const { notices } = await removed(world, made)
    expect(world.context.git.spawned() - spawned).toBeLessThan(150)
    expect(notices.join('\n').length).toBeLessThan(300)
    expect(['spike', 'found', 'file', 't499'].map((name) => world.repo.git('cat-file', '-t', name))).toEqual([
      'commit',
      'tag',
      'blob',
      'commit',
    ])
    expect(world.repo.git('notes', 'show', spike)).toBe('a note')
    gc(world)
    fsckRepository(world)
  })

  test.each<[string, (world: World) => void, RegExp, (world: World) => string]>([
    [
      'has moved on in the repository: nothing is left to bring',
      ({ repo }) => {
        repo.git('fetch', '-q', '../trees/project/issue-1', 'issue-1:issue-1')
        repo.git('switch', '-q', 'issue-1')
        repo.commit('further', 'x')
        repo.git('switch', '-q', 'main')
      },
      /^$/,
      ({ repo }) => repo.git('rev-parse', 'issue-1~'),
    ],
    [
      'has diverged there',
      ({ repo }) => {
        repo.git('switch', '-q', '-c', 'issue-1')
        repo.commit('other', 'x')
        repo.git('switch', '-q', 'main')
      },
      /issue-1 has other commits in the repository: the clone's branch is kept as issue-1-2/,
      ({ repo }) => repo.git('rev-parse', 'issue-1-2'),
    ],
    [
      'is checked out there',
      ({ repo }) => repo.git('switch', '-q', '-c', 'issue-1'),
      /issue-1 is checked out in .*project: the clone's branch is kept as issue-1-2/,
      ({ repo }) => repo.git('rev-parse', 'issue-1-2'),
    ],
    [
      'is a directory of branches there',
      ({ repo }) => repo.git('branch', 'issue-1/part'),
      /issue-1 can't exist beside issue-1\/part: the clone's branch is kept as issue-1-2/,
      ({ repo }) => repo.git('rev-parse', 'issue-1-2'),
    ],
  ])('its branch %s', async (_, change, notice, tip) => {
    await using world = await open()
    const made = await issue(world, 1)
    const sha = inside(world, made).commit('mine', 'x')
    change(world)
    expect(said(await removed(world, made))).toMatch(notice)
    expect(tip(world)).toBe(sha)
    expect(await world.context.store.journal.open(world.context.host)).toEqual([])
  })

  test('its branch below a name that is a branch of the repository by now', async () => {
    await using world = await open()
    const answer = await world.provider.create({
      codebase: world.codebase,
      work: { type: 'task', id: 'a' },
      branch: toBranchName('a/b'),
      hints: {},
      createdBy: 'test',
      aliases: [],
    })
    if (answer.outcome !== 'created') throw new Error(answer.outcome)
    const sha = inside(world, answer.environment).commit('mine', 'x')
    world.repo.git('branch', 'a')
    const { notices } = await removed(world, answer.environment)
    expect(notices.join()).toMatch(/a\/b can't exist beside a: the clone's branch is kept as a-b-2/)
    expect(world.repo.git('rev-parse', 'a-b-2')).toBe(sha)
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
    const gone = await createIsolation(context).destroy(made, { trigger: 'command', force: true })
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
    truncateSync(git(made, store('huge')), 80 * 1024 * 1024)
    await removed(world, made)
    expect(readFileSync(join(world.repo.commonDir, good), 'utf8')).toBe('large')
    expect(existsSync(join(world.repo.commonDir, bad))).toBe(false)
  })

  test('two that look at the same moment both see it', async () => {
    await using world = await open()
    const at = inside(world, await issue(world, 1))
    for (const round of [1, 2, 3]) {
      at.commit('mine', String(round))
      const seen = await Promise.all([look(world), look(world), look(world), look(world)])
      expect(seen.flat().map(({ merged }) => merged.value)).toEqual(['no', 'no', 'no', 'no'])
    }
  })
})

/** What somebody leaves in a clone, and how the refusal names it. */
const onlyThere: readonly (readonly [RegExp, (world: World, at: Inside) => void])[] = [
  [
    /a stash that only this clone has/,
    (_world, at) => {
      at.write('README', 'x')
      at.git('stash')
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
  test('stashes, refs whose names are taken or odd, worktrees, a rebase, a detached HEAD; by force all of it comes back', async () => {
    await using world = await open()
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
    await killAt(world, 'create-fresh', 'create.attached')
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
})

describe.concurrent('whatever is done to a clone, the repository stays whole', () => {
  const half = /history of .* is incomplete|was changed/
  test.each<[string, (world: World, at: Inside) => void, RegExp]>([
    [
      'a history that ends in it',
      (_world, at) => {
        writeFileSync(join(at.path, '.git/shallow'), `${at.git('rev-parse', 'HEAD')}\n`)
        rmSync(join(at.path, '.git/logs'), { recursive: true })
      },
      half,
    ],
    [
      'other alternates',
      (world, at) => {
        world.box.raw(world.box.root, 'clone', '-q', world.repo.path, world.box.path('copy'))
        writeFileSync(join(at.path, '.git/objects/info/alternates'), `${world.box.path('copy/.git/objects')}\n`)
      },
      half,
    ],
    [
      'no alternates',
      (_world, at) => {
        at.git('repack', '-adq')
        rmSync(join(at.path, '.git/objects/info/alternates'))
      },
      half,
    ],
  ])('%s', async (_, change, reason) => {
    await using world = await open()
    const made = await issue(world, 1)
    const at = inside(world, made)
    at.commit('one', '1')
    at.commit('two', '2')
    change(world, at)
    const [status] = await look(world)
    expect(status?.merged).toMatchObject({
      value: 'cannot-tell',
      why: { message: expect.stringMatching(reason) as string },
    })
    expect(await messageOf(removed(world, made, { force: true }))).toMatch(reason)
    expect(existsSync(join(made.path, 'two'))).toBe(true)
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
  test('from another file system than the home is on', async () => {
    const base = mkdtempSync('/var/tmp/coppice-test-')
    try {
      await using world = await open({ context: { worktreesBase: base } })
      const made = await issue(world, 1)
      const sha = inside(world, made).commit('mine', 'x')
      expect((await look(world))[0]?.merged.value).toBe('no')
      expect((await thereAndBack(world, made)).git('rev-parse', 'HEAD')).toBe(sha)
    } finally {
      rmSync(base, { recursive: true })
    }
  })

  test('with names that are not UTF-8, stray files among its objects and commits that only its reflog has', async () => {
    await using world = await open()
    const made = await issue(world, 1)
    const at = inside(world, made)
    const lost = at.commit('lost', 'x')
    at.git('reset', '-q', '--hard', 'HEAD~')
    at.git('branch', 'lfs/x')
    at.git('switch', '-q', 'lfs/x')
    const onBranch = at.commit('lost-too', 'x')
    at.git('reset', '-q', '--hard', 'HEAD~')
    at.git('switch', '-q', 'issue-1')
    writeFileSync(Buffer.concat([Buffer.from(git(made, 'odd-')), Buffer.from([0xff])]), 'x')
    writeFileSync(git(made, 'objects/maintenance.lock'), '')
    writeFileSync(git(made, 'objects/pack/tmp_pack'), '')
    truncateSync(git(made, 'objects/pack/tmp_pack'), 70 * 1024 * 1024)
    const back = await thereAndBack(world, made)
    gc(world)
    expect([lost, onBranch].map((sha) => back.git('cat-file', '-t', sha))).toEqual(['commit', 'commit'])
    expect(back.git('status', '--short')).toBe('')
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
      'of a repository with SHA-256',
      {
        prepare: (repo, box) => {
          rmSync(repo.path, { recursive: true })
          box.raw(box.root, 'init', '-q', '--object-format=sha256', repo.path)
          repo.commit('README', 'x')
        },
      },
      () => undefined,
    ],
    ['of a bare repository', {}, (world) => world.repo.git('config', 'core.bare', 'true')],
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
    const linked = await issue({ ...world, context, provider: createIsolation(context) }, 2)
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
