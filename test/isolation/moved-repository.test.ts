import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Finding } from '../../src/cli/doctor/finding.ts'
import { examineCodebase } from '../../src/cli/doctor/records.ts'
import type { Codebase } from '../../src/domain/environment.ts'
import { toWork } from '../../src/domain/work.ts'
import { removeCodebase } from '../../src/isolation/codebases/remove.ts'
import { presentCodebase } from '../../src/isolation/codebases/recognise.ts'
import { addCodebase, resolveCodebase } from '../../src/isolation/codebases/codebases.ts'
import { findRestorePoint } from '../../src/isolation/find.ts'
import { acquireLease } from '../../src/isolation/lease.ts'
import { presenceOf } from '../../src/isolation/providers/worktree/presence.ts'
import { reconcile } from '../../src/isolation/reconcile.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { openStore } from '../../src/store/open.ts'
import { makeContext, makeWorld, type World, type WorldOptions } from '../helpers/world.ts'
import { conversation, inside, issue, messageOf, remove, removed } from './scene.ts'

/** The codebase as a command finds it that is run in this directory. */
const at = ({ context }: World, cwd: string): Promise<Codebase> => resolveCodebase(context, { cwd })

/** A world whose repository was used once, so that it can be recognised. */
const marked = async (options: WorldOptions = {}): Promise<World> => {
  const world = await makeWorld(options)
  return { ...world, codebase: await at(world, world.repo.path) }
}

const idFile = (commonDir: string): string => join(commonDir, 'coppice-id')

