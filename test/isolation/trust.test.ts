import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import type { IsolationHints } from '../../src/domain/hints.ts'
import { toBranchName } from '../../src/domain/names.ts'
import { toWork } from '../../src/domain/work.ts'
import { worktreeTrust } from '../../src/cli/commands/worktree-trust.ts'
import { acquireLease } from '../../src/isolation/lease.ts'
import { locked } from '../../src/isolation/lock/locked.ts'
import { knownPlatforms } from '../../src/platforms/capabilities.ts'
import { keepRecognisable } from '../../src/isolation/codebases/recognise.ts'
import { removeCodebase } from '../../src/isolation/codebases/remove.ts'
import { keepSpares } from '../../src/isolation/providers/worktree/spare.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { trustEnvironment } from '../../src/isolation/providers/checkout/trust-environment.ts'
import { followPullRequest } from '../../src/isolation/providers/checkout/follow.ts'
import { everyCase } from '../helpers/every-case.ts'
import { firstCommit } from '../helpers/repo.ts'
import { makeWorld, type World, type WorldOptions } from '../helpers/world.ts'
import {
  ask,
  conversation,
  type Inside,
  inside,
  issue,
  messageOf,
  program,
  remove,
  removed,
  resolved,
  holder,
} from './scene.ts'
import { inWords } from '../helpers/words.ts'
import { noFleet } from '../helpers/no-fleet.ts'

/*
 * Every way to a worktree against every origin that a pull request can have: what is copied, what runs, and which
 * settings the agent gets. Trust needs proof; what is not proven gets nothing.
 */

const withSecrets: WorldOptions = {
  remote: true,
  settings: { worktreesPerCodebase: 100 },
  context: { approve: () => Promise.resolve(true) },
  template: (repo) => {
    firstCommit(repo)
    repo.commit('.gitignore', '.env\ncache\nran\n.beads/\n')
    repo.commit(
      '.coppice/config.yaml',
      'worktree:\n  copy: [.env]\n  link: [cache]\n  setup: ["sh setup.sh 2>/dev/null; touch ran"]\n',
    )
    repo.write('.env', 'SECRET=1\n')
    repo.write('.beads/beads.db', 'store')
  },
}

/** A commit that is on no branch of ours, as a stranger would push it to a fork. */
const strange = (world: World, name: string, parent = 'main'): string =>
  world.repo.git('commit-tree', '-p', parent, '-m', `by a stranger: ${name}`, `${parent}^{tree}`)

/** The same, with a subject like what git itself puts into a reflog. */
const posingAsMerge = (world: World, name: string): string =>
  world.repo.git('commit-tree', '-p', 'main', '-m', "Merge made by the 'ort' strategy.", '-m', name, 'main^{tree}')

/** Everything that only a trusted worktree has, and whether the agent reads the settings that are in it. */
const gets = (world: World, { environment, trusted }: { environment: IsolatedEnvironment; trusted: boolean }) => {
  const tree = inside(world, environment)
  const files = ['.env', 'cache', 'ran', '.beads/redirect'].filter((file) => tree.has(file))
  return { files: files.length === 4 ? 'all' : files.length === 0 ? 'none' : files, settings: trusted }
}

const all = { files: 'all', settings: true }
const nothing = { files: 'none', settings: false }

describe('every way to a pull request, against every origin', () => {
  const origins = ['own', 'own, deleted', 'fork', 'unknown', 'head at a branch', 'same name'] as const
  type Origin = (typeof origins)[number]
  type Asked = { readonly type: 'pr' | 'review'; readonly hints: (branch: string, sha: string) => IsolationHints }
  const ways: Readonly<Record<string, Asked>> = {
    '--pr': { type: 'pr', hints: () => ({}) },
    '--pr --pr-branch, or a message that does not say': {
      type: 'pr',
      hints: (prBranch, prSha) => ({ prBranch, prSha }),
    },
    '--pr --fork, or a message from a fork': {
      type: 'pr',
      hints: (prBranch, prSha) => ({ prBranch, prSha, isForkPR: true }),
    },
    '--review': { type: 'review', hints: () => ({}) },
    'a message that the forge calls our own': {
      type: 'pr',
      hints: (prBranch, prSha) => ({ prBranch, prSha, isForkPR: false }),
    },
  }
  const trusted: Readonly<Record<string, readonly Origin[]>> = {
    '--pr': ['own', 'head at a branch'],
    '--pr --pr-branch, or a message that does not say': ['own', 'head at a branch'],
    'a message that the forge calls our own': ['own', 'own, deleted'],
  }
  const isOurs = (way: string, origin: Origin): boolean => trusted[way]?.includes(origin) === true
  const everyCell = Object.keys(ways).flatMap((way, row) =>
    origins
      // The forge does not call a stranger's pull request ours.
      .filter((origin) => !way.includes('our own') || origin.startsWith('own'))
      .map((origin, column) => ({
        way,
        origin,
        row,
        column,
        number: 1 + row * 10 + column,
        branch: `b${row}${column}`,
      })),
  )
  // Whatever is trusted, and of the rest every way and every origin; all of it with `npm run test:every-case`.
  const cells = everyCell.filter(
    ({ way, origin, row, column }) => everyCase || isOurs(way, origin) || (row + column) % 3 === 0,
  )
  const askedBy = (way: string): Asked => {
    const asked = ways[way]
    if (asked === undefined) throw new Error(way)
    return asked
  }
  let world: World
  const heads = new Map<number, string>()
  beforeAll(async () => {
    world = await makeWorld(withSecrets)
    const pushed = cells.flatMap(({ origin, number, branch }) => {
      const ours = strange(world, `ours ${number}`)
      const theirs = strange(world, `theirs ${number}`)
      const isHeadOurs = origin.startsWith('own') || origin === 'head at a branch'
      heads.set(number, isHeadOurs ? ours : theirs)
      return [
        `${isHeadOurs ? ours : theirs}:refs/pull/${number}/head`,
        ...(isHeadOurs || origin === 'same name' ? [`${ours}:refs/heads/${branch}`] : []),
      ]
    })
    world.repo.git('push', '-q', 'origin', ...pushed)
    world.repo.git('fetch', '-q')
    const deleted = cells.filter(({ origin }) => origin === 'own, deleted').map(({ branch }) => `:${branch}`)
    const tracking = cells
      .filter(({ origin }) => origin === 'own, deleted')
      .map(({ branch, number }) => {
        return [`refs/remotes/origin/${branch}`, heads.get(number) ?? ''] as const
      })
    world.repo.git('push', '-q', 'origin', ...deleted)
    // Git drops its own note of a branch that it deletes; one that somebody else deleted stays.
    for (const [ref, sha] of tracking) world.repo.git('update-ref', ref, sha)
  })
  afterAll(() => world[Symbol.asyncDispose]())

  test.each(cells)('$way: $origin', async ({ way, origin, number, branch }) => {
    const { type, hints } = askedBy(way)
    const found = await resolved(world, type, number, { hints: hints(branch, heads.get(number) ?? '') })
    const isTrusted = isOurs(way, origin)
    expect(gets(world, found)).toEqual(isTrusted ? all : nothing)
    expect(found.environment).toMatchObject({
      branch: isTrusted ? branch : `pr-${number}-review`,
      trust: isTrusted ? 'own' : 'unproven',
      startSha: heads.get(number),
    })
    const said = type === 'pr' && hints('', '').isForkPR === undefined && !isTrusted
    expect(found.notices.join().includes(`coppice worktree trust pr-${number}-review`)).toBe(said)
  })
})

