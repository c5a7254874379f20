import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { onConversationClosed } from '../../src/cleanup/closed.ts'
import { runScheduledCleanup, type SweepOptions } from '../../src/cleanup/sweep.ts'
import type { Settings } from '../../src/domain/config/settings.ts'
import type { Codebase } from '../../src/domain/environment.ts'
import { toBranchName, toCodebaseId } from '../../src/domain/names.ts'
import { reportJson } from '../../src/commands/views/json.ts'
import { freshen } from '../../src/isolation/codebases/base.ts'
import { keepSpares } from '../../src/isolation/providers/worktree/spare.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { makeWorld, type World, type WorldOptions } from '../helpers/world.ts'
import { ask, branchExists, conversation, fingerprint, inside, issue, removed, resolved } from './scene.ts'
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

describe.concurrent('the sweep removes what is merged, by each proof', () => {
  const ways: [string, (world: World, tree: ReturnType<typeof inside>) => void, RegExp][] = [
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
  test.for(ways)('%s', async ([, land, proof]) => {
    await using world = await makeWorld({ settings: { holdMergedHours: 0 } })
    const environment = await issue(world, 42)
    const tree = inside(world, environment)
    tree.commit('one', '1\n')
    tree.commit('two', '2\n')
    land(world, tree)
    const report = await sweep(world)
    expect(names(report.removed)).toEqual(['issue-42'])
    expect(describeRemovalReason(report.removed[0]?.why ?? '')).toMatch(proof)
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

describe.concurrent('work that somebody merely looks at is not merged', () => {
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
  test.for(looks)('%s', async ([name, look, says]) => {
    const remote = name.includes('push') || name.includes('remote')
    await using world = await makeWorld({ remote, settings: { holdMergedHours: 0 } })
    const environment = await issue(world, 42)
    inside(world, environment).commit('one', '1\n')
    await look(world)
    const tip = world.repo.git('rev-parse', 'refs/heads/issue-42')
    const report = await sweep(world)
    expect(report).toMatchObject({ removed: [], errors: [] })
    expect(said(report.notices).join()).toContain(says ?? '')
    await removed(world, environment)
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

  test('with staleDays 0 everything idle is stale', async () => {
    await using world = await makeWorld()
    await issue(world, 1)
    expect(names((await sweep(withSettings(world, { staleDays: 0 }))).removed)).toEqual(['issue-1'])
  })

  test('only merged, or only stale, when that is asked for', async () => {
    await using world = await makeWorld({ settings: { holdMergedHours: 0 } })
    inside(world, await issue(world, 1)).commit('a', 'a\n')
    world.repo.git('merge', '-q', '--no-ff', '-m', 'land', 'issue-1')
    const old = await issue(world, 2)
    await world.context.store.environments.update(old.id, { lastActivityAt: 1 })
    const dated = withSettings(world, { staleDays: 0 })
    expect(names((await sweep(dated, { only: 'merged', dryRun: true })).removed)).toEqual(['issue-1'])
    expect(names((await sweep(dated, { only: 'stale', dryRun: true })).removed).sort()).toEqual(['issue-1', 'issue-2'])
  })

  test('skips with every reason what a gate refuses, and touches it not', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 1)
    inside(world, environment).write('draft', 'draft\n')
    const before = fingerprint(environment.path)
    const report = await sweep(withSettings(world, { staleDays: 0 }))
    expect(report.skipped.map(({ environment: { branch }, reasons }) => [branch, reasons.map(describeReason)])).toEqual(
      [['issue-1', ['1 untracked']]],
    )
    expect(fingerprint(environment.path)).toBe(before)
  })

  test('records what is missing, prunes nothing, and takes it back when it returns', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 1)
    renameSync(environment.path, world.box.path('away'))
    const dated = withSettings(world, { staleDays: 0, holdDays: 0 })
    const report = await sweep(dated)
    expect(report.missing.map(({ id }) => id)).toEqual([environment.id])
    expect((await world.context.store.environments.get(environment.id))?.status).toBe('missing')
    expect(world.repo.git('worktree', 'list')).toContain('issue-1')
    renameSync(world.box.path('away'), environment.path)
    await sweep(world)
    expect((await world.context.store.environments.get(environment.id))?.status).toBe('active')
  })

  test('reports orphans and never deletes them; spares are none', async () => {
    await using world = await makeWorld({ settings: { spares: 1, staleDays: 0 } })
    await keepSpares(world.context, world.codebase)
    const tree = world.repo.worktree('mine', '-b', 'mine')
    const before = fingerprint(tree.path)
    const report = await sweep(world)
    expect(report.orphans).toEqual([{ path: tree.path, branch: 'mine' }])
    expect(fingerprint(tree.path)).toBe(before)
    expect(branchExists(world, 'mine')).toBe(true)
    expect(await world.context.store.spares.list(world.codebase.id)).toHaveLength(1)
  })

  test('leaves adopted environments and those of persistent platforms, merged and stale as they are', async () => {
    await using world = await makeWorld({ settings: { staleDays: 0, holdDays: 0, holdMergedHours: 0 } })
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

  const damage: [string, (world: World, path: string, record: string) => void][] = [
    ['its branch was deleted', (world) => world.repo.git('update-ref', '-d', 'refs/heads/issue-2')],
    ['its record is damaged', (_, __, record) => writeFileSync(join(record, 'HEAD'), 'nonsense')],
    ['its index is damaged', (_, __, record) => writeFileSync(join(record, 'index'), 'nonsense')],
    [
      'its directory became a file',
      (_, path) => {
        rmSync(path, { recursive: true })
        writeFileSync(path, 'a file')
      },
    ],
    [
      'its branch points to nothing',
      (world) => writeFileSync(join(world.repo.path, '.git/refs/heads/issue-2'), `${'0'.repeat(39)}1\n`),
    ],
  ]
  test.for(damage)('goes on with the others when of one %s', async ([, harm]) => {
    await using world = await makeWorld({ settings: { staleDays: 0 } })
    for (const n of [1, 2, 3]) await issue(world, n)
    const path = join(world.context.worktreesBase, 'project', 'issue-2')
    harm(world, path, join(world.repo.path, '.git/worktrees/issue-2'))
    const report = await sweep(world)
    expect(
      names(report.removed)
        .filter((name) => name !== 'issue-2')
        .sort(),
    ).toEqual(['issue-1', 'issue-3'])
  })

  test('a dry run gives the same report and touches nothing at all', async () => {
    await using world = await makeWorld({ settings: { staleDays: 0, holdMergedHours: 0 } })
    inside(world, await issue(world, 1)).commit('a', 'a\n')
    world.repo.git('merge', '-q', '--no-ff', '-m', 'land', 'issue-1')
    inside(world, await issue(world, 2)).write('draft', 'draft\n')
    await issue(world, 3)
    const gone = await issue(world, 4)
    renameSync(gone.path, world.box.path('away'))
    world.repo.worktree('mine', '-b', 'mine')
    const isDatabase = (path: string): boolean => /coppice\.(db|lock)/.test(path)
    const rows = async () => [
      await world.context.store.environments.live(world.codebase.id),
      await world.context.store.restorePoints.list(world.codebase.id),
      await world.context.store.events.recent({ limit: 100 }),
      await world.context.store.journal.open('this-host'),
    ]
    const before = [fingerprint(world.box.root, isDatabase), await rows()]
    const dry = await sweep(world, { dryRun: true })
    expect([fingerprint(world.box.root, isDatabase), await rows()]).toEqual(before)
    const wet = await sweep(world)
    expect(dry.dryRun).toBe(true)
    expect(dry.removed.map(({ environment, why }) => [environment.branch, why])).toEqual(
      wet.removed.map(({ environment, why }) => [environment.branch, why]),
    )
    expect(names(dry.skipped)).toEqual(names(wet.skipped))
    expect(dry.missing.map(({ id }) => id)).toEqual(wet.missing.map(({ id }) => id))
    expect(dry.orphans).toEqual(wet.orphans)
    expect(names(wet.removed)).toHaveLength(2)
  })

  test('leaves a report behind', async () => {
    await using world = await makeWorld({ settings: { staleDays: 0 } })
    const environment = await issue(world, 1)
    await sweep(world)
    const [event] = await world.context.store.events.recent({ kind: 'cleanup', limit: 1 })
    expect(event?.data).toMatchObject({ removed: [{ id: environment.id, branch: 'issue-1' }], errors: [] })
  })

  test('lets restore points go when their time is over', async () => {
    let now = Date.now()
    await using world = await makeWorld({ settings: { restoreDays: 1 }, context: { clock: () => now } })
    const { restorePoint } = await removed(world, await issue(world, 1))
    now += 2 * day
    await sweep(world)
    expect(await world.context.store.restorePoints.get(restorePoint.id)).toBeUndefined()
    expect(existsSync(join(world.context.home, 'restore', restorePoint.id))).toBe(false)
  })

  test('of one codebase goes on although the repository of another, with an expired restore point, is gone', async () => {
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
    await issue(world, 2)
    now += 2 * day
    const report = await sweep(world)
    expect(names(report.removed)).toEqual(['issue-2'])
    expect(await world.context.store.events.recent({ kind: 'cleanup', limit: 5 })).toHaveLength(1)
  })

  test('names what its restore points left out, in the report and to the conversations that lose the worktree', async () => {
    await using world = await makeWorld({
      prepare: (repo) => repo.commit('.gitignore', 'node_modules/\n'),
      settings: { staleDays: 0, holdDays: 0 },
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
    await using world = await makeWorld({ settings: { staleDays: 0, holdDays: 0 } })
    const environment = await issue(world, 1)
    const elsewhere = { ...withSettings(world, {}), context: { ...world.context, host: 'another-host' } }
    rmSync(environment.path, { recursive: true })
    mkdirSync(environment.path)
    await sweep({ ...elsewhere, provider: createEnvironments(elsewhere.context) })
    expect((await world.context.store.environments.get(environment.id))?.status).toBe('active')
  })
})

describe.concurrent('on a stale base', () => {
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
  const landed = async (options: WorldOptions = {}) => {
    const settings = { holdMergedHours: 0, fetchFreshSeconds: 0, worktreesPerCodebase: 2, ...options.settings }
    const world = await makeWorld({ remote: true, ...options, settings })
    const [fresh, idle] = [await issue(world, 1), await issue(world, 2)]
    for (const environment of [fresh, idle]) {
      const tree = inside(world, environment)
      tree.commit(environment.branch, 'x\n')
      tree.git('fetch', '-q', 'origin')
      tree.git('rebase', '-q', 'origin/main')
      tree.git('push', '-q', 'origin', 'HEAD:main')
    }
    return { world, fresh, idle }
  }

  test.for(ways)('%s nothing is removed as merged and no branch is deleted on its word', async ([, why, spoil]) => {
    const { world, fresh, idle } = await landed()
    await using _ = world
    expect(names((await sweep(world, { dryRun: true })).removed)).toEqual(['issue-1', 'issue-2'])
    spoil(world)
    const full = await ask(world, 'issue', 3)
    expect(full).toMatchObject({ outcome: 'limit', report: { merged: 0 } })
    expect(full.outcome === 'limit' && limitMessage(full.report, 14)).toMatch(why)
    const old = withSettings(world, { staleDays: 1 })
    world.box.env['GIT_COMMITTER_DATE'] = '2001-01-01T00:00:00Z'
    inside(world, idle).git('commit', '-q', '--amend', '--no-edit')
    delete world.box.env['GIT_COMMITTER_DATE']
    await world.context.store.environments.update(idle.id, { lastActivityAt: 1 })
    for (const dryRun of [true, false]) {
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
    const { world, fresh } = await landed()
    await using _ = world
    renameSync(world.box.path('origin.git'), world.box.path('offline.git'))
    const ticket = await conversation(world, { platform: 'github', environmentId: fresh.id })
    const closed = await onConversationClosed(world.context, world.provider, ticket)
    const branchNote = { kind: 'stale-base', why: { kind: 'remote-not-fetched', remote: 'origin' } }
    expect(closed).toMatchObject({ removal: { outcome: 'removed', branchDeleted: false, branchNote } })
    expect(branchExists(world, 'issue-1')).toBe(true)
  })

  test('is not what a fetch leaves that failed for another branch only, and it need not fetch again', async () => {
    const { world } = await landed()
    await using _ = world
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

  test('lets go, and its clean environment goes', async () => {
    const { world, environment, ticket, close } = await closing()
    await using _ = world
    expect(await close()).toMatchObject({ outcome: 'asked', removal: { outcome: 'removed' } })
    expect(existsSync(environment.path)).toBe(false)
    const after = await world.context.store.conversations.find('github', ticket.conversationId)
    expect(after?.environmentId).toBeUndefined()
    expect(after?.closedAt).toBeDefined()
  })

  test('keeps the environment while any other conversation uses it', async () => {
    const { world, environment, close } = await closing()
    await using _ = world
    const other = await conversation(world, { environmentId: environment.id, lastActivityAt: 1 })
    expect(await close()).toMatchObject({ outcome: 'kept', others: [{ id: other.id }] })
    expect(existsSync(environment.path)).toBe(true)
  })

  test('with work that is not committed says so and keeps it', async () => {
    const { world, environment, close } = await closing()
    await using _ = world
    inside(world, environment).write('draft', 'draft\n')
    expect(await close()).toMatchObject({
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

  test('twice is once, and one without an environment is nothing', async () => {
    const { world, ticket, close } = await closing()
    await using _ = world
    await close()
    expect(await close()).toEqual({ outcome: 'nothing' })
    const bare = { ...ticket, environmentId: undefined }
    expect(await onConversationClosed(world.context, world.provider, bare)).toEqual({ outcome: 'nothing' })
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
