import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { presenceOf } from '../../src/isolation/provider-of.ts'
import { describe, expect, test } from 'vitest'
import { toBranchName, toCodebaseId } from '../../src/domain/names.ts'
import { toWork } from '../../src/domain/work.ts'
import { writeToken } from '../../src/git/admin-dir.ts'
import { limitMessage } from '../../src/commands/views/limit.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { makeContext, makeWorld, type World } from '../helpers/world.ts'
import {
  ask,
  branchExists,
  conversation,
  fingerprint,
  inside,
  issue,
  remove,
  removed,
  resolved,
  holder,
} from './scene.ts'

const hour = 60 * 60 * 1000
const day = 24 * hour

const refreshed = async (world: World, { platform, conversationId }: { platform: string; conversationId: string }) => {
  const found = await world.context.store.conversations.find(platform, conversationId)
  if (found === undefined) throw new Error('the conversation is gone')
  return found
}

/** A commit on the environment's branch that main then merges. */
const land = (world: World, environment: { path: string; branch: string }): void => {
  inside(world, environment).commit(environment.branch, 'landed\n')
  world.repo.git('merge', '-q', '--no-ff', '-m', `land ${environment.branch}`, environment.branch)
}

describe.concurrent('1. the conversation’s own environment', () => {
  test('comes first, before that of the same work', async () => {
    await using world = await makeWorld()
    const own = await issue(world, 1)
    await issue(world, 2)
    const talk = await conversation(world, { environmentId: own.id })
    expect(await resolved(world, 'issue', 2, { holder: holder(talk) })).toMatchObject({
      how: 'conversation',
      environment: { id: own.id },
    })
  })

  test('that is gone is recorded as missing, its reference cleared, and nothing else deleted', async () => {
    await using world = await makeWorld()
    const own = await issue(world, 1)
    const talk = await conversation(world, { environmentId: own.id })
    renameSync(own.path, world.box.path('away'))
    const before = world.repo.git('worktree', 'list')
    const found = await resolved(world, 'issue', 2, { holder: holder(talk) })
    expect(found.how).toBe('created')
    expect((await refreshed(world, talk)).environmentId).toBeUndefined()
    expect((await world.context.store.environments.get(own.id))?.status).toBe('missing')
    expect(world.repo.git('worktree', 'list')).toContain(before)
    expect(branchExists(world, 'issue-1')).toBe(true)
    renameSync(world.box.path('away'), own.path)
    const returned = { id: own.id, status: 'active' }
    expect(await resolved(world, 'issue', 1)).toMatchObject({ how: 'same-work', environment: returned })
    expect((await world.context.store.environments.get(own.id))?.status).toBe('active')
  })

  test('of another codebase is not used', async () => {
    await using world = await makeWorld()
    const own = await issue(world, 1)
    const talk = await conversation(world, { environmentId: own.id })
    const other = world.box.repo('other')
    const codebase = {
      ...world.codebase,
      id: toCodebaseId('other'),
      name: 'other',
      repoPath: other.commonDir,
      checkoutPath: other.path,
    }
    await world.context.store.codebases.insert(codebase)
    const found = await resolved(world, 'issue', 1, { codebase, holder: holder(talk) })
    expect(found).toMatchObject({ how: 'created', environment: { codebaseId: 'other' } })
  })

  test('that was removed or released is forgotten', async () => {
    await using world = await makeWorld()
    const own = await issue(world, 1)
    await removed(world, own)
    const talk = await conversation(world, { environmentId: own.id })
    expect((await resolved(world, 'issue', 3, { holder: holder(talk) })).how).toBe('created')
    expect((await refreshed(world, talk)).environmentId).toBeUndefined()
  })
})