describe.concurrent('a pull request without proof', () => {
  test('is not proven by a tracking ref, which may hold refs/pull/* as well', async () => {
    await using world = await makeWorld(withSecrets)
    const theirs = strange(world, 'theirs')
    world.repo.git('push', '-q', 'origin', `${theirs}:refs/pull/9/head`)
    world.repo.git('fetch', '-q', 'origin', '+refs/pull/*/head:refs/remotes/origin/pr/*')
    for (const [type, id, more] of [
      ['pr', '9', { hints: { prBranch: 'pr/9' } }],
      ['task', 'pr/9', { branch: toBranchName('pr/9') }],
      ['task', 'based', { branch: toBranchName('based'), base: 'origin/pr/9' }],
      ['task', 'exact', { branch: toBranchName('exact'), base: theirs }],
    ] as const) {
      expect(gets(world, await resolved(world, type, id, more))).toEqual(nothing)
    }
  })

  test('is not proven by base, which every fork has, nor by one of several branches', async () => {
    await using world = await makeWorld(withSecrets)
    const twice = strange(world, 'twice')
    world.repo.git(
      'push',
      '-q',
      'origin',
      'main:refs/pull/1/head',
      `${twice}:refs/heads/one`,
      `${twice}:refs/heads/two`,
    )
    world.repo.git('push', '-q', 'origin', `${twice}:refs/pull/2/head`)
    expect((await resolved(world, 'pr', 1)).environment.branch).toBe('pr-1-review')
    const several = await resolved(world, 'pr', 2)
    expect(gets(world, several)).toEqual(nothing)
    expect(several.notices.join()).toContain('--pr-branch')
    expect(gets(world, await resolved(world, 'pr', 3, { hints: { prBranch: 'one' } }))).toEqual(all)
  })

  test('is not proven where the remote does not answer, and the message runs untrusted in the worktree it has', async () => {
    await using world = await makeWorld(withSecrets)
    world.repo.git('push', '-q', 'origin', `${strange(world, 'x')}:refs/heads/x`)
    const first = await resolved(world, 'pr', 1, { hints: { prBranch: 'x' } })
    expect(gets(world, first)).toEqual(all)
    world.repo.git('remote', 'set-url', 'origin', world.box.path('nowhere.git'))
    const again = await resolved(world, 'pr', 1, { hints: { prBranch: 'x' } })
    expect(again).toMatchObject({ environment: { id: first.environment.id }, trusted: false })
    const other = await resolved(world, 'pr', 2, { hints: { prBranch: 'x' } })
    expect(other.trusted).toBe(false)
  })
})