describe('a repository that was renamed', () => {
  test('keeps its restore points, identities and conversations', async () => {
    await using world = await marked()
    const made = await issue(world, 1)
    inside(world, made).write('precious', 'uncommitted')
    await removed(world, made, { force: true })
    const other = await issue(world, 2)
    await world.context.store.environments.addAlias(other.id, world.codebase.id, toWork('pr', '3'), 0)
    const { id } = await conversation(world, { environmentId: other.id })
    renameSync(world.repo.path, world.box.path('renamed'))
    const found = await at(world, world.box.path('renamed'))
    expect(found).toMatchObject({
      id: world.codebase.id,
      name: 'project',
      repoPath: world.box.path('renamed/.git'),
      checkoutPath: world.box.path('renamed'),
    })
    const point = await findRestorePoint(world.context, found, undefined, '/')
    const { environment } = await world.provider.restore(point)
    expect(readFileSync(join(environment.path, 'precious'), 'utf8')).toBe('uncommitted')
    expect((await world.context.store.environments.liveByWork(found.id, toWork('pr', '3')))?.id).toBe(other.id)
    expect(await world.context.store.conversations.get(id)).toMatchObject({ environmentId: other.id })
  })

  test.each([
    ['itself', (world: World) => renameSync(world.repo.path, world.box.path('new'))],
    [
      'to another disk',
      (world: World) => {
        cpSync(world.repo.path, world.box.path('new'), { recursive: true })
        rmSync(world.repo.path, { recursive: true })
      },
    ],
  ])('%s has its live worktrees linked again', async (_, move) => {
    await using world = await marked()
    world.repo.write('.beads/issues', '')
    const made = await issue(world, 1)
    inside(world, made).write('new-file', 'untracked')
    move(world)
    const found = await at(world, world.box.path('new'))
    expect(found.id).toBe(world.codebase.id)
    expect((await presenceOf(found, made)).state).toBe('present')
    expect(inside(world, made).git('status', '--short')).toContain('?? new-file')
    expect(readFileSync(join(made.path, '.beads/redirect'), 'utf8')).toBe(`${world.box.path('new/.beads')}\n`)
    inside(world, made).commit('more', 'work')
    expect((await reconcile(world.context, found)).left).toEqual([])
    const asked = { force: true, dryRun: true }
    expect(await remove({ ...world, codebase: found }, made, asked)).toMatchObject({ outcome: 'would-remove' })
  })

  test('leaves two worktrees that had changed places linked as they were', async () => {
    await using world = await marked()
    const [one, two] = [await issue(world, 1), await issue(world, 2)]
    renameSync(one.path, world.box.path('aside'))
    renameSync(two.path, one.path)
    renameSync(world.box.path('aside'), two.path)
    renameSync(world.repo.path, world.box.path('new'))
    await at(world, world.box.path('new'))
    const branches = [one, two].map((each) => inside(world, each).git('branch', '--show-current'))
    expect(branches).toEqual(['issue-2', 'issue-1'])
  })

  test.each([
    [
      'is recognised after its disk got another number',
      (_dev: string, ino: string, birth: string) => `999999:${ino}:${birth}`,
      true,
    ],
    // Where no births are known, the same inode on another disk says nothing.
    [
      'is not taken for one of another disk that has its inode',
      (_dev: string, ino: string) => `999999:${ino}:0`,
      false,
    ],
    ['is not taken for an older one that had its inode', (dev: string, ino: string) => `${dev}:${ino}:1`, false],
  ])('%s', async (_what, record, isRecognised) => {
    await using world = await marked()
    const { id, repoInode = '' } = world.codebase
    const [dev = '', ino = '', birth = ''] = repoInode.split(':')
    await world.context.store.codebases.update(id, { repoInode: record(dev, ino, birth) })
    // Its old place is empty, and yet nobody knows whether it is gone: it may be a link to a disk that isn't mounted.
    renameSync(world.repo.path, world.box.path('new'))
    symlinkSync(world.box.path('not-mounted/project'), world.repo.path)
    expect((await at(world, world.box.path('new'))).id === id).toBe(isRecognised)
  })

  test('with the directory above it is recognised too', async () => {
    await using world = await marked()
    mkdirSync(world.box.path('code'))
    const inner = world.box.repo('code/inner')
    const before = await at(world, inner.path)
    renameSync(world.box.path('code'), world.box.path('projects'))
    expect(await at(world, world.box.path('projects/inner'))).toMatchObject({ id: before.id, name: 'inner' })
  })

  test('is recognised when it is bare', async () => {
    await using world = await marked()
    world.box.raw(world.box.root, 'clone', '-q', '--bare', world.repo.path, world.box.path('bare.git'))
    const before = await at(world, world.box.path('bare.git'))
    renameSync(world.box.path('bare.git'), world.box.path('other.git'))
    expect(await at(world, world.box.path('other.git'))).toMatchObject({
      id: before.id,
      repoPath: world.box.path('other.git'),
      checkoutPath: undefined,
    })
  })

  test('is recognised again when the first time was interrupted', async () => {
    await using world = await marked()
    const made = await issue(world, 1)
    renameSync(world.repo.path, world.box.path('new'))
    const { store } = world.context
    const dying = { ...store, transaction: () => Promise.reject(new Error('killed')) }
    const context = { ...world.context, store: dying }
    expect(await messageOf(resolveCodebase(context, { cwd: world.box.path('new') }))).toBe('killed')
    const found = await at(world, world.box.path('new'))
    expect(found.id).toBe(world.codebase.id)
    expect((await presenceOf(found, made)).state).toBe('present')
  })

  test('takes a removal back that was interrupted at its old place', async () => {
    await using world = await marked()
    const made = await issue(world, 1)
    const failing = {
      ...world.context,
      failpoint: async (name: string) => {
        if (name === 'remove.moved' || name === 'undo-remove.back') throw new Error('killed')
      },
    }
    const broken = { ...world, provider: createEnvironments(failing) }
    await expect(remove(broken, made, { force: true })).rejects.toThrow('killed')
    renameSync(world.repo.path, world.box.path('new'))
    const found = await at(world, world.box.path('new'))
    expect((await reconcile(world.context, found)).left).toEqual([])
    expect(await world.context.store.environments.get(made.id)).toMatchObject({ status: 'active' })
    expect(inside(world, made).git('status', '--short')).toBe('')
  })

  test('and was removed from Coppice finds its restore points when it is registered at its new place', async () => {
    await using world = await marked()
    await removed(world, await issue(world, 1), { force: true })
    await removeCodebase(world.context, world.codebase)
    renameSync(world.repo.path, world.box.path('new'))
    // Another one at its old place must not get them.
    const other = world.box.repo('project')
    const stranger = await at(world, other.path)
    expect(await world.context.store.restorePoints.list(stranger.id)).toEqual([])
    const { codebase } = await addCodebase(world.context, world.box.path('new'), '/')
    expect((await findRestorePoint(world.context, codebase, undefined, '/')).contents.environment.branch).toBe(
      'issue-1',
    )
  })

  test('into the old place of another one: each is who it is, whichever is asked for first', async () => {
    for (const first of ['a', 'c'] as const) {
      await using world = await marked()
      const [a, b] = [world.box.repo('a'), world.box.repo('b')]
      const [idA, idB] = [(await at(world, a.path)).id, (await at(world, b.path)).id]
      renameSync(a.path, world.box.path('c'))
      renameSync(b.path, world.box.path('a'))
      const second = first === 'a' ? 'c' : 'a'
      const ids = { [first]: (await at(world, world.box.path(first))).id }
      ids[second] = (await at(world, world.box.path(second))).id
      expect(ids).toEqual({ a: idB, c: idA })
      expect(await resolveCodebase(world.context, { name: 'a', cwd: '/' })).toMatchObject({ id: idA })
    }
  })

  test('is recognised by each of two homes that share it', async () => {
    await using world = await marked()
    const home = world.box.path('second')
    mkdirSync(home)
    const store = await openStore({ sqliteFile: join(home, 'coppice.db') })
    try {
      const second = await makeContext(world.box, { host: 'second-host', home, store })
      const before = await resolveCodebase(second, { cwd: world.repo.path })
      renameSync(world.repo.path, world.box.path('new'))
      expect((await at(world, world.box.path('new'))).id).toBe(world.codebase.id)
      expect(await resolveCodebase(second, { cwd: world.box.path('new') })).toMatchObject({ id: before.id })
    } finally {
      await store.close()
    }
  })
})