describe.concurrent('2. and 3. the same work and linked works', () => {
  test('the same work is one environment from every platform, found without starting a program', async () => {
    await using world = await makeWorld()
    const first = await issue(world, 42)
    const before = world.context.git.spawned()
    expect(await resolved(world, 'issue', 42)).toMatchObject({ how: 'same-work', environment: { id: first.id } })
    expect(world.context.git.spawned()).toBe(before)
  })

  test('a PR that fixes an issue gets its tree, says so, and finds it by itself from then on', async () => {
    await using world = await makeWorld()
    const first = await issue(world, 42)
    const shared = await resolved(world, 'pr', 99, { hints: { isForkPR: false, linkedIssues: [42], prBranch: 'x' } })
    expect(shared).toMatchObject({
      how: 'linked',
      environment: { id: first.id },
      notices: [
        'Reusing worktree from issue #42',
        'The branch of PR #99 is `x`, but this worktree is on `issue-42`: push to `x` to update the PR',
      ],
    })
    const again = await resolved(world, 'pr', 99, { hints: { isForkPR: false, prBranch: 'x' } })
    expect(again).toMatchObject({ how: 'same-work', environment: { id: first.id } })
  })

  test('whoever is new to a tree is told which commit of the pull request it has, or both if they differ', async () => {
    await using world = await makeWorld({ remote: true })
    const shared = inside(world, await issue(world, 42))
    const pushed = shared.commit('a', 'a\n')
    shared.git('push', '-q', 'origin', 'issue-42', 'issue-42:feature')
    const hints = { prBranch: 'issue-42', prSha: pushed, isForkPR: false, linkedIssues: [42] }
    const reviewing = (branch: string): string =>
      `Reviewing PR at commit \`${pushed.slice(0, 7)}\` (branch: \`${branch}\`)`
    const first = await resolved(world, 'pr', 99, { hints })
    expect(first.notices).toEqual(['Reusing worktree from issue #42', reviewing('issue-42')])
    expect((await resolved(world, 'pr', 99, { hints })).notices, 'in a second conversation').toEqual([
      reviewing('issue-42'),
    ])
    const own = holder(await conversation(world, { environmentId: first.environment.id }))
    expect((await resolved(world, 'pr', 99, { hints, holder: own })).notices, 'once').toEqual([])
    const ahead = shared.commit('b', 'b\n')
    expect((await resolved(world, 'pr', 99, { hints })).notices).toEqual([
      `PR #99 is at \`${pushed.slice(0, 7)}\`, this worktree stays at \`${ahead.slice(0, 7)}\`: it is the worktree of issue #42`,
    ])

    // One that is made for the pull request: from the remote's branch, and from a local one that has more.
    const feature = { ...hints, prBranch: 'feature', linkedIssues: [] }
    expect((await resolved(world, 'pr', 5, { hints: feature })).notices).toEqual([reviewing('feature')])
    expect((await resolved(world, 'pr', 5, { hints: feature })).notices).toEqual([reviewing('feature')])
    shared.git('push', '-q', 'origin', `${pushed}:refs/heads/more`)
    world.repo.git('branch', 'more', ahead)
    const more = { ...hints, prBranch: 'more', linkedIssues: [] }
    expect((await resolved(world, 'pr', 6, { hints: more })).notices).toContain(
      `PR #6 is at \`${pushed.slice(0, 7)}\`, this worktree stays at \`${ahead.slice(0, 7)}\`: it has commits that the PR doesn't have`,
    )
  })

  test('links are remembered at creation, so the issue that comes later finds the tree of the PR', async () => {
    await using world = await makeWorld({ remote: true })
    world.repo.git('push', '-q', 'origin', 'main:x')
    const { environment } = await resolved(world, 'pr', 99, { hints: { prBranch: 'x', linkedIssues: [42] } })
    expect(await resolved(world, 'issue', 42)).toMatchObject({ how: 'same-work', environment: { id: environment.id } })
  })

  test('linked issues come before linked PRs, and the own work before both', async () => {
    await using world = await makeWorld()
    const one = await issue(world, 1)
    const two = (await resolved(world, 'issue', 2, { hints: { linkedPRs: [50] } })).environment
    const hints = { linkedIssues: [1], linkedPRs: [50] }
    expect((await resolved(world, 'issue', 3, { hints })).environment.id).toBe(one.id)
    expect((await resolved(world, 'issue', 2, { hints })).environment.id).toBe(two.id)
    expect((await resolved(world, 'thread', 't', { hints: { linkedPRs: [50] } })).environment.id).toBe(two.id)
  })

  test('a linked environment that is gone is passed over', async () => {
    await using world = await makeWorld()
    const one = await issue(world, 1)
    const two = await issue(world, 2)
    rmSync(one.path, { recursive: true })
    const found = await resolved(world, 'issue', 3, { hints: { linkedIssues: [1, 2] } })
    expect(found.environment.id).toBe(two.id)
  })

  test('a PR of the same repository does not get the tree of its review: a push must update the PR', async () => {
    await using world = await makeWorld({ remote: true })
    world.repo.git('push', '-q', 'origin', 'main:x', 'main:refs/pull/7/head')
    const review = (await resolved(world, 'review', 7)).environment
    const own = (await resolved(world, 'pr', 7, { hints: { prBranch: 'x', isForkPR: false } })).environment
    expect(own.branch).toBe('x')
    expect(own.id).not.toBe(review.id)
    expect((await resolved(world, 'review', 7)).environment.id).toBe(review.id)
  })
})