describe.concurrent('a head that moves', () => {
  const own = async () => {
    const world = await makeWorld(withSecrets)
    const first = strange(world, 'first')
    world.repo.git('push', '-q', 'origin', `${first}:refs/heads/x`, `${first}:refs/pull/7/head`)
    const found = await resolved(world, 'pr', 7)
    expect(gets(world, found)).toEqual(all)
    const theirs = strange(world, 'theirs', first)
    return { world, first, theirs, environment: found.environment }
  }
  const headOf = (world: World, environment: IsolatedEnvironment): string =>
    inside(world, environment).git('rev-parse', 'HEAD')

  test('leaves a trusted worktree on its branch, whatever commit a message names; along the branch it is followed; a stranger’s gets a worktree of its own, without our files', async () => {
    const { world, first, theirs, environment } = await own()
    await using _ = world
    world.repo.git('push', '-q', 'origin', `${theirs}:refs/other/elsewhere`)
    for (const hints of [
      { prBranch: 'x', prSha: theirs },
      { prBranch: 'x', prSha: theirs, isForkPR: false },
    ]) {
      await resolved(world, 'pr', 7, { hints })
      expect(headOf(world, environment)).toBe(first)
    }
    const { notices } = await resolved(world, 'pr', 7, { hints: { prBranch: 'x', prSha: theirs, isForkPR: false } })
    expect(notices.join()).toContain('that commit is not on origin/x')

    const second = strange(world, 'second', first)
    world.repo.git('push', '-q', 'origin', `${second}:refs/heads/x`, `${second}:refs/pull/7/head`)
    const followed = await resolved(world, 'pr', 7, { hints: { prBranch: 'x', prSha: second } })
    expect(gets(world, followed)).toEqual(all)
    expect(followed.prShaUsed).toBe(true)
    expect(headOf(world, environment)).toBe(second)

    world.repo.git('push', '-q', '--force', 'origin', `${theirs}:refs/pull/7/head`)
    const said: IsolationHints[] = [
      {},
      { prBranch: 'x', prSha: theirs },
      { prBranch: 'x', prSha: theirs, isForkPR: true },
    ]
    const talk = await conversation(world, { environmentId: environment.id })
    for (const hints of said) {
      const found = await resolved(world, 'pr', 7, { hints, holder: holder(talk) })
      expect(found.environment).toMatchObject({ branch: 'pr-7-review', work: { type: 'review', id: '7' } })
      expect(gets(world, found)).toEqual(nothing)
    }
    expect(headOf(world, environment)).toBe(second)
  })

  test('whose branch is deleted on the remote is not proven any more', async () => {
    const { world, environment } = await own()
    await using _ = world
    world.repo.git('push', '-q', 'origin', ':x', ':refs/pull/7/head')
    const found = await resolved(world, 'pr', 7, { hints: { prBranch: 'x' } })
    expect(found).toMatchObject({ trusted: false, environment: { id: environment.id } })
  })

  test('past what a person vouched for is left, and runs untrusted again', async () => {
    await using world = await makeWorld(withSecrets)
    const first = strange(world, 'first')
    world.repo.git('push', '-q', 'origin', `${first}:refs/pull/7/head`)
    const hints = { isForkPR: true, prSha: first }
    const { environment } = await resolved(world, 'pr', 7, { hints })
    await trustEnvironment(world.context, world.codebase, environment)
    expect(gets(world, await resolved(world, 'pr', 7, { hints }))).toEqual(all)
    const second = strange(world, 'second', first)
    world.repo.git('push', '-q', 'origin', `${second}:refs/pull/7/head`)
    // A message that came before, and waited for the repository while it was vouched for.
    const work = toWork('pr', '7')
    const late = await followPullRequest(world.context, world.codebase, environment, work, { ...hints, prSha: second })
    expect(late.current).toBe(false)
    expect(headOf(world, environment)).toBe(first)
    const moved = await resolved(world, 'pr', 7, { hints: { ...hints, prSha: second } })
    expect(moved.trusted).toBe(false)
    expect(headOf(world, environment)).toBe(first)
    expect(moved.notices.join()).toContain('nobody has vouched for that commit')
    // An adopted worktree isn't moved either, and a message that names no head doesn't say that it has not moved on.
    const messages = [
      { says: { prSha: first }, trusted: true, notice: '' },
      { says: {}, trusted: false, notice: 'the current head of PR #7 is unknown' },
      { says: { prSha: second }, trusted: false, notice: second.slice(0, 7) },
      { says: { prSha: 'f'.repeat(40) }, trusted: false, notice: 'fffffff' },
    ]
    for (const isAdopted of [false, true]) {
      const request = { createdBy: 'test', aliases: [], claim: true } as const
      if (isAdopted) await world.provider.adopt(world.codebase, environment.path, request)
      for (const { says, trusted, notice } of messages) {
        const found = await resolved(world, 'pr', 7, { hints: { isForkPR: true, ...says } })
        expect({ isAdopted, says, trusted: found.trusted }).toEqual({ isAdopted, says, trusted })
        expect(found.notices.join()).toContain(notice)
      }
      expect(headOf(world, environment)).toBe(first)
    }
  })
})

