import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import type { AppError } from '../../src/domain/errors.ts'
import { toBranchName } from '../../src/domain/names.ts'
import { acquireLease } from '../../src/isolation/lease.ts'
import { trustPurpose, trustRun } from '../../src/isolation/trust.ts'
import { trustEnvironment } from '../../src/isolation/providers/checkout/trust-environment.ts'
import { forgeIndex } from './forge-index.ts'
import { messageIn, remedyIn } from '../helpers/words.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { holder, type Inside, inside, issue, messageOf, remove, removed, resolved } from './scene.ts'

/*
 * A person vouches for a commit: what an untrusted run has prepared in the worktree before doesn't count, and neither
 * does what somebody brings in later.
 */

let world: World
beforeAll(async () => {
  world = await makeWorld({
    remote: true,
    settings: { worktreesPerCodebase: 100 },
    context: { approve: () => Promise.resolve(true) },
    prepare: (repo) => {
      repo.commit('.gitignore', '.env\nran\nplanted\n')
      repo.commit('setup.sh', 'touch ran\n')
      repo.commit('teardown.sh', 'true\n')
      repo.commit(
        '.coppice/config.yaml',
        'worktree:\n  copy: [.env]\n  setup: ["sh setup.sh"]\n  teardown: ["sh teardown.sh"]\n',
      )
      repo.write('.env', 'SECRET=1\n')
    },
  })
  world.repo.write('teardown.sh', `cp .env ${world.box.path('stolen')}\n`)
  world.repo.git('commit', '-q', '-am', 'changed')
  world.repo.git('update-ref', 'refs/changed', 'HEAD')
  world.repo.git('reset', '-q', '--hard', 'HEAD~')
})
afterAll(() => world[Symbol.asyncDispose]())

type Subject = { environment: IsolatedEnvironment; tree: Inside; first: string; next: string; number: number }

let used = 0
/** A fork's, two commits on top of base; its next head changes the teardown script. */
const pullRequest = async (): Promise<Subject> => {
  used += 1
  const commit = (parent: string, tree: string): string =>
    world.repo.git('commit-tree', '-p', parent, '-m', `by a stranger: ${used}`, `${tree}^{tree}`)
  const first = commit(commit('main', 'main'), 'main')
  const next = commit(first, 'refs/changed')
  world.repo.git('push', '-q', 'origin', `${first}:refs/pull/${used}/head`)
  const { environment } = await resolved(world, 'pr', used, { hints: { isForkPR: true, prSha: first } })
  return { environment, tree: inside(world, environment), first, next, number: used }
}

/** As it was created. */
const startAgain = ({ tree, environment, first }: Subject): void => {
  tree.tryGit('merge', '--abort')
  rmSync(join(tree.git('rev-parse', '--absolute-git-dir'), 'index'))
  tree.git('checkout', '-q', '-f', '-B', environment.branch, first)
  tree.git('clean', '-q', '-ffdx')
  // Git doesn't list these.
  for (const name of ['.coppice/.git', 'pipe']) rmSync(join(tree.path, name), { recursive: true, force: true })
}

const vouch = ({ environment }: Subject) => trustEnvironment(world.context, world.codebase, environment)
const isTrusted = async ({ environment, number }: Subject): Promise<boolean> => {
  const ours = holder({ id: `ours${number}`, environmentId: environment.id })
  return (await resolved(world, 'thread', `ours${number}`, { holder: ours })).trusted
}
const reflog = (tree: Inside): string => join(tree.git('rev-parse', '--absolute-git-dir'), 'logs/HEAD')

test('a commit that an untrusted run made is not ours once somebody has vouched for another one there', async () => {
  const subject = await pullRequest()
  const { tree } = subject
  tree.git('switch', '-q', '-c', 'issue-50', 'origin/main')
  tree.commit('theirs', 'theirs\n')
  tree.git('switch', '-q', subject.environment.branch)
  await vouch(subject)
  expect(await isTrusted(subject)).toBe(true)
  expect((await resolved(world, 'task', 'issue-50', { branch: toBranchName('issue-50') })).environment.trust).toBe(
    'unproven',
  )
})

describe('what an untrusted run wrote into the reflog says nothing about', () => {
  const prepared: Readonly<Record<string, (tree: Inside, first: string, next: string) => unknown>> = {
    'a fast-forward, which git appends to half a line': (tree, first, next) =>
      appendFileSync(reflog(tree), `${first} ${next} a <a> 0 +0000\tcommit: x`),
    'a commit that is listed already': (tree, first, next) =>
      appendFileSync(reflog(tree), `${first} ${next} a <a> 0 +0000\tcommit: x\n`),
    'moves that the repository is set not to log': (tree) => tree.git('config', 'core.logAllRefUpdates', 'false'),
  }
  test.each(Object.entries(prepared))('%s', async (_how, prepare) => {
    const subject = await pullRequest()
    const { tree, first, next } = subject
    prepare(tree, first, next)
    await vouch(subject)
    expect(await isTrusted(subject)).toBe(true)
    tree.git('merge', '-q', '--ff-only', next)
    expect(await isTrusted(subject)).toBe(false)
    tree.tryGit('config', '--unset', 'core.logAllRefUpdates')
  })

  test('a worktree whose reflog it deleted: nobody can vouch for it', async () => {
    const subject = await pullRequest()
    rmSync(reflog(subject.tree))
    expect(await messageOf(vouch(subject))).toContain('git keeps no reflog of its HEAD')
  })
})