describe.concurrent('4. a worktree that somebody else made', () => {
  const pr = (world: World, hints: Record<string, unknown>) => resolved(world, 'pr', 7, { hints })
  const remote = { remote: true } as const

  test('is adopted on the PR’s branch, exact', async () => {
    await using world = await makeWorld(remote)
    const tree = world.repo.worktree('mine', '-b', 'feature/x')
    const found = await pr(world, { prBranch: 'feature/x' })
    expect(found).toMatchObject({ how: 'adopted', environment: { path: tree.path, owned: false } })
    expect(found.notices.join()).toContain(tree.path)
  })

  test('is adopted with / and - made equal, but the exact one comes first', async () => {
    await using world = await makeWorld(remote)
    const alike = world.repo.worktree('alike', '-b', 'feature-x')
    const exact = world.repo.worktree('exact', '-b', 'feature/x')
    expect((await pr(world, { prBranch: 'feature/x' })).environment.path).toBe(exact.path)
    expect((await resolved(world, 'pr', 8, { hints: { prBranch: 'feature-x' } })).environment.path).toBe(alike.path)
    const third = world.repo.worktree('third', '-b', 'fix-y')
    expect((await resolved(world, 'pr', 9, { hints: { prBranch: 'fix/y' } })).environment.path).toBe(third.path)
  })

  test('is adopted on the suggested branch, unless that is base', async () => {
    await using world = await makeWorld(remote)
    const tree = world.repo.worktree('mine', '-b', 'wip')
    const found = await pr(world, { prBranch: 'gone', suggestedBranch: 'wip' })
    expect(found).toMatchObject({ how: 'adopted', environment: { path: tree.path, branch: 'wip' } })
    // A checkout of base is nobody's work.
    world.repo.git('remote', 'set-head', 'origin', 'main')
    world.repo.git('checkout', '-q', '--detach')
    world.repo.worktree('base', 'main')
    const beside = await resolved(world, 'issue', 8, { hints: { suggestedBranch: 'main' } })
    expect(beside).toMatchObject({ how: 'created', environment: { branch: 'issue-8' } })
  })

  test('is adopted at the path the new one would get, also for a fork’s PR', async () => {
    await using world = await makeWorld(remote)
    const base = join(world.context.worktreesBase, 'project')
    mkdirSync(base, { recursive: true })
    world.repo.git('worktree', 'add', '-q', '-b', 'mine', join(base, 'issue-42'))
    world.repo.git('worktree', 'add', '-q', '-b', 'pr-7-review', join(base, 'pr-7-review'))
    world.repo.git('push', '-q', 'origin', 'main:refs/pull/7/head')
    expect(await resolved(world, 'issue', 42)).toMatchObject({ how: 'adopted', environment: { branch: 'mine' } })
    const fork = await pr(world, { isForkPR: true, prBranch: 'x' })
    expect(fork).toMatchObject({ how: 'adopted', environment: { branch: 'pr-7-review' } })
  })

  test('is not adopted by its branch for a fork’s PR: another repository’s branch merely has the same name', async () => {
    await using world = await makeWorld(remote)
    world.repo.worktree('mine', '-b', 'main-fix')
    world.repo.git('push', '-q', 'origin', 'main:refs/pull/7/head')
    const found = await pr(world, { isForkPR: true, prBranch: 'main-fix' })
    expect(found).toMatchObject({ how: 'created', environment: { branch: 'pr-7-review' } })
  })

  test('is never the main working tree', async () => {
    await using world = await makeWorld(remote)
    world.repo.git('push', '-q', 'origin', 'main:feature')
    world.repo.git('switch', '-q', '-c', 'feature', '--track', 'origin/feature')
    const found = await pr(world, { prBranch: 'feature' })
    expect(found.environment).toMatchObject({ branch: 'pr-7', owned: true })
    expect(found.environment.path).not.toBe(world.repo.path)
    const asked = world.provider.adopt(world.codebase, world.repo.path, { createdBy: 'test', aliases: [] })
    await expect(asked).rejects.toMatchObject({ code: 'not-adoptable' })
  })

  test('is never another repository’s, not even at the path itself', async () => {
    await using world = await makeWorld()
    const other = world.box.repo('other')
    const path = join(world.context.worktreesBase, 'project', 'issue-42')
    mkdirSync(join(path, '..'), { recursive: true })
    other.git('worktree', 'add', '-q', '-b', 'issue-42', path)
    const before = fingerprint(path)
    const found = await resolved(world, 'issue', 42)
    expect(found.how).toBe('created')
    expect(found.environment.path).not.toBe(path)
    expect(fingerprint(path)).toBe(before)
    const asked = world.provider.adopt(world.codebase, path, { createdBy: 'test', aliases: [] })
    await expect(asked).rejects.toMatchObject({ code: 'not-adoptable' })
  })

  test('that is an environment of ours already is shared, not doubled', async () => {
    await using world = await makeWorld(remote)
    const branch = toBranchName('feature/x')
    const task = (await resolved(world, 'task', 'feature/x', { branch })).environment
    const found = await pr(world, { prBranch: 'feature/x' })
    expect(found.environment.id).toBe(task.id)
    expect(await resolved(world, 'pr', 7)).toMatchObject({ how: 'same-work', environment: { id: task.id } })
  })

  test('is not the PR’s because its branch is called `pr-7`', async () => {
    await using world = await makeWorld(remote)
    world.repo.git('push', '-q', 'origin', 'main:refs/heads/feature/x')
    await resolved(world, 'task', 'pr-7', { branch: toBranchName('pr-7') })
    const found = await pr(world, { prBranch: 'feature/x', isForkPR: false })
    expect(found).toMatchObject({ how: 'created', environment: { branch: 'feature/x' } })
  })

  test('is not looked for on a branch made of a name that is long enough already', async () => {
    await using world = await makeWorld()
    const branch = toBranchName('x'.repeat(198))
    expect((await resolved(world, 'task', branch, { branch })).environment.branch).toBe(branch)
  })

  test('takes the place of one that is missing, which is saved first', async () => {
    await using world = await makeWorld(remote)
    world.repo.git('push', '-q', 'origin', 'main:refs/heads/feature/x')
    const hints = { prBranch: 'feature/x', isForkPR: false }
    const before = (await pr(world, hints)).environment
    rmSync(before.path, { recursive: true })
    // Git lets the branch be checked out a second time only if told so, or after `git worktree prune`.
    world.repo.git('worktree', 'add', '-q', '-f', world.box.path('mine'), 'feature/x')
    const found = await pr(world, hints)
    expect(found).toMatchObject({ how: 'adopted', environment: { path: world.box.path('mine'), owned: false } })
    const { store } = world.context
    expect((await store.environments.get(before.id))?.status).toBe('removed')
    const [point] = await store.restorePoints.list(world.codebase.id)
    expect(point?.contents.environment.id).toBe(before.id)
    expect(await pr(world, hints)).toMatchObject({ how: 'same-work', environment: { id: found.environment.id } })
  })

  test('that cannot be adopted costs no missing one its place', async () => {
    await using world = await makeWorld(remote)
    world.repo.git('push', '-q', 'origin', 'main:refs/heads/feature/x')
    const hints = { prBranch: 'feature/x', isForkPR: false }
    const before = (await pr(world, hints)).environment
    renameSync(before.path, world.box.path('away'))
    const { gitDir } = world.repo.worktree('theirs', '-f', 'feature/x')
    await writeToken(gitDir, 'made-with-another-home')
    await expect(pr(world, hints)).rejects.toMatchObject({ code: 'not-adoptable' })
    renameSync(world.box.path('away'), before.path)
    expect((await pr(world, hints)).environment.id).toBe(before.id)
  })

  test('for a fork’s PR costs none of ours its place, though it is missing and has the number', async () => {
    await using world = await makeWorld(remote)
    world.repo.git('push', '-q', 'origin', 'main:refs/pull/7/head')
    const ours = (await resolved(world, 'issue', 42, { hints: { linkedPRs: [7] } })).environment
    renameSync(ours.path, world.box.path('away'))
    await world.context.store.environments.transition(ours.id, 'active', 'missing')
    const path = join(world.context.worktreesBase, 'project', 'pr-7-review')
    world.repo.git('worktree', 'add', '-q', '-b', 'mine', path)
    const found = await pr(world, { isForkPR: true })
    expect(found).toMatchObject({ how: 'adopted', environment: { path, work: { type: 'review', id: '7' } } })
    expect((await world.context.store.environments.get(ours.id))?.status).toBe('missing')
  })

  test('of two messages at once adopts it once', async () => {
    await using world = await makeWorld(remote)
    world.repo.worktree('mine', '-b', 'feature/x')
    const both = await Promise.all([pr(world, { prBranch: 'feature/x' }), pr(world, { prBranch: 'feature/x' })])
    expect(both[0].environment.id).toBe(both[1].environment.id)
    expect(await world.context.store.environments.live(world.codebase.id)).toHaveLength(1)
  })
})