describe('an adopted worktree', () => {
  /** What a person has checked out in a worktree, and whether its content is proven to be ours. */
  const kinds: readonly [string, boolean, (world: World, path: string, name: string) => void][] = [
    ['a new branch at base', true, (world, path, name) => world.repo.git('worktree', 'add', '-q', '-b', name, path)],
    [
      'commits made in it',
      true,
      (world, path, name) => {
        world.repo.git('worktree', 'add', '-q', '-b', name, path)
        inside(world, { path }).commit('a', 'a\n')
        inside(world, { path }).git('commit', '-q', '--amend', '-m', 'in other words')
      },
    ],
    [
      'a branch of our remote',
      true,
      (world, path, name) => {
        world.repo.git('push', '-q', 'origin', `${strange(world, name)}:refs/heads/${name}`)
        world.repo.git('fetch', '-q')
        world.repo.git('worktree', 'add', '-q', '-b', name, path, `origin/${name}`)
      },
    ],
    [
      'a pull request head',
      false,
      (world, path, name) => {
        world.repo.git('worktree', 'add', '-q', '-b', name, path, strange(world, name))
      },
    ],
    [
      'a commit of ours on top of a pull request head',
      false,
      (world, path, name) => {
        world.repo.git('worktree', 'add', '-q', '-b', name, path, strange(world, name))
        inside(world, { path }).commit('a', 'a\n')
      },
    ],
    [
      'a pull request head that was amended',
      false,
      (world, path, name) => {
        world.repo.git('worktree', 'add', '-q', '-b', name, path, strange(world, name))
        inside(world, { path }).git('commit', '-q', '--amend', '--allow-empty', '-m', 'mine now')
      },
    ],
    [
      'a pull request head that was picked',
      false,
      (world, path, name) => {
        world.repo.git('worktree', 'add', '-q', '-b', name, path)
        inside(world, { path }).git('cherry-pick', '--allow-empty', strange(world, name))
      },
    ],
    [
      'a pull request head that was picked, and whose subject says that git merged it',
      false,
      (world, path, name) => {
        world.repo.git('worktree', 'add', '-q', '-b', name, path)
        inside(world, { path }).git('cherry-pick', '--allow-empty', posingAsMerge(world, name))
      },
    ],
    [
      'branches of ours that were merged and pulled',
      true,
      (world, path, name) => {
        world.repo.git('worktree', 'add', '-q', '-b', name, path)
        const tree = inside(world, { path })
        for (const side of ['one', 'two']) {
          tree.git('switch', '-q', '-c', side, 'main')
          tree.commit(side, side)
        }
        tree.git('switch', '-q', name)
        tree.commit('mine', 'mine')
        tree.git('merge', '-q', '--no-ff', '-m', 'one', 'one')
        tree.git('pull', '-q', '--no-rebase', '--no-edit', '.', 'two')
      },
    ],
    [
      'a merge of a pull request head',
      false,
      (world, path, name) => {
        world.repo.git('worktree', 'add', '-q', '-b', name, path)
        inside(world, { path }).git('merge', '-q', '--no-ff', '-m', 'merge', strange(world, name))
      },
    ],
    [
      'what `gh pr checkout` leaves of a fork',
      false,
      (world, path, name) => {
        world.repo.git('worktree', 'add', '-q', '-b', name, path)
        world.repo.git('config', `branch.${name}.remote`, 'origin')
        world.repo.git('config', `branch.${name}.merge`, 'refs/pull/7/head')
      },
    ],
    [
      'a branch that pushes to a fork',
      false,
      (world, path, name) => {
        world.repo.git('worktree', 'add', '-q', '-b', name, path)
        world.repo.git('config', `branch.${name}.pushRemote`, 'https://example.org/fork.git')
      },
    ],
    ['a review', false, (world, path) => world.repo.git('worktree', 'add', '-q', '-b', 'pr-7-review', path)],
    // It moves base, so it is the last.
    [
      'a pull request head that a pull replayed, and whose subject says that git merged it',
      false,
      (world, path, name) => {
        world.repo.git('worktree', 'add', '-q', '-b', name, path, posingAsMerge(world, name))
        world.repo.commit('later', 'later\n')
        world.repo.git('push', '-q', 'origin', 'main')
        inside(world, { path }).git('pull', '-q', '--rebase', '.', 'main')
      },
    ],
  ]

  let shared: World
  beforeAll(async () => {
    shared = await makeWorld(withSecrets)
  })
  afterAll(() => shared[Symbol.asyncDispose]())

  test.each(kinds)('of %s is trusted: %s', async (what, isTrusted, arrange) => {
    const name = `mine-${kinds.findIndex(([kind]) => kind === what)}`
    const path = shared.box.path(name)
    arrange(shared, path, name)
    const adopted = await shared.provider.adopt(shared.codebase, path, { createdBy: 'test', aliases: [] })
    expect(adopted.trust).toBe(isTrusted ? 'own' : 'unproven')
    if (isTrusted) return
    await trustEnvironment(shared.context, shared.codebase, adopted)
    expect((await shared.context.store.environments.get(adopted.id))?.trust).toBe('vouched')
    // It is a person's own: nothing of ours is put into it.
    expect(readdirSync(path)).not.toContain('.env')
  })

  test('is found for a pull request by its branch, is trusted only if its content is, and not found by the branch that a fork suggests', async () => {
    await using world = await makeWorld(withSecrets)
    world.repo.git('worktree', 'add', '-q', '-b', 'x', world.box.path('x'), strange(world, 'theirs'))
    world.repo.git('worktree', 'add', '-q', '-b', 'wip', world.box.path('wip'))
    world.repo.git('push', '-q', 'origin', `${strange(world, 'of a fork')}:refs/pull/3/head`)
    for (const isForkPR of [{ isForkPR: true }, {}]) {
      const found = await resolved(world, 'pr', 3, { hints: { ...isForkPR, suggestedBranch: 'wip', prBranch: 'wip' } })
      expect(found.environment.branch).toBe('pr-3-review')
      expect(gets(world, found)).toEqual(nothing)
    }
    const own = { isForkPR: false, prBranch: 'x' }
    expect(await resolved(world, 'pr', 1, { hints: own })).toMatchObject({ how: 'adopted', trusted: false })
    const suggested = { isForkPR: false, prBranch: 'gone', suggestedBranch: 'wip' }
    expect(await resolved(world, 'pr', 2, { hints: suggested })).toMatchObject({ how: 'adopted', trusted: true })
  })
})