describe('a repository that was moved and left a link at its old place', () => {
  const moveAndLink = (from: string, to: string): void => {
    renameSync(from, to)
    symlinkSync(to, from)
  }
  type Story = { readonly what: string; readonly move: (world: World) => void; readonly real: string }
  const stories: readonly Story[] = [
    { what: 'itself', move: ({ box, repo }) => moveAndLink(repo.path, box.path('real')), real: 'real/.git' },
    {
      what: 'its git directory',
      move: ({ box, repo }) => moveAndLink(repo.commonDir, box.path('real.git')),
      real: 'real.git',
    },
    {
      what: 'a directory above it',
      move: ({ box }) => moveAndLink(box.path('code'), box.path('src')),
      real: 'src/project/.git',
    },
    {
      what: 'to another disk',
      move: ({ box, repo }) => {
        cpSync(repo.path, box.path('real'), { recursive: true })
        rmSync(repo.path, { recursive: true })
        symlinkSync(box.path('real'), repo.path)
      },
      real: 'real/.git',
    },
    {
      what: 'without a mark in it',
      move: ({ box, repo }) => {
        rmSync(idFile(repo.commonDir))
        moveAndLink(repo.path, box.path('real'))
      },
      real: 'real/.git',
    },
  ]
  const findings = async ({ context }: World, codebase: Codebase): Promise<Finding[]> =>
    (await examineCodebase(context, codebase)).filter(({ state }) => state === 'problem')

  test.for(stories)('is followed, whichever way it is asked for: $what', async ({ what, move, real }) => {
    await using first = await marked()
    mkdirSync(first.box.path('code'))
    const repo = first.box.repo('code/project')
    const world = {
      ...first,
      repo,
      codebase: (await addCodebase(first.context, repo.path, '/', { name: 'p' })).codebase,
    }
    const { context, box } = world
    const made = await issue(world, 1)
    inside(world, made).write('precious', 'uncommitted')
    move(world)
    const place = box.path(real)
    expect(await findings(world, world.codebase)).toMatchObject([
      { detail: `its repository was moved to ${place}`, remedy: 'coppice doctor --fix' },
    ])
    const forgotten = { repoPath: world.codebase.repoPath, checkoutPath: world.codebase.checkoutPath }
    const ways: readonly (() => Promise<unknown>)[] = [
      () => resolveCodebase(context, { name: 'p', cwd: '/' }),
      () => resolveCodebase(context, { cwd: made.path }),
      () => reconcile(context, world.codebase),
      ...(real.endsWith('real.git') ? [] : [() => resolveCodebase(context, { cwd: repo.path })]),
    ]
    for (const way of ways) {
      await context.store.codebases.update(world.codebase.id, forgotten)
      await way()
      expect(await context.store.codebases.get(world.codebase.id)).toMatchObject({ repoPath: place })
    }
    const codebase = (await context.store.codebases.byName(context.host, 'p')) ?? world.codebase
    expect(await findings(world, codebase)).toEqual([])
    // Also without the link.
    expect(readFileSync(join(made.path, '.git'), 'utf8')).toBe(`gitdir: ${place}/worktrees/issue-1\n`)
    const asked = { force: true, dryRun: true }
    expect(await remove({ ...world, codebase }, made, asked)).toMatchObject({ outcome: 'would-remove' })
    if (what !== stories[0]?.what) return
    // Work goes on there as ever.
    const later = await issue({ ...world, codebase }, 2)
    for (const environment of [made, later]) {
      expect(await remove({ ...world, codebase }, environment, { force: true })).toMatchObject({ outcome: 'removed' })
    }
  })

  test('to a disk that is not mounted is unknown, not gone', async () => {
    await using world = await marked()
    rmSync(world.repo.path, { recursive: true })
    symlinkSync(world.box.path('not-mounted/project'), world.repo.path)
    expect(await messageOf(removeCodebase(world.context, world.codebase))).toContain('a link is dangling')
  })

  test('is not taken for another one that the link leads to', async () => {
    await using world = await marked()
    const made = await issue(world, 1)
    const other = world.box.repo('other')
    renameSync(world.repo.path, world.box.path('away'))
    symlinkSync(other.path, world.repo.path)
    expect(await messageOf(presentCodebase(world.context, world.codebase))).toContain('another one is at')
    expect((await at(world, world.box.path('away'))).id).toBe(world.codebase.id)
    expect(inside(world, made).git('branch', '--show-current')).toBe('issue-1')
  })
})