describe.concurrent('5. room', () => {
  test('at the limit what is provably merged goes first, and the user is told', async () => {
    await using world = await makeWorld({ settings: { worktreesPerCodebase: 2, holdMergedHours: 0 } })
    const merged = await issue(world, 1)
    land(world, merged)
    const other = await issue(world, 2)
    const found = await resolved(world, 'issue', 3)
    expect(found.how).toBe('created')
    expect(found.notices).toContain('Removed merged worktree `issue-1` to make room')
    const live = await world.context.store.environments.live(world.codebase.id)
    expect(live.map(({ branch }) => branch).sort()).toEqual([other.branch, 'issue-3'])
  })

  test('without anything merged it stops with the numbers, and never falls back to the shared checkout', async () => {
    let now = Date.now()
    await using world = await makeWorld({ settings: { worktreesPerCodebase: 3 }, context: { clock: () => now } })
    await issue(world, 1)
    const held = await issue(world, 2)
    land(world, held)
    inside(world, held).write('dirty', 'so it stays\n')
    now += 15 * day
    await issue(world, 3)
    const before = fingerprint(world.repo.path)
    const answer = await ask(world, 'issue', 4)
    expect(answer).toEqual({
      outcome: 'limit',
      report: { codebase: 'project', limit: 3, count: 3, merged: 0, stale: 1, held: 1, active: 1 },
    })
    if (answer.outcome !== 'limit') throw new Error(answer.outcome)
    expect(limitMessage(answer.report, 14).split('\n')).toEqual([
      'You have 3 active worktrees for **project** (limit reached).',
      ' 0 merged   1 stale (no activity in 14+ days)   1 held (merged or stale, but in use or with work to keep)   1 active',
      ' `/worktree cleanup stale` (1) · `/worktree list` · `/worktree remove <name>`',
    ])
    expect(fingerprint(world.repo.path, (path) => path.endsWith('FETCH_HEAD'))).toBe(before)
    expect(branchExists(world, 'issue-4')).toBe(false)
  })

  test('the numbers add up when an environment is missing', async () => {
    let now = Date.now()
    await using world = await makeWorld({ settings: { worktreesPerCodebase: 2 }, context: { clock: () => now } })
    const gone = await issue(world, 1)
    rmSync(gone.path, { recursive: true })
    await ask(world, 'issue', 9, { holder: holder(await conversation(world, { environmentId: gone.id })) })
    now += 15 * day
    await issue(world, 3)
    const answer = await ask(world, 'issue', 4)
    if (answer.outcome !== 'limit') throw new Error(answer.outcome)
    const { count, merged, stale, active } = answer.report
    expect({ count, merged, stale, active }).toEqual({ count: 2, merged: 0, stale: 1, active: 1 })
  })

  test('what was removed to make room is in no number, if there is still no room', async () => {
    await using world = await makeWorld({ settings: { worktreesPerCodebase: 2, holdMergedHours: 0 } })
    land(world, await issue(world, 1))
    for (const branch of ['mine', 'mine-too']) {
      const { path } = world.repo.worktree(branch, '-b', branch)
      await world.provider.adopt(world.codebase, path, { createdBy: 'test', aliases: [] })
    }
    const answer = await ask(world, 'issue', 4)
    expect(answer).toMatchObject({ outcome: 'limit', report: { count: 2, merged: 0, stale: 0, held: 0, active: 2 } })
    expect(branchExists(world, 'issue-1')).toBe(false)
  })

  test('an adopted environment is never let go of to make room', async () => {
    await using world = await makeWorld({ settings: { worktreesPerCodebase: 1, holdMergedHours: 0 } })
    const tree = world.repo.worktree('mine', '-b', 'mine')
    const adopted = await world.provider.adopt(world.codebase, tree.path, { createdBy: 'test', aliases: [] })
    land(world, adopted)
    expect((await ask(world, 'issue', 4)).outcome).toBe('limit')
    expect((await world.context.store.environments.get(adopted.id))?.status).toBe('active')
  })

  test('a persistent platform’s environment is never removed to make room', async () => {
    await using world = await makeWorld({ settings: { worktreesPerCodebase: 1, holdMergedHours: 0 } })
    // From the start, even if a crash keeps the chat from being attached to it.
    const { environment: mine } = await resolved(world, 'issue', 1, { persistent: true })
    expect((await world.context.store.conversations.ofEnvironments([mine.id])).length).toBe(0)
    land(world, mine)
    expect((await ask(world, 'issue', 4)).outcome).toBe('limit')
  })

  test('one that cannot be removed does not keep another from making room', async () => {
    await using world = await makeWorld({
      settings: { worktreesPerCodebase: 2, holdMergedHours: 0 },
      context: { approve: () => Promise.resolve(true) },
      prepare: (repo) =>
        repo.commit('.coppice/config.yaml', 'worktree:\n  teardown: ["test $COPPICE_BRANCH != issue-1"]\n'),
    })
    for (const n of [1, 2]) land(world, await issue(world, n))
    expect((await resolved(world, 'issue', 3)).how).toBe('created')
    expect((await world.context.store.environments.live(world.codebase.id)).map(({ branch }) => branch).sort()).toEqual(
      ['issue-1', 'issue-3'],
    )
  })

  test('the limit holds for parallel messages from two processes', async () => {
    const settings = { worktreesPerCodebase: 5 }
    await using world = await makeWorld({ settings })
    const second = await makeContext(world.box, {}, { settings })
    const other = { ...world, context: second, provider: createEnvironments(second) }
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) => ask(i % 2 === 0 ? world : other, 'issue', i + 1)),
    )
    await second.store.close()
    expect(answers.filter(({ outcome }) => outcome === 'resolved')).toHaveLength(5)
    expect(answers.filter(({ outcome }) => outcome === 'limit')).toHaveLength(7)
    expect(world.repo.git('worktree', 'list').split('\n')).toHaveLength(6)
    expect(world.repo.git('for-each-ref', 'refs/heads/issue-*').split('\n')).toHaveLength(5)
  })

  test('ten messages for one work at once make one environment', async () => {
    await using world = await makeWorld()
    const second = await makeContext(world.box, {})
    const other = { ...world, context: second, provider: createEnvironments(second) }
    const answers = await Promise.allSettled(
      Array.from({ length: 10 }, (_, i) => resolved(i % 2 === 0 ? world : other, 'issue', 42)),
    )
    await second.store.close()
    const failed = answers.filter((one) => one.status === 'rejected')
    expect(failed.map((one) => String(one.reason))).toEqual([])
    const statuses = answers.map((one) => (one.status === 'fulfilled' ? one.value.environment.status : 'none'))
    expect(new Set(statuses)).toEqual(new Set(['active']))
    expect(await world.context.store.environments.live(world.codebase.id)).toHaveLength(1)
  })
})