describe.concurrent('links', () => {
  const withFork = async () => {
    const world = await makeWorld(withSecrets)
    world.repo.git('push', '-q', 'origin', `${strange(world, 'theirs')}:refs/pull/98/head`)
    return world
  }
  const claims: readonly IsolationHints[] = [{ isForkPR: true }, {}, { prBranch: 'main' }]

  test.each(claims)('of a pull request that is not proven are offered, never followed: %j', async (claim) => {
    await using world = await withFork()
    const hints = { ...claim, linkedIssues: [50, 51], linkedPRs: [52] }
    const ours = await issue(world, 50)
    const pull = await resolved(world, 'pr', 98, { hints, linkedByHand: true })
    expect(pull.environment.id).not.toBe(ours.id)
    expect(gets(world, pull)).toEqual(nothing)
    expect(pull.notices).toContain(
      'This pull request names issue #50, which has a worktree: `coppice worktree link issue-50 --conversation <platform:id>` to share it',
    )
    const later = await resolved(world, 'issue', 51)
    expect(later.environment.id).not.toBe(pull.environment.id)
    expect(gets(world, later)).toEqual(all)
    expect((await resolved(world, 'pr', 98, { hints })).environment.id).toBe(pull.environment.id)
    expect(await world.context.store.environments.aliases(pull.environment.id)).toEqual([{ type: 'review', id: '98' }])
  })

  test('made by hand let a fork’s conversation into our worktree, where it runs untrusted', async () => {
    await using world = await withFork()
    const ours = await issue(world, 50)
    const linked = await conversation(world, { environmentId: ours.id })
    const hints = { isForkPR: true }
    const found = await resolved(world, 'pr', 98, { hints, holder: holder(linked) })
    expect(found).toMatchObject({ environment: { id: ours.id, trust: 'own' }, trusted: false })
    expect((await resolved(world, 'issue', 50)).trusted).toBe(true)
  })

  test('made by hand to a fork’s worktree do not make it trusted', async () => {
    await using world = await withFork()
    const theirs = (await resolved(world, 'pr', 98, { hints: { isForkPR: true } })).environment
    const linked = await conversation(world, { environmentId: theirs.id })
    expect(await resolved(world, 'issue', 50, { holder: holder(linked) })).toMatchObject({
      environment: { id: theirs.id },
      trusted: false,
    })
    const named = await resolved(world, 'task', 'pr-98-review', { branch: toBranchName('pr-98-review') })
    expect(named).toMatchObject({ environment: { id: theirs.id }, trusted: false })
  })

  test('of our own pull request to a fork’s worktree are offered, and so is the branch that it suggests', async () => {
    await using world = await withFork()
    world.repo.git('push', '-q', 'origin', `${strange(world, 'x')}:refs/heads/x`, `${strange(world, 'y')}:refs/heads/y`)
    const theirs = (await resolved(world, 'pr', 98, { hints: { isForkPR: true } })).environment
    for (const [number, named] of [
      [61, { prBranch: 'x', linkedPRs: [98] }],
      [62, { prBranch: 'y', suggestedBranch: 'pr-98-review' }],
    ] as const) {
      const found = await resolved(world, 'pr', number, { hints: { isForkPR: false, ...named } })
      expect(found).toMatchObject({ how: 'created', environment: { branch: named.prBranch } })
      expect(gets(world, found)).toEqual(all)
      expect(found.notices).toContain(
        'The worktree of PR #98 is not trusted, so it is not reused: `coppice worktree link pr-98-review --conversation <platform:id>` to share it',
      )
      expect(await world.context.store.environments.aliases(found.environment.id)).toEqual([])
    }
    expect((await resolved(world, 'pr', 98, { hints: { isForkPR: true } })).environment.id).toBe(theirs.id)
  })

  test('in the commits of an unproven worktree are not offered to others', async () => {
    await using world = await withFork()
    const { environment } = await resolved(world, 'pr', 98, { hints: { isForkPR: true } })
    inside(world, environment).commit('a', 'a\n', 'this is about #50')
    expect((await resolved(world, 'issue', 50)).notices).toEqual([])
  })
})

describe('what was committed in an unproven worktree', () => {
  /** A stranger's whole work in one commit on top of base, on a branch with a name of ours. */
  const squash = (world: World, environment: IsolatedEnvironment, branch: string): void => {
    const tree = inside(world, environment)
    tree.git('switch', '-q', '-c', branch)
    tree.git('reset', '-q', '--soft', 'origin/main')
    tree.commit('theirs', `theirs for ${branch}\n`)
    tree.git('switch', '-q', environment.branch)
  }
  type Change = (world: World, environment: IsolatedEnvironment, branch: string) => unknown
  const afterwards: Readonly<Record<string, Change>> = {
    'the worktree is still there': () => undefined,
    'the worktree was removed': (world, environment) => removed(world, environment, { force: true }),
    'git removed the worktree': (world, { path }) => world.repo.git('worktree', 'remove', '-f', '-f', path),
    'its reflog was dropped': (world, environment) =>
      inside(world, environment).git('reflog', 'expire', '--expire=all', 'HEAD'),
    'the branch was renamed, before and after the removal': async (world, environment, branch) => {
      const tree = inside(world, environment)
      tree.git('switch', '-q', branch)
      tree.git('branch', '-q', '-m', 'feature-z')
      await removed(world, environment, { force: true })
      world.repo.git('branch', '-q', '-m', 'feature-z', branch)
    },
  }
  let shared: World
  beforeAll(async () => {
    shared = await makeWorld(withSecrets)
    const pushed = Object.keys(afterwards).map((what, i) => `${strange(shared, what)}:refs/pull/${90 + i}/head`)
    shared.repo.git('push', '-q', 'origin', ...pushed)
  })
  afterAll(() => shared[Symbol.asyncDispose]())

  const isNotOurs = async (world: World, turn: number, change: Change): Promise<void> => {
    const { environment } = await resolved(world, 'pr', 90 + turn, { hints: { isForkPR: true } })
    squash(world, environment, `issue-${50 + turn}`)
    await change(world, environment, `issue-${50 + turn}`)
    const found = await resolved(world, 'issue', 50 + turn)
    expect(found.environment.branch).toBe(`issue-${50 + turn}`)
    expect(gets(world, found)).toEqual(nothing)
    expect(found.notices.join()).toContain('nor committed in a trusted worktree here')
  }

  test.each(Object.entries(afterwards))('is not ours under another name: %s', (what, change) =>
    isNotOurs(shared, Object.keys(afterwards).indexOf(what), change),
  )

  test('is not ours under another name: the repository was registered again after the removal', async () => {
    await using world = await makeWorld(withSecrets)
    world.repo.git('push', '-q', 'origin', `${strange(world, 'theirs')}:refs/pull/90/head`)
    await isNotOurs(world, 0, async (_, environment) => {
      await removed(world, environment, { force: true })
      await removeCodebase(world.context, world.codebase)
      await world.context.store.codebases.insert(world.codebase)
    })
  })

  test('is not ours when the worktree is adopted once more', async () => {
    await using world = await makeWorld(withSecrets)
    const path = world.box.path('mine')
    world.repo.git('worktree', 'add', '-q', '-b', 'mine', path, strange(world, 'theirs'))
    const adopt = () => world.provider.adopt(world.codebase, path, { createdBy: 'test', aliases: [] })
    const first = await adopt()
    inside(world, { path }).git('reset', '-q', '--soft', 'origin/main')
    inside(world, { path }).commit('theirs', 'theirs\n')
    await remove(world, first)
    const again = await adopt()
    expect(again.id).not.toBe(first.id)
    expect(again.trust).toBe('unproven')
  })

  test('takes nothing from what was committed in the checkout and in trusted worktrees, there or removed', async () => {
    await using world = await makeWorld(withSecrets)
    world.repo.git('push', '-q', 'origin', `${strange(world, 'theirs')}:refs/pull/99/head`)
    await resolved(world, 'pr', 99, { hints: { isForkPR: true } })
    const ours = await issue(world, 42)
    const tree = inside(world, ours)
    for (const branch of ['early', 'late']) {
      tree.git('switch', '-q', '-c', branch, 'main')
      tree.commit(branch, branch)
    }
    tree.git('switch', '-q', 'issue-42')
    world.repo.git('switch', '-q', '-c', 'checkout')
    world.repo.commit('here', 'here\n')
    world.repo.git('switch', '-q', 'main')
    const taken = async (branch: string) =>
      gets(world, await resolved(world, 'task', branch, { branch: toBranchName(branch) }))
    expect(await taken('checkout')).toEqual(all)
    expect(await taken('early')).toEqual(all)
    await removed(world, ours, { force: true })
    expect(await taken('late')).toEqual(all)
  })
})