describe('a copy of a repository', () => {
  test('is a codebase of its own, and the worktrees stay with the original', async () => {
    await using world = await marked()
    const made = await issue(world, 1)
    cpSync(world.repo.path, world.box.path('copy'), { recursive: true })
    const copy = await at(world, world.box.path('copy'))
    expect(copy.id).not.toBe(world.codebase.id)
    expect(readFileSync(idFile(copy.repoPath), 'utf8')).toContain(copy.id)
    expect(await at(world, world.repo.path)).toMatchObject({ id: world.codebase.id, repoPath: world.repo.commonDir })
    expect((await presenceOf(world.codebase, made)).state).toBe('present')
    expect(inside(world, made).git('rev-parse', '--git-common-dir')).toBe(world.repo.commonDir)
    // And it can be moved itself.
    renameSync(world.box.path('copy'), world.box.path('copy-2'))
    expect((await at(world, world.box.path('copy-2'))).id).toBe(copy.id)
  })

  test('does not take over one whose disk is not mounted, unless the user says that it is this one', async () => {
    await using world = await marked()
    cpSync(world.repo.path, world.box.path('backup'), { recursive: true })
    // As if its directory lay on a disk that is not there now.
    const repoInode = `999999:${world.codebase.repoInode?.split(':').slice(1).join(':')}`
    await world.context.store.codebases.update(world.codebase.id, { repoInode })
    renameSync(world.repo.path, world.box.path('unmounted'))
    expect(await messageOf(resolveCodebase(world.context, { name: 'project', cwd: '/' }))).toContain(
      'its disk may not be mounted',
    )
    cpSync(world.box.path('backup'), world.box.path('backup-2'), { recursive: true })
    expect((await at(world, world.box.path('backup'))).id).not.toBe(world.codebase.id)
    const { codebase } = await addCodebase(world.context, world.box.path('backup-2'), '/', { name: 'project' })
    expect(codebase).toMatchObject({ id: world.codebase.id, checkoutPath: world.box.path('backup-2') })
  })
})