describe.concurrent('at the same time', () => {
  test('restore and a new message for the same work leave one environment and nothing half made', async () => {
    await using world = await makeWorld()
    const { restorePoint } = await removed(world, await issue(world, 42))
    const both = await Promise.allSettled([world.provider.restore(restorePoint), resolved(world, 'issue', 42)])
    expect(both.some(({ status }) => status === 'fulfilled')).toBe(true)
    expect(await world.context.store.environments.live(world.codebase.id)).toHaveLength(1)
    expect(world.repo.git('worktree', 'list').split('\n')).toHaveLength(2)
    expect(await world.context.store.journal.open('this-host')).toEqual([])
  })

  test('removal and a new message for the same work never leave a broken environment', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    await Promise.allSettled([remove(world, environment), resolved(world, 'issue', 42), resolved(world, 'issue', 42)])
    const live = await world.context.store.environments.live(world.codebase.id)
    for (const one of live)
      expect(await presenceOf(world.context, world.codebase, one)).toMatchObject({ state: 'present' })
    expect(world.repo.git('worktree', 'list').split('\n')).toHaveLength(1 + live.length)
    expect(await world.context.store.journal.open('this-host')).toEqual([])
  })
})

describe.concurrent('6. creation', () => {
  test('offers the link when commits on another environment’s branch mention the number', async () => {
    await using world = await makeWorld()
    const thread = (await resolved(world, 'thread', 'C1:1')).environment
    inside(world, thread).commit('a', 'a\n', 'begin #42')
    const { notices } = await resolved(world, 'issue', 42)
    expect(notices).toContain(
      `Commits on \`${thread.branch}\` mention #42: \`coppice worktree link ${thread.branch} --conversation <platform:id>\` to share it`,
    )
    expect((await resolved(world, 'issue', 4)).notices).toEqual([])
  })

  test('does not offer it for a commit that everybody has from base', async () => {
    await using world = await makeWorld({ prepare: (repo) => repo.commit('a', 'a\n', 'long ago: #42') })
    await resolved(world, 'thread', 'C1:1')
    expect((await resolved(world, 'issue', 42)).notices).toEqual([])
  })
})