describe.concurrent('what comes back', () => {
  test('a worktree that was vouched for with a version that did not record what that covers is not any more', async () => {
    await using world = await makeWorld()
    const { restorePoint } = await removed(world, await issue(world, 1), { force: true })
    const { contents } = restorePoint
    const environment: IsolatedEnvironment = { ...contents.environment, trust: 'vouched', vouchedSha: contents.tip }
    const earlier = { ...restorePoint, contents: { ...contents, environment } }
    expect((await world.provider.restore(earlier)).environment).toMatchObject({ trust: 'lapsed' })
  })

  test('a restored worktree is as trusted as it was, and a work taken up again gains nothing', async () => {
    await using world = await makeWorld(withSecrets)
    world.repo.git('push', '-q', 'origin', `${strange(world, 'theirs')}:refs/pull/7/head`)
    const theirs = (await resolved(world, 'pr', 7)).environment
    const { restorePoint } = await removed(world, theirs, { force: true })
    const back = (await world.provider.restore(restorePoint)).environment
    expect(back.trust).toBe('unproven')
    // All of it in one commit of our own, which the branch keeps.
    inside(world, back).git('reset', '-q', '--soft', 'main')
    inside(world, back).commit('mine', 'mine\n')
    await removed(world, back, { force: true })
    const again = await resolved(world, 'task', 'pr-7-review', { branch: toBranchName('pr-7-review') })
    expect(gets(world, again)).toEqual(nothing)
  })

  test('a branch of ours that was rebased and never pushed is still ours when its work is taken up again', async () => {
    await using world = await makeWorld(withSecrets)
    const first = await issue(world, 42)
    inside(world, first).commit('a', 'a\n')
    world.repo.commit('later', 'later\n')
    world.repo.git('push', '-q', 'origin', 'main')
    inside(world, first).git('rebase', '-q', 'main')
    await removed(world, first, { force: true })
    expect(gets(world, await resolved(world, 'issue', 42))).toEqual(all)
  })

  test('a branch that a stranger’s commit was put on meanwhile is not', async () => {
    await using world = await makeWorld(withSecrets)
    await removed(world, await issue(world, 42))
    world.repo.git('branch', '-f', 'issue-42', strange(world, 'theirs'))
    const again = await resolved(world, 'issue', 42)
    expect(gets(world, again)).toEqual(nothing)
    expect(again.notices.join()).toContain('coppice worktree trust issue-42')
  })
})

test('a spare that serves a fork has nothing copied into it', async () => {
  await using world = await makeWorld({ ...withSecrets, settings: { spares: 1 } })
  await keepSpares(world.context, world.codebase)
  const [spare] = await world.context.store.spares.list(world.codebase.id)
  expect(readdirSync(spare?.path ?? '').toSorted()).toEqual(['.coppice', '.git', '.gitignore', 'README'])
  world.repo.git('push', '-q', 'origin', `${strange(world, 'theirs')}:refs/pull/7/head`)
  const found = await resolved(world, 'pr', 7)
  expect(gets(world, found)).toEqual(nothing)
  expect(await world.context.store.spares.list(world.codebase.id)).toEqual([])
})

test('large files are fetched for our own work, and for a stranger, whose commit may name the server, they are not', async () => {
  await using world = await makeWorld(withSecrets)
  const ran = world.box.path('lfs-ran')
  appendFileSync(
    join(world.box.home, '.gitconfig'),
    `[filter "lfs"]\n\tsmudge = "echo %f >> ${ran}; cat"\n\tclean = cat\n\trequired = true\n`,
  )
  world.repo.git('switch', '-q', '-c', 'large')
  world.repo.commit('.gitattributes', '*.bin filter=lfs\n')
  const first = world.repo.commit('one.bin', 'pointer\n')
  const second = world.repo.commit('two.bin', 'pointer\n')
  world.repo.git('push', '-q', 'origin', `${first}:refs/pull/7/head`, `${second}:refs/heads/large`)
  world.repo.git('switch', '-q', 'main')
  world.repo.git('branch', '-q', '-D', 'large')
  rmSync(ran, { force: true })
  const { environment } = await resolved(world, 'pr', 7, { hints: { isForkPR: true, prSha: first } })
  await resolved(world, 'pr', 7, { hints: { isForkPR: true, prSha: second } })
  expect(inside(world, environment).read('two.bin')).toBe('pointer\n')
  expect(existsSync(ran)).toBe(false)
  await resolved(world, 'pr', 8, { hints: { isForkPR: false, prBranch: 'large' } })
  expect(readFileSync(ran, 'utf8').trim().split('\n').toSorted()).toEqual(['one.bin', 'two.bin'])
})