describe('an id that somebody else has written', () => {
  const forgeries: readonly [string, (path: string, victim: string) => void][] = [
    ['the id of another codebase', (path, victim) => writeFileSync(path, `this-host ${victim}\n`)],
    ['garbage', (path) => writeFileSync(path, '\0\0 ../../etc/passwd\n'.repeat(100))],
    [
      'a huge file',
      (path) => {
        writeFileSync(path, '')
        truncateSync(path, 1024 ** 3)
      },
    ],
  ]

  test('takes nothing over from a codebase that is there, be it of another, garbage or huge', async () => {
    await using world = await marked()
    for (const [i, [what, forge]] of forgeries.entries()) {
      const fresh = world.box.repo(`fresh-${i}`)
      const known = world.box.repo(`known-${i}`)
      const { id } = await at(world, known.path)
      rmSync(idFile(known.commonDir))
      for (const { commonDir } of [fresh, known]) forge(idFile(commonDir), world.codebase.id)
      expect([what, (await at(world, fresh.path)).id]).not.toEqual([what, world.codebase.id])
      expect([what, (await at(world, known.path)).id]).toEqual([what, id])
      expect(readFileSync(idFile(known.commonDir), 'utf8')).toBe(`this-host ${id}\n`)
      expect(await at(world, world.repo.path)).toMatchObject({ id: world.codebase.id, repoPath: world.repo.commonDir })
    }
  })

  const unusable: readonly [string, (path: string) => void][] = [
    ['a FIFO', (path) => execFileSync('mkfifo', [path])],
    ['a link to a device', (path) => symlinkSync('/dev/zero', path)],
  ]

  test.each(unusable)('%s takes nothing over, and is named: git is not started beside it', async (_, forge) => {
    await using world = await marked()
    const fresh = world.box.repo('fresh')
    forge(idFile(fresh.commonDir))
    expect(await messageOf(at(world, fresh.path))).toContain(idFile(fresh.commonDir))
    expect(await at(world, world.repo.path)).toMatchObject({ id: world.codebase.id, repoPath: world.repo.commonDir })
  })

  test('in the original does not help a copy that claims to be it', async () => {
    await using world = await marked()
    cpSync(world.repo.path, world.box.path('evil'), { recursive: true })
    writeFileSync(idFile(world.repo.commonDir), 'this-host something-else\n')
    expect((await at(world, world.box.path('evil'))).id).not.toBe(world.codebase.id)
    expect((await at(world, world.repo.path)).id).toBe(world.codebase.id)
    expect(existsSync(world.box.path('evil'))).toBe(true)
  })
})

describe('a repository is not taken for another', () => {
  test('when it is registered and carries the id of one that is gone', async () => {
    await using world = await marked()
    const other = world.box.repo('other')
    const { id } = await at(world, other.path)
    cpSync(idFile(world.repo.commonDir), idFile(other.commonDir))
    rmSync(world.repo.path, { recursive: true })
    expect((await at(world, other.path)).id).toBe(id)
  })

  test('when it is new at the place of one that left restore points', async () => {
    await using world = await makeWorld()
    const repo = world.box.repo('second')
    const codebase = await at(world, repo.path)
    const made = await issue({ ...world, codebase, repo }, 1)
    await removed(world, made)
    await removeCodebase(world.context, codebase)
    rmSync(repo.path, { recursive: true })
    const { id } = await at(world, world.box.repo('second').path)
    expect(id).not.toBe(codebase.id)
    expect(await world.context.store.restorePoints.list(id)).toEqual([])
  })

  test('when it was moved to where the other one was', async () => {
    await using world = await marked()
    const other = world.box.repo('other')
    await at(world, other.path)
    renameSync(world.repo.path, world.box.path('away'))
    renameSync(other.path, world.repo.path)
    expect(await messageOf(presentCodebase(world.context, world.codebase))).toContain('another one is at')
  })

  test('by a worktree whose .git leads there: it is not linked again', async () => {
    await using world = await marked()
    const made = await issue(world, 1)
    const theirs = world.box.repo('other').worktree('theirs', '-b', 'theirs')
    cpSync(join(theirs.path, '.git'), join(made.path, '.git'))
    const links = [join(made.path, '.git'), join(theirs.gitDir, 'gitdir')]
    const before = links.map((file) => readFileSync(file, 'utf8'))
    renameSync(world.repo.path, world.box.path('renamed'))
    await at(world, world.box.path('renamed'))
    expect(links.map((file) => readFileSync(file, 'utf8'))).toEqual(before)
  })
})

test('a repository that is gone is not released while a worktree of it is in use', async () => {
  await using world = await marked()
  const made = await issue(world, 1)
  await acquireLease(world.context, world.codebase, made, { purpose: 'an agent' })
  rmSync(world.repo.path, { recursive: true })
  await expect(removeCodebase(world.context, world.codebase)).rejects.toMatchObject({ code: 'codebase-in-use' })
})