describe.concurrent('what cannot be told blocks, with a remedy, and nothing is made instead:', () => {
  const blocked = { name: 'IsolationBlockedError', code: 'isolation-blocked' }

  test('a directory that cannot be looked at', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    const project = join(world.context.worktreesBase, 'project')
    renameSync(project, world.box.path('away'))
    symlinkSync(project, project)
    await expect(ask(world, 'issue', 42)).rejects.toMatchObject(blocked)
    await expect(
      ask(world, 'issue', 7, { holder: holder(await conversation(world, { environmentId: environment.id })) }),
    ).rejects.toMatchObject(blocked)
    expect((await world.context.store.environments.get(environment.id))?.status).toBe('active')
  })

  test('a directory that is there and is not our worktree', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    rmSync(join(environment.path, '.git'))
    await expect(ask(world, 'issue', 42)).rejects.toMatchObject(blocked)
    expect(inside(world, environment).read('README')).toBe('hello\n')
  })

  test('an environment that is being removed, and stays so for too long', async () => {
    let now = Date.now()
    // Each time somebody is told that we wait, an hour goes by.
    await using world = await makeWorld({ context: { clock: () => now, progress: () => (now += hour) } })
    const environment = await issue(world, 42)
    await world.context.store.environments.transition(environment.id, 'active', 'removing')
    await expect(ask(world, 'issue', 42)).rejects.toMatchObject(blocked)
  })
})

test('a work taken up again after its removal is found by its aliases no more', async () => {
  await using world = await makeWorld()
  const { environment } = await resolved(world, 'issue', 42, { hints: { linkedPRs: [99] } })
  await remove(world, environment)
  expect(await world.context.store.environments.liveByWork(world.codebase.id, toWork('pr', '99'))).toBeUndefined()
  expect((await resolved(world, 'issue', 42)).how).toBe('created')
})