describe('the vouching ends', () => {
  /** How the worktree is moved, and whether it is still vouched for. */
  const moves: Readonly<Record<string, readonly [boolean, (tree: Inside, next: string, first: string) => unknown]>> = {
    'not when its branch is renamed': [true, (tree) => tree.git('branch', '-q', '-m', `renamed-${used}`)],
    'not when git gc writes the reflog again': [
      true,
      (tree) => tree.git('reflog', 'expire', '--expire=90.days', '--all'),
    ],
    'not when it was at base meanwhile': [
      true,
      (tree) => [tree.git('checkout', '-q', 'origin/main'), tree.git('switch', '-q', '-')],
    ],
    'not while base is being merged': [
      true,
      (tree) => [
        tree.commit('mine', 'mine\n'),
        tree.git('merge', '-q', '--no-ff', '--no-commit', 'origin/main'),
        tree.git('merge', '-q', '--squash', 'origin/main'),
      ],
    ],
    'when it was at the next head and came back with its files': [
      false,
      (tree, next) => [tree.git('reset', '-q', '--hard', next), tree.git('reset', '-q', '--soft', 'HEAD~')],
    ],
    'when those are committed': [
      false,
      (tree, next) => [
        tree.git('reset', '-q', '--hard', next),
        tree.git('reset', '-q', '--soft', 'HEAD~'),
        tree.git('commit', '-q', '-m', 'mine'),
      ],
    ],
    'when the next head was merged and the merge taken back': [
      false,
      (tree, next, first) => [
        tree.commit('mine', 'mine\n'),
        tree.git('merge', '-q', '--no-edit', next),
        tree.git('reset', '-q', '--soft', first),
      ],
    ],
    'when it was at an older commit of the pull request': [
      false,
      (tree, _next, first) => [tree.git('reset', '-q', '--hard', 'HEAD~'), tree.git('reset', '-q', '--hard', first)],
    ],
    'while the next head is being merged': [
      false,
      (tree, next) => tree.git('merge', '-q', '--no-ff', '--no-commit', next),
    ],
    'while the next head is being squashed': [false, (tree, next) => tree.git('merge', '-q', '--squash', next)],
    'when the reflog is deleted': [false, (tree) => rmSync(reflog(tree))],
    'when the reflog is cut': [false, (tree) => tree.git('reflog', 'expire', '--expire=all', 'HEAD')],
    'when the reflog has as many bytes, and others': [
      false,
      (tree) => writeFileSync(reflog(tree), ' '.repeat(statSync(reflog(tree)).size)),
    ],
  }
  let subject: Subject
  beforeAll(async () => {
    subject = await pullRequest()
  })
  test.each(Object.entries(moves))('%s', async (_how, [isVouched, move]) => {
    startAgain(subject)
    await vouch(subject)
    move(subject.tree, subject.next, subject.first)
    expect(await isTrusted(subject)).toBe(isVouched)
  })

  test('before teardown runs the next head’s files', async () => {
    startAgain(subject)
    const { tree, next, first, environment } = subject
    appendFileSync(reflog(tree), `${first} ${next} a <a> 0 +0000\tcommit: x`)
    await vouch(subject)
    tree.git('merge', '-q', '--ff-only', next)
    const row = await world.context.store.environments.get(environment.id)
    expect((await remove(world, row ?? environment, { force: true })).outcome).toBe('removed')
    expect(existsSync(world.box.path('stolen'))).toBe(false)
  })
})

