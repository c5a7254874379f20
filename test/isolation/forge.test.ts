import { existsSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { runScheduledCleanup, type SweepOptions } from '../../src/cleanup/sweep.ts'
import { describeRemovalReason } from '../../src/commands/views/merged.ts'
import { describeNotices } from '../../src/commands/views/notices.ts'
import { asProgram } from '../../src/commands/views/view.ts'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import { toSha } from '../../src/domain/names.ts'
import { listWithFacts } from '../../src/isolation/facts.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { rememberMerge } from '../../src/isolation/merge-proof/merged-on-forge.ts'
import { createForge } from '../../src/main/forge.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { type GithubDouble, startDouble } from '../platforms/github-double.ts'
import { ask, branchExists, inside, issue, remove, resolved } from './scene.ts'

/* Squash merges with edits on the way: git has no proof, and GitHub does. */

let double: GithubDouble
let world: World
let token: string | undefined
beforeEach(async () => {
  double = await startDouble()
  token = 'ghp_x'
  const made = await makeWorld({ remote: true, settings: { holdMergedHours: 0 } })
  const { log, clock, secrets } = made.context
  const settings = async () => ({ apiUrl: double.url, ...(token !== undefined && { token }) })
  const context = { ...made.context, forge: createForge(settings, { log, clock, secrets }) }
  const codebase = { ...made.codebase, github: 'acme/app' }
  await context.store.codebases.update(codebase.id, { github: 'acme/app' })
  world = { ...made, context, codebase, provider: createEnvironments(context) }
})
afterEach(async () => {
  await world[Symbol.asyncDispose]()
  await double.close()
})

const sweep = (options?: SweepOptions) => runScheduledCleanup(world.context, world.provider, world.codebase, options)
const branches = (rows: readonly { environment: IsolatedEnvironment }[]): string[] =>
  rows.map(({ environment }) => environment.branch).toSorted()

const own = { full_name: 'acme/app' }

/** What a pull request's merge leaves: an edited squash on origin's main, and GitHub's word for it. */
const land = (environment: IsolatedEnvironment, number: number, more: object = {}): void => {
  const { branch } = environment
  const sha = inside(world, environment).git('rev-parse', 'HEAD')
  world.repo.commit(`from-${number}`, `edited\n`, `Squash of ${branch} (#${number})`)
  world.repo.git('push', '-q', 'origin', 'main')
  double.pulls.set(`acme/app#${number}`, {
    number,
    merged: true,
    merge_commit_sha: world.repo.sha('main'),
    head: { ref: branch, sha, repo: own },
    base: { ref: 'main', repo: own },
    ...more,
  })
}

const worked = async (number: number): Promise<IsolatedEnvironment> => {
  const environment = await issue(world, number)
  inside(world, environment).commit(`of-${number}`, `${number}\n`)
  return environment
}

test('the sweep asks GitHub once about all that git leaves open; what it merged goes like anything else', async () => {
  const landed = await worked(1)
  const closed = await worked(2)
  const dirty = await worked(3)
  await issue(world, 4)
  land(landed, 11)
  land(closed, 12, { merged: false })
  land(dirty, 13)
  inside(world, dirty).write('notes', 'mine\n')

  const dry = await sweep({ dryRun: true })
  expect([branches(dry.removed), existsSync(landed.path)]).toEqual([['issue-1'], true])
  expect(double.queries).toHaveLength(1)
  const report = await sweep()
  expect(branches(report.removed)).toEqual(['issue-1'])
  expect(report.removed.map(({ why, branchDeleted }) => [describeRemovalReason(why), branchDeleted])).toEqual([
    ['merged: PR #11 on GitHub', true],
  ])
  expect(report.skipped.map(({ environment, reasons }) => [environment.branch, reasons[0]?.gate])).toEqual([
    ['issue-3', 'nothing-uncommitted'],
  ])
  // Only the one without an answer is asked about again.
  expect(double.queries).toHaveLength(2)
  expect(double.queries[1]).not.toContain('q1:')
  const facts = await listWithFacts(world.context, world.codebase)
  expect(facts.map(({ environment, merged }) => [environment.branch, merged.value])).toEqual([
    ['issue-2', 'no'],
    ['issue-3', 'yes'],
    ['issue-4', 'empty'],
  ])
  expect(double.queries).toHaveLength(2)

  // Its commits are not lost.
  expect(branchExists(world, 'issue-1')).toBe(false)
  const [point] = await world.context.store.restorePoints.list(world.codebase.id)
  if (point === undefined) throw new Error('no restore point')
  const { environment: back } = await world.provider.restore(point)
  expect(inside(world, back).read('of-1')).toBe('1\n')

  await remove(world, closed, { force: true })
  await remove(world, dirty, { force: true })
  await remove(world, back, { force: true })
  // Somebody's own worktree stays, whatever GitHub would say.
  const adopted = world.repo.worktree('theirs', '-b', 'theirs')
  await world.provider.adopt(world.codebase, adopted.path, { createdBy: 'test', aliases: [] })
  inside(world, adopted).commit('theirs', 'x\n')
  await sweep()
  expect(double.queries).toHaveLength(2)
})

test('a pull request is asked for by its number, whatever tree it shares and wherever it comes from', async () => {
  const shared = await worked(1)
  await resolved(world, 'pr', 21, { hints: { prBranch: 'elsewhere', isForkPR: false, linkedIssues: [1] } })
  land(shared, 21, { head: { ref: 'elsewhere', sha: world.repo.sha('issue-1'), repo: own } })
  world.repo.git('checkout', '-q', '-b', 'forked')
  const sha = world.repo.commit('theirs', 'theirs\n')
  world.repo.git('push', '-q', 'origin', 'HEAD:refs/pull/22/head')
  world.repo.git('checkout', '-q', 'main')
  const hints = { prBranch: 'main', prSha: sha, isForkPR: true }
  const { environment: review } = await resolved(world, 'pr', 22, { hints })
  land(review, 22, { head: { ref: 'main', sha, repo: { full_name: 'mallory/app' } } })
  expect(branches((await sweep()).removed)).toEqual(['issue-1', 'pr-22-review'])
  expect(double.queries).toHaveLength(1)
})

test('nothing is asked without credentials or on a stale base, and silence keeps what git cannot prove', async () => {
  const environment = await worked(1)
  land(environment, 11)
  token = undefined
  expect(await sweep()).toMatchObject({ removed: [], notices: [] })
  expect(double.requests).toEqual([])
  const settings = async () => ({ apiUrl: double.url, token: 'ghp_x' })
  const context = { ...world.context, forge: createForge(settings, world.context) }
  double.trouble = () => ({ status: 503, body: { message: 'Unavailable' } })
  const silent = await runScheduledCleanup(context, world.provider, world.codebase)
  expect(silent.removed).toEqual([])
  expect(describeNotices(silent.notices, asProgram)[0]).toMatch(
    /^GitHub didn't say which pull requests were merged \(.*Unavailable.*\); what git can't prove is kept$/,
  )
  double.trouble = undefined
  const asked = double.requests.length
  world.repo.git('remote', 'set-url', 'origin', world.box.path('nowhere'))
  expect((await runScheduledCleanup(context, world.provider, world.codebase)).removed).toEqual([])
  expect(double.requests).toHaveLength(asked)
})

test('room is made by what GitHub merged', async () => {
  const environment = await worked(1)
  land(environment, 11)
  const context = { ...world.context, settings: { ...world.context.settings, worktreesPerCodebase: 1 } }
  const full: World = { ...world, context, provider: createEnvironments(context) }
  expect(await ask(full, 'issue', 2)).toMatchObject({ outcome: 'resolved', how: 'created' })
  expect(existsSync(environment.path)).toBe(false)
})

test('a merge event is remembered if an environment may wait for it, and proves it without a question', async () => {
  const environment = await worked(1)
  land(environment, 11)
  const { mergedPullRequests } = world.context.store
  const headSha = world.repo.sha('issue-1')
  const mergeCommit = world.repo.sha('main')
  const event = { forge: 'GitHub', repository: 'ACME/app', number: 11, headSha, mergeCommit, baseBranch: 'main' }
  await rememberMerge(world.context, { ...event, headBranch: 'other' })
  await rememberMerge(world.context, { ...event, repository: 'other/app', headBranch: 'issue-1' })
  await rememberMerge(world.context, event)
  expect(await mergedPullRequests.find(world.codebase.id, [headSha])).toEqual([])
  await rememberMerge(world.context, { ...event, headBranch: 'issue-1' })
  await rememberMerge(world.context, { ...event, headSha: toSha('c'.repeat(40)), headBranch: 'issue-1' })
  expect(await mergedPullRequests.find(world.codebase.id, [headSha])).toEqual([event])
  expect(branches((await sweep()).removed)).toEqual(['issue-1'])
  expect(double.requests).toEqual([])
})