describe('what a person vouched for is a commit', () => {
  const add = (tree: Inside): string => tree.commit('mine', 'mine\n')
  /** How the worktree moves from the vouched commit, and whether that person has vouched for where it is then. */
  const moves: Readonly<Record<string, readonly [boolean, (tree: Inside, next: string) => unknown]>> = {
    'it stays': [true, () => undefined],
    'a commit is added there': [true, add],
    'a commit is added and amended': [true, (tree) => [add(tree), tree.git('commit', '-q', '--amend', '-m', 'better')]],
    'base is merged': [true, (tree) => [add(tree), tree.git('merge', '-q', '--no-edit', 'origin/main')]],
    'it is fast-forwarded to the next head': [false, (tree, next) => tree.git('merge', '-q', '--ff-only', next)],
    'the next head is merged': [false, (tree, next) => [add(tree), tree.git('merge', '-q', '--no-edit', next)]],
    'it is reset to the next head, and a commit is added': [
      false,
      (tree, next) => [tree.git('reset', '-q', '--hard', next), add(tree)],
    ],
    'the next head is picked': [false, (tree, next) => tree.git('cherry-pick', '--allow-empty', next)],
    'it is detached at the next head': [false, (tree, next) => tree.git('checkout', '-q', '--detach', next)],
    'it goes to what an untrusted run had committed there before': [
      false,
      (tree) => tree.git('merge', '-q', '--ff-only', tree.git('rev-parse', 'refs/before').trim()),
    ],
    'it goes back to an older commit': [false, (tree) => tree.git('reset', '-q', '--hard', 'HEAD~1')],
  }

  let world: World
  beforeAll(async () => {
    world = await makeWorld(withSecrets)
    world.repo.commit('later', 'later\n')
    world.repo.git('push', '-q', 'origin', 'main')
  })
  afterAll(() => world[Symbol.asyncDispose]())

  test.each(Object.entries(moves))('%s', async (how, [isVouched, move]) => {
    const number = 1 + Object.keys(moves).indexOf(how)
    const older = strange(world, `older ${number}`, 'main~1')
    const first = strange(world, 'first', older)
    const next = strange(world, 'next', first)
    const push = (head: string) => world.repo.git('push', '-q', 'origin', `${head}:refs/pull/${number}/head`)
    push(first)
    const { environment } = await resolved(world, 'pr', number, { hints: { isForkPR: true, prSha: first } })
    const tree = inside(world, environment)
    tree.git('commit', '-q', '--allow-empty', '-m', 'by an untrusted run')
    tree.git('update-ref', 'refs/before', 'HEAD')
    tree.git('reset', '-q', '--hard', first)
    await trustEnvironment(world.context, world.codebase, environment)
    move(tree, next)
    const ours = holder({ id: 'ours', environmentId: environment.id })
    const trusted = async (prSha?: string): Promise<boolean> => {
      if (prSha === undefined) return (await resolved(world, 'thread', 'ours', { holder: ours })).trusted
      return (await resolved(world, 'pr', number, { hints: { isForkPR: true, prSha } })).trusted
    }
    // A message of our own, one about the vouched head, and one about the next.
    expect([await trusted(), await trusted(first)]).toEqual([isVouched, isVouched])
    // What the next head gets, and vouching once more, don't depend on how it moved: some of either answer.
    if (!everyCase && number % 3 !== 0) return
    push(next)
    expect(await trusted(next)).toBe(false)
    const row = await world.context.store.environments.get(environment.id)
    if (row === undefined) throw new Error('no row')
    expect((await trustEnvironment(world.context, world.codebase, row)).wasTrusted).toBe(isVouched)
    expect(await trusted()).toBe(true)
  })
})

test('a worktree that was moved to a commit that nobody vouched for is removed without its teardown', async () => {
  const approve = () => Promise.resolve(true)
  const prepare = (repo: World['repo']): void => {
    repo.commit('.coppice/config.yaml', 'worktree:\n  teardown: ["echo ran >> \\"$OUT\\"; sh teardown.sh"]\n')
    repo.commit('teardown.sh', 'true\n')
  }
  await using world = await makeWorld({ remote: true, context: { approve }, prepare })
  const out = world.box.path('ran')
  const context = { ...world.context, programEnvironment: { ...world.context.programEnvironment, OUT: out } }
  const here: World = { ...world, context, provider: createEnvironments(context) }
  for (const [number, moves] of [
    [7, false],
    [8, true],
  ] as const) {
    const first = strange(world, 'first')
    world.repo.git('push', '-q', 'origin', `${first}:refs/pull/${number}/head`)
    const { environment } = await resolved(here, 'pr', number, { hints: { isForkPR: true, prSha: first } })
    await trustEnvironment(context, world.codebase, environment)
    if (moves) inside(world, environment).git('merge', '-q', '--ff-only', strange(world, 'next', first))
    const row = await context.store.environments.get(environment.id)
    expect((await remove(here, row ?? environment, { force: true })).outcome).toBe('removed')
    expect(existsSync(out)).toBe(true)
    expect(readFileSync(out, 'utf8')).toBe('ran\n')
  }
})

test('a person vouches for a worktree: it gets what it was denied, and a setup that fails leaves it untrusted', async () => {
  await using world = await makeWorld(withSecrets)
  const theirs = strange(world, 'theirs')
  world.repo.git('push', '-q', 'origin', `${theirs}:refs/pull/7/head`)
  const { environment } = await resolved(world, 'pr', 7)
  const refused = { ...world.context, approve: () => Promise.reject(new Error('the terminal is gone')) }
  await expect(trustEnvironment(refused, world.codebase, environment)).rejects.toThrow('the terminal is gone')
  expect((await world.context.store.environments.get(environment.id))?.trust).toBe('unproven')
  const atRelease: unknown[] = []
  const failpoint = async (name: string): Promise<void> => {
    if (name === 'lease.released') atRelease.push((await world.context.store.environments.get(environment.id))?.trust)
  }
  const vouched = await trustEnvironment({ ...world.context, failpoint }, world.codebase, environment)
  expect(vouched).toMatchObject({ ranSetup: true, commit: theirs, notices: [] })
  // Once the lease is released, the head can move to a commit that nobody has looked at.
  expect(atRelease).toEqual(['vouched'])
  expect(gets(world, await resolved(world, 'pr', 7, { hints: { prSha: theirs } }))).toEqual(all)
  const row = await world.context.store.environments.get(environment.id)
  expect(row?.vouchedSha).toBe(theirs)
  const again = await trustEnvironment(world.context, world.codebase, row ?? environment)
  expect(again.wasTrusted).toBe(true)
})