describe('nobody vouches for files that are not in the commit', () => {
  const files: Readonly<Record<string, readonly [string, (tree: Inside) => unknown]>> = {
    'a changed file': ['1 changed (setup.sh)', (tree) => tree.write('setup.sh', 'cp .env stolen\n')],
    'a staged file': [
      '1 changed (setup.sh)',
      (tree) => [tree.write('setup.sh', 'cp .env stolen\n'), tree.git('add', 'setup.sh')],
    ],
    'a hidden change': [
      '1 changed (setup.sh)',
      (tree) => [
        tree.git('update-index', '--assume-unchanged', 'setup.sh'),
        tree.write('setup.sh', 'cp .env stolen\n'),
      ],
    ],
    'a change that a forged index hides': [
      '1 changed (setup.sh)',
      (tree) => forgeIndex(tree, 'setup.sh', 'cp .env stolen\n'),
    ],
    'a deleted file': ['1 changed (setup.sh)', (tree) => rmSync(join(tree.path, 'setup.sh'))],
    'an untracked file': ['1 untracked (CLAUDE.md)', (tree) => tree.write('CLAUDE.md', 'x')],
    'an ignored file': ['1 ignored (planted/)', (tree) => tree.write('planted/bin/tool', 'x')],
    'another .env than ours': ['1 ignored (.env)', (tree) => tree.write('.env', 'NODE_OPTIONS=--import=./x.js\n')],
    'a repository among tracked files': [
      '1 untracked (.coppice/.git)',
      (tree) => world.box.raw(tree.path, 'init', '-q', '.coppice'),
    ],
    'a FIFO': ['1 untracked (pipe)', (tree) => execFileSync('mkfifo', [join(tree.path, 'pipe')])],
    'a merge in progress': [
      'a merge is in progress',
      (tree) => tree.git('merge', '-q', '--no-ff', '--no-commit', 'side'),
    ],
  }
  let subject: Subject
  beforeAll(async () => {
    subject = await pullRequest()
    subject.tree.git('branch', 'side', subject.next)
  })

  test.each(Object.entries(files))('%s', async (_what, [reason, plant]) => {
    const { tree, environment } = subject
    startAgain(subject)
    plant(tree)
    const error = await vouch(subject).catch((caught: unknown) => caught)
    expect(messageIn(error)).toContain(`didn't trust ${environment.branch}, which has more than its commit: `)
    expect(messageIn(error)).toContain(reason)
    expect(remedyIn(error as AppError).includes('clean -ffdX')).toBe(reason.includes('ignored'))
    expect([tree.has('ran'), tree.has('stolen')]).toEqual([false, false])
    expect((await world.context.store.environments.get(environment.id))?.trust).toBe('unproven')
  })

  test('nor for what an untrusted run changes while setup runs: that run is refused', async () => {
    const { environment } = subject
    const { context, codebase } = world
    const lease = await acquireLease(context, codebase, environment, { purpose: trustPurpose })
    const { signal } = new AbortController()
    const run = trustRun(context, codebase, environment, { trusted: false, signal })
    await expect(run).rejects.toThrow(/another command is trusting \S+ \(process \d+\)/)
    await lease.release()
    expect(await trustRun(context, codebase, environment, { trusted: false, signal })).toBe(false)
  })

  test('also if the caller knows the worktree as vouched for, and an untrusted run has ended that since', async () => {
    const { environment, tree } = subject
    startAgain(subject)
    tree.write('planted/bin/tool', 'x')
    const stale: IsolatedEnvironment = { ...environment, trust: 'vouched', vouchedLog: 'of another time' }
    const error = await messageOf(trustEnvironment(world.context, world.codebase, stale))
    expect(error).toContain('1 ignored (planted/)')
  })

  test('but what Coppice and setup have put there is no obstacle', async () => {
    const { tree, environment, next } = subject
    startAgain(subject)
    tree.git('sparse-checkout', 'set', '--no-cone', '/*', '!/README')
    tree.write('.env', 'SECRET=1\n')
    await vouch(subject)
    expect([tree.has('ran'), tree.has('README')]).toEqual([true, false])
    tree.git('merge', '-q', '--ff-only', next)
    const row = await world.context.store.environments.get(environment.id)
    expect((await vouch({ ...subject, environment: row ?? environment })).wasTrusted).toBe(false)
  })
})

describe('a branch of our own is still ours', () => {
  test.each(['worktree', 'clone'] as const)('after its %s was removed and a commit was added', async (provider) => {
    await using own = await makeWorld({ remote: true, settings: { isolationProvider: provider } })
    const first = await issue(own, 1)
    const at = inside(own, first)
    at.commit('a', 'a')
    const theirs = at.git('commit-tree', '-p', 'HEAD', '-m', 'by a stranger', 'HEAD^{tree}')
    at.git('merge', '-q', '--no-ff', '-m', 'merged', theirs)
    const { restorePoint } = await removed(own, first)
    own.repo.git('switch', '-q', 'issue-1')
    own.repo.commit('b', 'b')
    own.repo.git('switch', '-q', 'main')
    const again = await resolved(own, 'issue', 1)
    expect(again.environment.trust).toBe('own')
    const later = await removed(own, again.environment)
    for (const { id, ref } of [restorePoint, later.restorePoint]) {
      await own.context.store.restorePoints.remove(id)
      own.repo.git('update-ref', '-d', ref)
    }
    const last = await resolved(own, 'issue', 1)
    expect(last.environment.trust).toBe('own')
    await removed(own, last.environment)
    // Neither with a stranger's commit on top, nor at one that was merged.
    const next = own.repo.git('commit-tree', '-p', 'issue-1', '-m', 'by a stranger', 'issue-1^{tree}')
    own.repo.git('branch', '-f', 'issue-1', provider === 'clone' ? next : theirs)
    expect((await resolved(own, 'issue', 1)).environment.trust).toBe('unproven')
  })
})
