import { cpSync, existsSync, lstatSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { onConversationClosed } from '../../src/cleanup/closed.ts'
import { runScheduledCleanup, type SweepOptions } from '../../src/cleanup/sweep.ts'
import type { Settings } from '../../src/domain/config/settings.ts'
import type { Codebase } from '../../src/domain/environment.ts'
import { toBranchName, toCodebaseId } from '../../src/domain/names.ts'
import { reportJson } from '../../src/commands/views/json.ts'
import { freshen } from '../../src/isolation/codebases/base.ts'
import { keepSpares } from '../../src/isolation/providers/worktree/spare.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { makeContext, makeWorld, type World, type WorldOptions } from '../helpers/world.ts'
import { ask, branchExists, conversation, fingerprint, inside, issue, remove, removed, resolved } from './scene.ts'
import { said } from '../helpers/words.ts'
import { asProgram } from '../../src/commands/views/view.ts'
import { describeRemovalReason } from '../../src/commands/views/merged.ts'
import { describeReason } from '../../src/commands/views/reasons.ts'
import { limitMessage } from '../../src/commands/views/limit.ts'

const day = 24 * 60 * 60 * 1000

const sweep = (world: World, options?: SweepOptions) =>
  runScheduledCleanup(world.context, world.provider, world.codebase, options)

const withSettings = (world: World, settings: Partial<Settings>): World => {
  const context = { ...world.context, settings: { ...world.context.settings, ...settings } }
  return { ...world, context, provider: createEnvironments(context) }
}

const names = (rows: readonly { environment: { branch: string } }[]): string[] =>
  rows.map(({ environment }) => environment.branch)

/**
 * A world that is arranged once and put back for each test: its repositories, worktrees and database are copies, so that
 * nothing of one test is left for the next.
 */
const sceneOf = <T>(options: WorldOptions, arrange: (world: World) => Promise<T>) => {
  const parts = ['project', 'origin.git', 'trees', 'state']
  let made: Promise<{ world: World; arranged: T }> | undefined
  const make = async () => {
    const world = await makeWorld(options)
    const arranged = await arrange(world)
    await world.context.store.close()
    for (const part of parts) {
      if (existsSync(world.box.path(part))) cpSync(world.box.path(part), world.box.path(`copy/${part}`), inFull)
    }
    return { world, arranged }
  }
  return {
    open: async () => {
      const { world, arranged } = await (made ??= make())
      // The directories themselves stay: a repository is also known by its inode.
      for (const name of readdirSync(world.box.root)) if (!['copy', 'home'].includes(name)) empty(world.box.path(name))
      for (const part of readdirSync(world.box.path('copy'))) {
        cpSync(world.box.path(`copy/${part}`), world.box.path(part), inFull)
      }
      const context = await makeContext(world.box, options.context ?? {}, options)
      const again: World = { ...world, context, provider: createEnvironments(context) }
      return { ...arranged, world: again, [Symbol.asyncDispose]: () => context.store.close() }
    },
    close: async () => (await made)?.world.box[Symbol.dispose](),
  }
}
const inFull = { recursive: true, preserveTimestamps: true, verbatimSymlinks: true }
const empty = (path: string): void => {
  if (!lstatSync(path).isDirectory()) return rmSync(path)
  for (const name of readdirSync(path)) {
    if (name === '.git' && lstatSync(join(path, name)).isDirectory()) empty(join(path, name))
    else rmSync(join(path, name), { recursive: true })
  }
}

describe('the sweep removes what is merged, by each proof', () => {
  const scene = sceneOf({ settings: { holdMergedHours: 0 } }, async (world) => {
    const environment = await issue(world, 42)
    const tree = inside(world, environment)
    tree.commit('one', '1\n')
    tree.commit('two', '2\n')
    return { environment }
  })
  afterAll(scene.close)
  const ways: [string, (world: World) => void, RegExp][] = [
    ['a merge', (world) => world.repo.git('merge', '-q', '--no-ff', '-m', 'land', 'issue-42'), /ancestor of main/],
    ['a fast-forward', (world) => world.repo.git('merge', '-q', '--ff-only', 'issue-42'), /ancestor of main/],
    [
      'a merge into a base without a reflog',
      ({ repo }) => {
        repo.git('merge', '-q', '--no-ff', '-m', 'land', 'issue-42')
        rmSync(join(repo.commonDir, 'logs/refs/heads/main'))
      },
      /ancestor of main/,
    ],
    [
      'a merge from before the reflog of base begins',
      ({ repo }) => {
        repo.git('merge', '-q', '--no-ff', '-m', 'land', 'issue-42')
        repo.git('reflog', 'expire', '--expire=now', 'main')
        repo.commit('more', 'more\n')
      },
      /ancestor of main/,
    ],
    [
      'a fast-forward of a base whose older reflog has expired',
      ({ repo }) => {
        repo.git('reflog', 'expire', '--expire=now', 'main')
        repo.git('merge', '-q', '--ff-only', 'issue-42')
      },
      /ancestor of main/,
    ],
    [
      'a squash at the tip',
      (world) => {
        world.repo.git('merge', '-q', '--squash', 'issue-42')
        world.repo.git('commit', '-q', '-m', 'squashed')
      },
      /same content as main/,
    ],
    [
      'a squash that base went on from',
      (world) => {
        world.repo.git('merge', '-q', '--squash', 'issue-42')
        world.repo.git('commit', '-q', '-m', 'squashed')
        world.repo.commit('unrelated', 'went on\n')
      },
      /merged: /,
    ],
    [
      'a squash whose lines base changed later',
      (world) => {
        world.repo.git('merge', '-q', '--squash', 'issue-42')
        world.repo.git('commit', '-q', '-m', 'squashed')
        world.repo.commit('one', 'rewritten since\n')
      },
      /merged: /,
    ],
  ]
  test.for(ways)('%s', async ([what, land, proof]) => {
    await using opened = await scene.open()
    const { world, environment } = opened
    land(world)
    // A removal asks again, in the same way whatever the proof: one of each kind of proof is enough.
    const dryRun = !['a merge', 'a squash at the tip', 'a squash whose lines base changed later'].includes(what)
    const report = await sweep(world, { dryRun })
    expect(names(report.removed)).toEqual(['issue-42'])
    expect(describeRemovalReason(report.removed[0]?.why ?? '')).toMatch(proof)
    if (dryRun) return
    expect(report.removed[0]).toMatchObject({ branchDeleted: true })
    expect(report.removed[0]?.restorePoint).toBeDefined()
    expect(existsSync(environment.path)).toBe(false)
  })

  test('on the remote, where a colleague merged it', async () => {
    await using world = await makeWorld({ remote: true, settings: { holdMergedHours: 0 } })
    const environment = await issue(world, 42)
    const tip = inside(world, environment).commit('one', '1\n')
    world.repo.git('push', '-q', 'origin', `${tip}:main`)
    world.repo.git('update-ref', 'refs/remotes/origin/main', world.repo.sha('main'))
    const report = await sweep(world, { dryRun: true })
    expect(describeRemovalReason(report.removed[0]?.why ?? '')).toBe('merged: ancestor of origin/main')
  })
})

describe('work that somebody merely looks at is not merged', () => {
  const looks: [string, (world: World) => void | Promise<void>, says?: string][] = [
    ['on a detached HEAD', ({ repo }) => repo.git('checkout', '-q', '--detach', 'issue-42')],
    ['on a review branch', ({ repo }) => repo.git('checkout', '-q', '-b', 'review', 'issue-42')],
    ['on its own branch', ({ repo }) => repo.git('checkout', '-q', '--ignore-other-worktrees', 'issue-42')],
    [
      'by naming its branch as base',
      ({ repo }) => {
        repo.commit('.coppice/config.yaml', 'worktree:\n  base: issue-42\n')
      },
    ],
    [
      'by putting the tag on it that is base',
      ({ repo }) => {
        repo.git('tag', 'v1')
        repo.commit('.coppice/config.yaml', 'worktree:\n  base: v1\n')
        repo.git('tag', '-f', 'v1', 'issue-42')
      },
      'base v1 is not a local branch: nothing is removed as merged',
    ],
    [
      'by naming its commit as base',
      ({ repo }) => {
        repo.commit('.coppice/config.yaml', `worktree:\n  base: ${repo.sha('issue-42')}\n`)
      },
    ],
    [
      'by creating the branch from it that is base',
      ({ repo }) => {
        repo.commit('.coppice/config.yaml', 'worktree:\n  base: release\n')
        repo.git('branch', 'release', 'issue-42')
      },
    ],
    [
      'by creating the branch from a copy of it that is base',
      ({ repo }) => {
        repo.commit('.coppice/config.yaml', 'worktree:\n  base: release\n')
        repo.git('branch', 'release', repo.git('commit-tree', '-p', 'main', '-m', 'copy', 'issue-42^{tree}'))
      },
    ],
    [
      'by creating the branch that is base from it and going on there',
      ({ repo }) => {
        repo.commit('.coppice/config.yaml', 'worktree:\n  base: release\n')
        repo.git('checkout', '-q', '-b', 'release', 'issue-42')
        repo.commit('more', 'more\n')
        repo.git('checkout', '-q', 'main')
      },
    ],
    [
      'by creating the branch that is base without a reflog',
      ({ repo }) => {
        repo.commit('.coppice/config.yaml', 'worktree:\n  base: release\n')
        repo.git('-c', 'core.logAllRefUpdates=false', 'branch', 'release', 'issue-42')
      },
    ],
    [
      'by creating the default branch from it without a reflog',
      ({ repo }) => {
        repo.git('config', 'core.logAllRefUpdates', 'false')
        repo.git('branch', '-m', 'main', 'old')
        repo.git('branch', 'main', 'issue-42')
      },
    ],
    [
      'by a merge of it into a default branch that was created from an earlier commit of it, without a reflog',
      (world) => {
        const { repo } = world
        const early = repo.sha('issue-42')
        inside(world, { path: join(world.context.worktreesBase, 'project/issue-42') }).commit('late', 'late\n')
        repo.git('branch', '-m', 'main', 'old')
        repo.git('checkout', '-q', '-b', 'main', early)
        repo.git('merge', '-q', '--no-ff', '-m', 'merge', 'issue-42')
        rmSync(join(repo.commonDir, 'logs/refs/heads/main'))
      },
    ],
    [
      'by renaming a review branch over the default branch and expiring its reflog',
      ({ repo }) => {
        repo.git('checkout', '-q', '-b', 'review', 'issue-42')
        repo.git('branch', '-M', 'review', 'main')
        repo.git('reflog', 'expire', '--expire=now', 'main')
        repo.commit('more', 'more\n')
      },
    ],
    [
      'by moving a default branch that was created from it on to its later tip',
      (world) => {
        const { repo } = world
        repo.git('checkout', '-q', '-b', 'review', 'issue-42')
        repo.git('branch', '-M', 'review', 'main')
        inside(world, { path: join(world.context.worktreesBase, 'project/issue-42') }).commit('late', 'late\n')
        repo.git('reset', '-q', '--hard', 'issue-42')
      },
    ],
    [
      'by making base a symbolic ref to its branch',
      ({ repo }) => {
        repo.commit('.coppice/config.yaml', 'worktree:\n  base: release\n')
        repo.git('symbolic-ref', 'refs/heads/release', 'refs/heads/issue-42')
      },
    ],
    [
      'by making the default branch a symbolic ref to its branch',
      ({ repo }) => {
        repo.git('checkout', '-q', '--detach')
        repo.git('symbolic-ref', 'refs/heads/main', 'refs/heads/issue-42')
      },
    ],
    [
      'by putting a tracking ref on it that nothing was fetched into',
      ({ repo }) => {
        repo.commit('.coppice/config.yaml', 'worktree:\n  base: elsewhere/main\n')
        repo.git('update-ref', 'refs/remotes/elsewhere/main', 'issue-42')
      },
    ],
    [
      'by pushing it and naming the tag on it as base',
      ({ repo, box }) => {
        repo.git('tag', 'v1', 'issue-42')
        repo.commit('.coppice/config.yaml', 'worktree:\n  base: v1\n')
        repo.git('push', '-q', box.path('origin.git'), 'main', 'v1')
      },
      "base v1 isn't a remote branch: nothing is removed as merged",
    ],
    [
      'by pushing a base that is a tracking ref of no remote',
      ({ repo, box }) => {
        repo.commit('.coppice/config.yaml', 'worktree:\n  base: elsewhere/main\n')
        repo.git('push', '-q', box.path('origin.git'), 'main')
        repo.git('update-ref', 'refs/remotes/elsewhere/main', 'issue-42')
      },
      "elsewhere/main isn't on any configured remote: nothing is removed as merged",
    ],
    [
      'by merging it into the branch of another worktree',
      async (world) => {
        inside(world, await issue(world, 7)).git('merge', '-q', 'issue-42')
        world.repo.commit('.coppice/config.yaml', 'worktree:\n  base: issue-7\n')
      },
    ],
    [
      'by pushing a base that names a local branch on it',
      ({ repo, box }) => {
        repo.commit('.coppice/config.yaml', 'worktree:\n  base: local\n')
        repo.git('push', '-q', box.path('origin.git'), 'main')
        repo.git('branch', 'local', 'main')
        repo.git('update-ref', 'refs/heads/local', 'issue-42')
      },
    ],
    [
      "by pushing it under another name that passes for the remote's default branch",
      ({ repo, box }) => {
        repo.git('push', '-q', box.path('origin.git'), 'issue-42:review')
        repo.git('fetch', '-q', 'origin')
        repo.git('symbolic-ref', 'refs/remotes/origin/HEAD', 'refs/remotes/origin/review')
      },
    ],
    [
      "by making the remote's branch a symbolic ref to its branch",
      ({ repo }) => {
        repo.git('update-ref', '-d', 'refs/remotes/origin/main')
        repo.git('symbolic-ref', 'refs/remotes/origin/main', 'refs/heads/issue-42')
      },
    ],
    [
      'by pushing it and naming its branch as base',
      ({ repo, box }) => {
        repo.commit('.coppice/config.yaml', 'worktree:\n  base: issue-42\n')
        repo.git('push', '-q', box.path('origin.git'), 'main', 'issue-42')
      },
    ],
    [
      "by making it the remote's default branch",
      ({ repo, box }) => {
        repo.git('push', '-q', box.path('origin.git'), 'issue-42')
        repo.git('symbolic-ref', 'refs/remotes/origin/HEAD', 'refs/remotes/origin/issue-42')
      },
    ],
  ]
  const scenes = [false, true].map((remote) =>
    sceneOf({ remote, settings: { holdMergedHours: 0 } }, async (world) => {
      const environment = await issue(world, 42)
      inside(world, environment).commit('one', '1\n')
      return { environment }
    }),
  )
  afterAll(() => Promise.all(scenes.map(({ close }) => close())))
  test.for(looks)('%s', async ([name, look, says]) => {
    const isRemote = name.includes('push') || name.includes('remote')
    await using opened = await scenes[isRemote ? 1 : 0]!.open()
    const { world, environment } = opened
    await look(world)
    const tip = world.repo.git('rev-parse', 'refs/heads/issue-42')
    const report = await sweep(world)
    expect(report).toMatchObject({ removed: [], errors: [] })
    expect(said(report.notices).join()).toContain(says ?? '')
    // What a removal decides about the branch, it has decided before a dry run ends.
    const asked = await remove(world, environment, { dryRun: true })
    expect(asked.outcome === 'would-remove' && ['no', 'cannot-tell'].includes(asked.merged.value)).toBe(true)
    if (!/on a review branch|making it the remote's default/.test(name)) return
    expect((await removed(world, environment)).branchDeleted).toBe(false)
    expect(world.repo.git('rev-parse', 'refs/heads/issue-42')).toBe(tip)
  })
})

describe.concurrent('the sweep', () => {
  test('leaves what is neither merged nor stale, and what has a commit that is not on base', async () => {
    await using world = await makeWorld({ settings: { holdMergedHours: 0 } })
    await issue(world, 1)
    inside(world, await issue(world, 2)).commit('a', 'a\n')
    expect((await sweep(world)).removed).toEqual([])
    expect(await world.context.store.environments.live(world.codebase.id)).toHaveLength(2)
  })

  test('removes what is stale after 14 days, keeps its branch with its commits, and counts a commit as life', async () => {
    let now = Date.now()
    await using world = await makeWorld({ context: { clock: () => now } })
    const old = await issue(world, 1)
    const tip = inside(world, old).commit('a', 'a\n')
    now += 13.9 * day
    expect((await sweep(world)).removed).toEqual([])
    now += 0.2 * day
    const busy = await issue(world, 2)
    await world.context.store.environments.update(busy.id, { lastActivityAt: 1 })
    const date = new Date(now).toISOString()
    world.box.env['GIT_COMMITTER_DATE'] = date
    inside(world, busy).commit('b', 'b\n')
    delete world.box.env['GIT_COMMITTER_DATE']
    const report = await sweep(world)
    expect(names(report.removed)).toEqual(['issue-1'])
    expect(report.removed[0]).toMatchObject({ branchDeleted: false })
    expect(world.repo.git('rev-parse', 'issue-1')).toBe(tip)
  })

  test('leaves adopted environments and those of persistent platforms, merged and stale as they are', async () => {
    await using world = await makeWorld({ settings: { staleDays: 0, holdMergedHours: 0 } })
    const tree = world.repo.worktree('mine', '-b', 'mine')
    const adopted = await world.provider.adopt(world.codebase, tree.path, { createdBy: 'test', aliases: [] })
    const chat = await issue(world, 1)
    await conversation(world, { platform: 'telegram', environmentId: chat.id, persistent: true, lastActivityAt: 1 })
    inside(world, chat).commit('a', 'a\n')
    world.repo.git('merge', '-q', '--no-ff', '-m', 'land', 'issue-1')
    const report = await sweep(world)
    expect(report.removed).toEqual([])
    expect(names(report.skipped)).toEqual(['issue-1'])
    const statuses = await Promise.all([adopted, chat].map(({ id }) => world.context.store.environments.get(id)))
    expect(statuses.map((one) => one?.status)).toEqual(['active', 'active'])
  })

  test('goes on when one environment fails, and names it', async () => {
    await using world = await makeWorld({
      settings: { staleDays: 0 },
      context: { approve: () => Promise.resolve(true) },
      prepare: (repo) =>
        repo.commit('.coppice/config.yaml', 'worktree:\n  teardown: ["test $COPPICE_BRANCH != issue-2"]\n'),
    })
    for (const n of [1, 2, 3]) await issue(world, n)
    const report = await sweep(world)
    expect(names(report.errors)).toEqual(['issue-2'])
    expect(report.errors[0]?.error.message).toContain('teardown')
    expect(names(report.removed).sort()).toEqual(['issue-1', 'issue-3'])
  })

  test('goes on with the others, whatever is damaged in some', async () => {
    const damage: Record<string, (world: World, name: string) => void> = {
      'its branch was deleted': (world, name) => world.repo.git('update-ref', '-d', `refs/heads/${name}`),
      'its record is damaged': (world, name) => writeFileSync(record(world, name, 'HEAD'), 'nonsense'),
      'its index is damaged': (world, name) => writeFileSync(record(world, name, 'index'), 'nonsense'),
      'its directory became a file': (world, name) => {
        const path = join(world.context.worktreesBase, 'project', name)
        rmSync(path, { recursive: true })
        writeFileSync(path, 'a file')
      },
      'its branch points to nothing': (world, name) =>
        writeFileSync(join(world.repo.path, '.git/refs/heads', name), `${'0'.repeat(39)}1\n`),
    }
    const record = (world: World, name: string, file: string): string =>
      join(world.repo.path, '.git/worktrees', name, file)
    await using world = await makeWorld({ settings: { staleDays: 0 } })
    const count = Object.keys(damage).length + 2
    for (let n = 1; n <= count; n += 1) await issue(world, n)
    for (const [i, harm] of Object.values(damage).entries()) harm(world, `issue-${i + 2}`)
    const report = await sweep(world)
    const whole = ['issue-1', `issue-${count}`]
    expect(
      names(report.removed)
        .filter((name) => whole.includes(name))
        .sort(),
    ).toEqual(whole)
  })

  test('removes, skips, misses and reports; a dry run gives the same report and touches nothing at all', async () => {
    await using world = await makeWorld({ settings: { staleDays: 0, holdMergedHours: 0, spares: 1 } })
    inside(world, await issue(world, 1)).commit('a', 'a\n')
    world.repo.git('merge', '-q', '--no-ff', '-m', 'land', 'issue-1')
    const draft = await issue(world, 2)
    inside(world, draft).write('draft', 'draft\n')
    const idle = await issue(world, 3)
    await world.context.store.environments.update(idle.id, { lastActivityAt: 1 })
    const gone = await issue(world, 4)
    renameSync(gone.path, world.box.path('away'))
    const mine = world.repo.worktree('mine', '-b', 'mine')
    await keepSpares(world.context, world.codebase)
    const isDatabase = (path: string): boolean => /coppice\.(db|lock)/.test(path)
    const rows = async () => [
      await world.context.store.environments.live(world.codebase.id),
      await world.context.store.restorePoints.list(world.codebase.id),
      await world.context.store.events.recent({ limit: 100 }),
      await world.context.store.journal.open('this-host'),
    ]
    const before = [fingerprint(world.box.root, isDatabase), await rows()]
    const dry = await sweep(world, { dryRun: true })
    expect(names((await sweep(world, { only: 'merged', dryRun: true })).removed)).toEqual(['issue-1'])
    expect(names((await sweep(world, { only: 'stale', dryRun: true })).removed).sort()).toEqual(['issue-1', 'issue-3'])
    expect([fingerprint(world.box.root, isDatabase), await rows()]).toEqual(before)
    const trees = () => [draft.path, mine.path].map((path) => fingerprint(path))
    const left = trees()
    const wet = await sweep(world)
    expect(dry.dryRun).toBe(true)
    expect(dry.removed.map(({ environment, why }) => [environment.branch, why])).toEqual(
      wet.removed.map(({ environment, why }) => [environment.branch, why]),
    )
    expect(names(wet.removed).sort()).toEqual(['issue-1', 'issue-3'])
    const reasonsOf = ({ skipped }: typeof wet) =>
      skipped.map(({ environment: { branch }, reasons }) => [branch, reasons.map(describeReason)])
    expect(reasonsOf(wet)).toEqual([['issue-2', ['1 untracked']]])
    expect(reasonsOf(dry)).toEqual(reasonsOf(wet))
    expect(wet.missing.map(({ id }) => id)).toEqual([gone.id])
    expect(dry.missing.map(({ id }) => id)).toEqual([gone.id])
    // Orphans are reported and never deleted; spares are none.
    expect(wet.orphans).toEqual([{ path: mine.path, branch: 'mine' }])
    expect(dry.orphans).toEqual(wet.orphans)
    expect(trees()).toEqual(left)
    expect(branchExists(world, 'mine')).toBe(true)
    expect(await world.context.store.spares.list(world.codebase.id)).toHaveLength(1)
    // A report stays behind.
    const [event] = await world.context.store.events.recent({ kind: 'cleanup', limit: 1 })
    expect(event?.data).toMatchObject({ errors: [] })
    expect(JSON.stringify(event?.data)).toContain(JSON.stringify({ id: idle.id, branch: 'issue-3' }).slice(1, -1))
    // What is missing is recorded, nothing is pruned, and it is taken back when it returns.
    const statusOf = async () => (await world.context.store.environments.get(gone.id))?.status
    expect(await statusOf()).toBe('missing')
    expect(world.repo.git('worktree', 'list')).toContain('issue-4')
    renameSync(world.box.path('away'), gone.path)
    inside(world, gone).write('draft', 'draft\n')
    await sweep(world)
    expect(await statusOf()).toBe('active')
  })

  test('lets restore points go when their time is over, although the repository of another codebase with one is gone', async () => {
    let now = Date.now()
    const settings = { staleDays: 0, restoreDays: 1 }
    await using world = await makeWorld({ settings, context: { clock: () => now } })
    const other = world.box.repo('other')
    const codebase: Codebase = {
      ...world.codebase,
      id: toCodebaseId('other'),
      name: 'other',
      repoPath: other.commonDir,
      checkoutPath: other.path,
    }
    await world.context.store.codebases.insert(codebase)
    await removed(world, (await resolved(world, 'issue', 1, { codebase })).environment)
    rmSync(other.path, { recursive: true })
    const { restorePoint } = await removed(world, await issue(world, 1))
    await issue(world, 2)
    now += 2 * day
    const report = await sweep(world)
    expect(names(report.removed)).toEqual(['issue-2'])
    expect(await world.context.store.events.recent({ kind: 'cleanup', limit: 5 })).toHaveLength(1)
    expect(await world.context.store.restorePoints.get(restorePoint.id)).toBeUndefined()
    expect(existsSync(join(world.context.home, 'restore', restorePoint.id))).toBe(false)
  })

  test('names what its restore points left out, in the report and to the conversations that lose the worktree', async () => {
    await using world = await makeWorld({
      prepare: (repo) => repo.commit('.gitignore', 'node_modules/\n'),
      settings: { staleDays: 0 },
    })
    const environment = await issue(world, 1)
    inside(world, environment).write('node_modules/a/index.js', 'made again')
    const { conversationId } = await conversation(world, { environmentId: environment.id })
    const leftOut = [{ path: 'node_modules/', reason: 'can be regenerated' }]
    expect((await sweep(world)).removed).toMatchObject([{ leftOut }])
    const replies = await world.context.store.outbox.ofConversation({ platform: 'slack', conversationId }, 10)
    expect(replies.map(({ text }) => text).join()).toContain('Not kept: node_modules/ (can be regenerated).')
    const [event] = await world.context.store.events.recent({ kind: 'cleanup', limit: 1 })
    expect(event?.data).toMatchObject({ removed: [{ leftOut }] })
  })

  test('keeps a worktree whose branch is merged while another one is checked out in it', async () => {
    await using world = await makeWorld({ settings: { holdMergedHours: 0 } })
    const environment = await issue(world, 42)
    const tree = inside(world, environment)
    tree.commit('one', '1\n')
    world.repo.git('merge', '-q', '--ff-only', 'issue-42')
    tree.git('switch', '-q', '-c', 'next')
    tree.commit('two', '2\n')
    const report = await sweep(world)
    expect(report.removed).toEqual([])
    expect(report.skipped[0]?.reasons).toMatchObject([
      { fact: { kind: 'other-branch', head: 'next', branch: 'issue-42' } },
    ])
    expect(existsSync(environment.path)).toBe(true)
  })

  test("never judges another host's environments", async () => {
    await using world = await makeWorld({ settings: { staleDays: 0 } })
    const environment = await issue(world, 1)
    const elsewhere = { ...withSettings(world, {}), context: { ...world.context, host: 'another-host' } }
    rmSync(environment.path, { recursive: true })
    mkdirSync(environment.path)
    await sweep({ ...elsewhere, provider: createEnvironments(elsewhere.context) })
    expect((await world.context.store.environments.get(environment.id))?.status).toBe('active')
  })
})

describe('on a stale base', () => {
  const ways: [string, RegExp, (world: World) => void][] = [
    [
      'when the remote cannot be reached',
      /couldn't fetch origin/,
      ({ box }) => renameSync(box.path('origin.git'), box.path('offline.git')),
    ],
    [
      'when its ref could not be updated',
      /origin\/main is not what origin has now/,
      ({ box, repo }) => {
        // The work was taken back on the remote, and we cannot see it.
        box.raw(box.path('origin.git'), 'update-ref', 'refs/heads/main', repo.sha('main'))
        writeFileSync(join(repo.commonDir, 'refs/remotes/origin/main.lock'), '')
      },
    ],
    [
      'when the remote has no such branch any more',
      /origin no longer has branch main/,
      ({ box }) => {
        box.raw(box.path('origin.git'), 'branch', 'other', 'main')
        box.raw(box.path('origin.git'), 'symbolic-ref', 'HEAD', 'refs/heads/other')
        box.raw(box.path('origin.git'), 'branch', '-D', 'main')
      },
    ],
    [
      'when it is of another remote that has moved on',
      /upstream\/main is not what upstream has now/,
      ({ box, repo }) => {
        repo.git('remote', 'add', 'upstream', box.path('upstream.git'))
        box.raw(box.root, 'clone', '-q', '--bare', box.path('origin.git'), box.path('upstream.git'))
        repo.git('fetch', '-q', 'upstream')
        box.raw(box.path('upstream.git'), 'update-ref', 'refs/heads/main', repo.sha('main'))
        repo.git('checkout', '-q', '--detach', 'origin/main')
        repo.commit('.coppice/config.yaml', 'worktree:\n  base: upstream/main\n')
        repo.git('push', '-q', 'origin', 'HEAD:main')
      },
    ],
    [
      'when it is of another remote that does not answer',
      /couldn't ask upstream for upstream\/main/,
      ({ box, repo }) => {
        repo.git('remote', 'add', 'upstream', box.path('upstream.git'))
        renameSync(box.path('origin.git'), box.path('upstream.git'))
        repo.git('fetch', '-q', 'upstream')
        repo.git('checkout', '-q', '--detach', 'origin/main')
        repo.commit('.coppice/config.yaml', 'worktree:\n  base: upstream/main\n')
        box.raw(box.root, 'clone', '-q', '--bare', box.path('upstream.git'), box.path('origin.git'))
        repo.git('push', '-q', 'origin', 'HEAD:main')
        rmSync(box.path('upstream.git'), { recursive: true })
      },
    ],
  ]

  /** Two environments whose work is on origin's main as far as we know; the second has been idle for long. */
  const settings = { holdMergedHours: 0, fetchFreshSeconds: 0, worktreesPerCodebase: 2 }
  const landed = sceneOf({ remote: true, settings }, async (world) => {
    const [fresh, idle] = [await issue(world, 1), await issue(world, 2)]
    for (const environment of [fresh, idle]) {
      const tree = inside(world, environment)
      tree.commit(environment.branch, 'x\n')
      tree.git('fetch', '-q', 'origin')
      tree.git('rebase', '-q', 'origin/main')
      tree.git('push', '-q', 'origin', 'HEAD:main')
    }
    expect(names((await sweep(world, { dryRun: true })).removed)).toEqual(['issue-1', 'issue-2'])
    return { fresh, idle }
  })
  afterAll(landed.close)

  test.for(ways)('%s nothing is removed as merged and no branch is deleted on its word', async ([when, why, spoil]) => {
    await using opened = await landed.open()
    const { world, fresh, idle } = opened
    spoil(world)
    const full = await ask(world, 'issue', 3)
    expect(full).toMatchObject({ outcome: 'limit', report: { merged: 0 } })
    expect(full.outcome === 'limit' && limitMessage(full.report, 14)).toMatch(why)
    const old = withSettings(world, { staleDays: 1 })
    world.box.env['GIT_COMMITTER_DATE'] = '2001-01-01T00:00:00Z'
    inside(world, idle).git('commit', '-q', '--amend', '--no-edit')
    delete world.box.env['GIT_COMMITTER_DATE']
    await world.context.store.environments.update(idle.id, { lastActivityAt: 1 })
    // A dry run says the same, whatever the cause.
    for (const dryRun of when === ways[0]?.[0] ? [true, false] : [false]) {
      const report = await sweep(old, { dryRun })
      expect(report.removed).toMatchObject([{ environment: { branch: 'issue-2' }, why: { kind: 'idle-since' } }])
      expect(report.removed[0]?.branchDeleted).toBe(false)
      const notices = said(report.notices)
      expect(notices.join('\n')).toMatch(why)
      expect(notices.join('\n')).toContain('nothing is removed as merged; issue-1')
      expect(reportJson(report, () => 'project', asProgram).notices).toEqual(notices)
    }
    const { branchDeleted, branchNote } = await removed(world, fresh)
    expect(branchDeleted).toBe(false)
    expect(branchNote).toMatch(why)
    expect(branchNote).toMatch(/, so whether it is merged is unknown$/)
    expect([branchExists(world, 'issue-1'), branchExists(world, 'issue-2')]).toEqual([true, true])
  })

  test('a branch that never moved goes all the same: nothing is lost with it', async () => {
    await using world = await makeWorld({ remote: true, settings: { fetchFreshSeconds: 0 } })
    const environment = await issue(world, 1)
    renameSync(world.box.path('origin.git'), world.box.path('offline.git'))
    expect(await removed(world, environment)).toMatchObject({
      branchDeleted: true,
      branchNote: 'no commits of its own',
    })
  })

  test('a closed conversation keeps the branch, and is told why', async () => {
    await using opened = await landed.open()
    const { world, fresh } = opened
    renameSync(world.box.path('origin.git'), world.box.path('offline.git'))
    const ticket = await conversation(world, { platform: 'github', environmentId: fresh.id })
    const closed = await onConversationClosed(world.context, world.provider, ticket)
    const branchNote = { kind: 'stale-base', why: { kind: 'remote-not-fetched', remote: 'origin' } }
    expect(closed).toMatchObject({ removal: { outcome: 'removed', branchDeleted: false, branchNote } })
    expect(branchExists(world, 'issue-1')).toBe(true)
  })

  test('is not what a fetch leaves that failed for another branch only, and it need not fetch again', async () => {
    await using opened = await landed.open()
    const { world } = opened
    const origin = world.box.path('origin.git')
    world.box.raw(origin, 'branch', 'topic', 'main')
    await sweep(world, { dryRun: true })
    world.box.raw(origin, 'branch', '-m', 'topic', 'topic/more')
    expect(await freshen(world.context, world.codebase, { maxAgeMs: 0 })).toMatchObject({ detail: expect.any(String) })
    expect(await freshen(world.context, world.codebase, { maxAgeMs: 60_000 })).toMatchObject({ outcome: 'fresh' })
    expect(names((await sweep(world)).removed)).toEqual(['issue-1', 'issue-2'])
  })

  test('is not remembered as fetched when one of its refs could not be updated', async () => {
    await using world = await makeWorld({ remote: true })
    const side = world.repo.worktree('side', '-b', 'side')
    world.box.raw(side.path, 'commit', '-q', '--allow-empty', '-m', 'moves on')
    world.repo.git('push', '-q', world.box.path('origin.git'), 'side:main')
    writeFileSync(join(world.repo.commonDir, 'refs/remotes/origin/main.lock'), '')
    expect(await freshen(world.context, world.codebase, { maxAgeMs: 0 })).toMatchObject({ detail: expect.any(String) })
    expect((await world.context.store.codebases.get(world.codebase.id))?.fetchedAt).toBeUndefined()
  })
})

describe.concurrent('a closed conversation', () => {
  const closing = async (options: WorldOptions = {}) => {
    const world = await makeWorld(options)
    const environment = await issue(world, 42)
    const ticket = await conversation(world, { platform: 'github', environmentId: environment.id })
    const close = () => onConversationClosed(world.context, world.provider, ticket)
    return { world, environment, ticket, close }
  }

  test('lets go, and its clean environment goes; twice is once, and one without an environment is nothing', async () => {
    const { world, environment, ticket, close } = await closing()
    await using _ = world
    expect(await close()).toMatchObject({ outcome: 'asked', removal: { outcome: 'removed' } })
    expect(existsSync(environment.path)).toBe(false)
    const after = await world.context.store.conversations.find('github', ticket.conversationId)
    expect(after?.environmentId).toBeUndefined()
    expect(after?.closedAt).toBeDefined()
    expect(await close()).toEqual({ outcome: 'nothing' })
    const bare = { ...ticket, environmentId: undefined }
    expect(await onConversationClosed(world.context, world.provider, bare)).toEqual({ outcome: 'nothing' })
  })

  test('keeps the environment while any other conversation uses it, or work is not committed, and says so', async () => {
    const { world, environment, close } = await closing()
    await using _ = world
    const other = await conversation(world, { environmentId: environment.id, lastActivityAt: 1 })
    expect(await close()).toMatchObject({ outcome: 'kept', others: [{ id: other.id }] })
    expect(existsSync(environment.path)).toBe(true)
    inside(world, environment).write('draft', 'draft\n')
    expect(await onConversationClosed(world.context, world.provider, other)).toMatchObject({
      outcome: 'asked',
      removal: { outcome: 'refused', reasons: [{ fact: { kind: 'untracked', count: 1 } }] },
    })
    expect(inside(world, environment).read('draft')).toBe('draft\n')
  })

  test('of an adopted worktree lets go of it and leaves it', async () => {
    await using world = await makeWorld()
    const tree = world.repo.worktree('mine', '-b', 'mine')
    const adopted = await world.provider.adopt(world.codebase, tree.path, { createdBy: 'test', aliases: [] })
    const ticket = await conversation(world, { environmentId: adopted.id })
    expect(await onConversationClosed(world.context, world.provider, ticket)).toMatchObject({
      removal: { outcome: 'released' },
    })
    expect(existsSync(tree.path)).toBe(true)
  })

  test('of a pull request whose head was merged on the remote takes the branch with it', async () => {
    await using world = await makeWorld({ remote: true })
    world.repo.git('push', '-q', 'origin', 'main:x')
    const { environment } = await resolved(world, 'pr', 7, { hints: { prBranch: 'x' } })
    const tip = inside(world, environment).commit('a', 'a\n')
    world.repo.git('push', '-q', 'origin', `${tip}:x`, `${tip}:main`)
    world.repo.git('update-ref', 'refs/remotes/origin/main', world.repo.sha('main'))
    const ticket = await conversation(world, { environmentId: environment.id })
    const closed = await onConversationClosed(world.context, world.provider, ticket)
    expect(closed).toMatchObject({ removal: { outcome: 'removed', branchDeleted: true } })
    expect(branchExists(world, toBranchName('x'))).toBe(false)
    expect(world.repo.git('ls-remote', 'origin', 'refs/heads/x')).toContain(tip)
  })
})