describe('nobody vouches for', () => {
  const commit = (world: World, environment: IsolatedEnvironment): void =>
    void inside(world, environment).git('commit', '-q', '--allow-empty', '-m', 'unseen')

  /** When a commit appears that the person has not seen. The last one comes when our files are there already. */
  const moments = {
    'while the command waits for the repository': async (world: World, environment: IsolatedEnvironment) => {
      await keepRecognisable(world.context, world.codebase)
      const [isHeld, waits, moved] = [1, 2, 3].map(() => Promise.withResolvers<void>())
      const following = locked(world.context, world.codebase, 'following PR #7', async () => {
        isHeld?.resolve()
        await moved?.promise
      })
      await isHeld?.promise
      const asked = trust({ ...world, context: { ...world.context, progress: () => waits?.resolve() } }, environment)
      await waits?.promise
      commit(world, environment)
      moved?.resolve()
      return Promise.all([asked, following])
    },
    'once it has its turn': (world: World, environment: IsolatedEnvironment) => {
      const failpoint = async (name: string): Promise<void> => {
        if (name === 'lease.recorded') commit(world, environment)
      }
      return trustEnvironment({ ...world.context, failpoint }, world.codebase, environment)
    },
    'during setup': (world: World, environment: IsolatedEnvironment) => {
      const approve = async (): Promise<boolean> => {
        commit(world, environment)
        return true
      }
      return trustEnvironment({ ...world.context, approve }, world.codebase, environment)
    },
  }
  const trust = ({ context, provider, repo }: World, { branch }: IsolatedEnvironment): Promise<unknown> =>
    worktreeTrust.execute({
      words: [branch],
      values: {},
      codebase: undefined,
      cwd: repo.path,
      signal: new AbortController().signal,
      open: async () => ({
        context,
        environments: async () => provider,
        fleet: noFleet,
        keepSpares: () => undefined,
        platforms: async () => knownPlatforms,
        databaseName: 'SQLite',
      }),
      notice: () => undefined,
    })

  test('a worktree with a process inside, which would read our files, or in use, nor a commit that appears meanwhile', async () => {
    await using world = await makeWorld(withSecrets)
    world.repo.git('push', '-q', 'origin', `${strange(world, 'theirs')}:refs/pull/7/head`)
    const { environment } = await resolved(world, 'pr', 7)
    const left = async () => [
      (await world.context.store.environments.get(environment.id))?.trust,
      inside(world, environment).has('.env'),
    ]
    const vouch = () => messageOf(trustEnvironment(world.context, world.codebase, environment))
    {
      using sleeper = await program('sleep', ['1000'], { cwd: environment.path })
      expect(await vouch()).toBe(`didn't trust pr-7-review: process ${sleeper.pid} (sleep) is inside it`)
    }
    expect(await left()).toEqual(['unproven', false])
    const lease = await acquireLease(world.context, world.codebase, environment, { purpose: 'agent run for slack' })
    expect(await vouch()).toContain("didn't trust pr-7-review: in use: agent run for slack")
    await lease.release()
    for (const [when, act] of Object.entries(moments)) {
      const before = inside(world, environment).git('rev-parse', '--short=7', 'HEAD')
      const message = await messageOf(act(world, environment))
      const now = inside(world, environment).git('rev-parse', '--short=7', 'HEAD')
      expect([when, message]).toEqual([
        when,
        expect.stringMatching(`^didn't trust pr-7-review: it was at ${before} and is at ${now} now`),
      ])
      expect([when, ...(await left())]).toEqual([when, 'unproven', when === 'during setup'])
    }
    // Setup ran on the unseen commit, and git ignores what it left.
    expect(await vouch()).toBe("didn't trust pr-7-review, which has more than its commit: 1 ignored (ran)")
    inside(world, environment).git('clean', '-q', '-fX', 'ran')
    await trustEnvironment(world.context, world.codebase, environment)
    expect(await left()).toEqual(['vouched', true])
  })
})

test('vouching for a worktree whose setup nobody approved says what it got and what did not run', async () => {
  await using world = await makeWorld({ ...withSecrets, context: {} })
  const commit = strange(world, 'theirs')
  world.repo.git('push', '-q', 'origin', `${commit}:refs/pull/7/head`)
  const { environment } = await resolved(world, 'pr', 7)
  expect(inWords(await trustEnvironment(world.context, world.codebase, environment))).toEqual({
    wasTrusted: false,
    commit,
    copied: 1,
    linked: 1,
    ranSetup: false,
    notices: [expect.stringContaining("didn't run: they need approval")],
  })
})

test('worktree.allowForks gives a fork our files only after a person has approved that', async () => {
  for (const approved of [false, true]) {
    await using world = await makeWorld({
      remote: true,
      context: { approve: () => Promise.resolve(approved) },
      prepare: (repo) => {
        repo.commit('.coppice/config.yaml', 'worktree:\n  copy: [.env]\n  allowForks: true\n')
        repo.write('.env', 'SECRET=1\n')
      },
    })
    world.repo.git('push', '-q', 'origin', `${strange(world, 'theirs')}:refs/pull/7/head`)
    const { environment } = await resolved(world, 'pr', 7)
    expect(inside(world, environment).has('.env')).toBe(approved)
  }
})

test('an environment that does not exist is nobody’s: a pull request that cannot be fetched makes nothing', async () => {
  await using world = await makeWorld(withSecrets)
  await expect(ask(world, 'pr', 7)).rejects.toMatchObject({ code: 'pr-not-found' })
  expect(await world.context.store.environments.liveByWork(world.codebase.id, toWork('pr', '7'))).toBeUndefined()
})
