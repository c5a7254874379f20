import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { primerText } from '../../src/commands/views/primer.ts'
import { asProgram } from '../../src/commands/views/view.ts'
import { chooseFormula } from '../../src/fleet/formulas/choose.ts'
import { closeItem } from '../../src/fleet/items/close.ts'
import { land } from '../../src/fleet/landing/land.ts'
import { watchPullRequests } from '../../src/fleet/landing/pull-requests.ts'
import { type QueueOutcome, workQueue } from '../../src/fleet/landing/queue.ts'
import { primeAgent } from '../../src/fleet/prime.ts'
import { createGithubForge } from '../../src/platforms/github/forge/forge.ts'
import { createLogger } from '../../src/process/log.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'
import { type GithubDouble, startDouble } from '../platforms/github-double.ts'
import { assertHooksAgree, type FleetWorld } from '../helpers/fleet.ts'
import {
  landingWorld,
  runs,
  work,
  origin,
  assertClean,
  type AtWork,
  atWork,
  commitIn,
  finish,
  latest,
  kinds,
} from '../helpers/landing.ts'

const view = { ...asProgram, now: 0 }

describe("an item's work", () => {
  test('that lands settles the item, and removes its worktree and branch', async () => {
    await using world = await landingWorld()
    const { agent, environment, item } = await atWork(world, 'a')
    await finish(world, agent)
    expect(await work(world)).toEqual({ outcome: 'done', left: false })
    expect(await world.item(item)).toMatchObject({ state: 'landed', environmentId: undefined })
    expect(existsSync(environment.path)).toBe(false)
    expect(world.repo.git('branch', '--list', environment.branch)).toBe('')
    expect(origin(world, 'log', '-1', '--format=%s', 'main')).toBe('Write a')
    expect(kinds(world)).toEqual(['started', 'queued', 'landed'])
    await assertHooksAgree(world)
    await assertClean(world)
  })

  test('that is red goes back to an agent in the same worktree with the log, twice, and is parked then', async () => {
    await using world = await landingWorld()
    const { agent, environment, item } = await atWork(world, 'red-a')
    await finish(world, agent)
    let last = agent
    for (const file of ['b', 'c']) {
      expect(await work(world)).toEqual({ outcome: 'done', left: false })
      expect(await world.item(item)).toMatchObject({ state: 'hooked', environmentId: environment.id })
      const [again = expect.unreachable('nobody was started')] = await world.context.store.fleetAgents.ofItems([item])
      expect([again.name, again.environmentId, again.spawn === last.spawn]).toEqual([agent.name, environment.id, false])
      const primer = await primeAgent(world.fleet, { agent: again.name, spawn: again.spawn })
      const { log = '' } = (await latest(world)).gate ?? {}
      expect('agent' in primer && primerText(primer, view)).toContain(`failed (log: ${log})`)
      commitIn(world, environment, file)
      await finish(world, again)
      last = again
    }
    await work(world)
    expect(await world.item(item)).toMatchObject({ state: 'parked', parked: { kind: 'gate-failed', attempts: 3 } })
    expect(existsSync(environment.path)).toBe(true)
    expect(kinds(world).filter((kind) => kind === 'sent-back' || kind === 'parked')).toEqual([
      'sent-back',
      'sent-back',
      'parked',
    ])
    await assertHooksAgree(world)
    // A person mends it, and lands it.
    world.box.raw(environment.path, 'rm', '-q', 'red-a')
    world.box.raw(environment.path, 'commit', '-qm', 'mend')
    const landed = await land(world.fleet, world.codebase, { what: { item: await world.item(item) }, by: 'cli' })
    expect(landed).toMatchObject({ outcome: 'queued' })
    await work(world)
    expect(await world.item(item)).toMatchObject({ state: 'landed' })
  })

  test('does not lose a commit that was made after it was queued, although its worktree is clean', async () => {
    await using world = await landingWorld()
    const { agent, environment, item } = await atWork(world, 'a')
    await finish(world, agent)
    commitIn(world, environment, 'later')
    await work(world)
    expect(await world.item(item)).toMatchObject({ state: 'landed' })
    expect(origin(world, 'ls-tree', '--name-only', 'main').split('\n')).not.toContain('later')
    expect(world.repo.git('log', '-1', '--format=%s', environment.branch)).toBe('Write later')
  })

  test('that conflicts waits for a person at once if the repository says so', async () => {
    await using world = await landingWorld({ returns: 0 })
    const { agent, item } = await atWork(world, 'shared.txt', 'mine\n')
    world.repo.commit('shared.txt', 'theirs\n')
    world.repo.git('push', '-q', 'origin', 'main')
    await finish(world, agent)
    await work(world)
    expect(await world.item(item)).toMatchObject({ state: 'parked', parked: { kind: 'conflict', attempts: 1 } })
  })

  test('that was sent back waits for room in the fleet instead of a person', async () => {
    await using world = await landingWorld()
    const { agent, item } = await atWork(world, 'red-a')
    await finish(world, agent)
    const { store, host } = world.context
    await store.fleetControl.set(host, { state: 'paused', why: 'mass death', since: 1 })
    expect(await work(world)).toEqual({ outcome: 'done', left: true })
    expect(await world.item(item)).toMatchObject({ state: 'in_review' })
    await store.fleetControl.set(host, { state: 'down', why: 'evening', since: 2 })
    expect(await work(world)).toEqual({ outcome: 'fleet-down' })
    await store.fleetControl.set(host, { state: 'up', why: 'morning', since: 3 })
    expect(await work(world)).toEqual({ outcome: 'done', left: false })
    expect(await world.item(item)).toMatchObject({ state: 'hooked' })
  })

  test('does not land while its agent is still finishing, or once the item was closed', async () => {
    await using world = await landingWorld()
    const { agent, item } = await atWork(world, 'a')
    const { context: isolation } = world
    const early: QueueOutcome[] = []
    const failpoint = async (name: string): Promise<void> => {
      if (name === 'formula.enqueue.done' || name === 'leave.session') early.push(await work(world))
    }
    await finish({ ...world, fleet: { ...world.fleet, isolation: { ...isolation, failpoint } } }, agent)
    expect(early).toEqual([1, 2].map(() => ({ outcome: 'done', left: true })))
    expect(await latest(world)).toMatchObject({ state: 'queued' })
    await closeItem(world.fleet, item, 'cli')
    expect(await latest(world)).toMatchObject({ state: 'superseded' })
    expect(await work(world)).toEqual({ outcome: 'done', left: false })
    expect(origin(world, 'ls-tree', '--name-only', 'main').split('\n')).not.toContain('a')
  })

  test('is not pushed if it was closed while it was tested', async () => {
    await using world = await landingWorld()
    const { agent, item } = await atWork(world, 'a')
    await finish(world, agent)
    const failpoint = async (name: string): Promise<void> => {
      if (name === 'landing.gates') await closeItem(world.fleet, item, 'cli')
    }
    const closing = { ...world.fleet, isolation: { ...world.context, failpoint } }
    expect(await workQueue(closing, world.codebase)).toEqual({ outcome: 'done', left: false })
    expect(await latest(world)).toMatchObject({ state: 'superseded', landedSha: undefined })
    expect(origin(world, 'ls-tree', '--name-only', 'main').split('\n')).not.toContain('a')
    expect(await world.item(item)).toMatchObject({ state: 'closed' })
    await assertClean(world)
  })

  test('done: auto lands it where landing is configured and pull requests are not possible', async () => {
    await using world = await landingWorld()
    expect(await chooseFormula(world.fleet, world.codebase, 'auto')).toMatchObject({ name: 'land' })
    world.repo.git('rm', '-q', '.coppice/config.yaml')
    world.repo.git('commit', '-qm', 'no landing')
    world.repo.git('push', '-q', 'origin', 'main')
    expect(await chooseFormula(world.fleet, world.codebase, 'auto')).toMatchObject({ name: 'push' })
  })
})

describe('a pull request that `done` opened', () => {
  type Reviewed = AtWork & { readonly world: FleetWorld; readonly double: GithubDouble; readonly number: number }

  const withForge = async (check: (world: FleetWorld, double: GithubDouble) => Promise<void>): Promise<void> => {
    const double = await startDouble()
    try {
      const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })
      const parts = { log, clock: Date.now, secrets: createSecrets() }
      const forge = createGithubForge({ token: 'ghp_x', apiUrl: double.url }, parts, { timeoutMs: 10_000 })
      await using world = await landingWorld({}, { context: { forge } })
      await world.context.store.codebases.update(world.codebase.id, { github: 'acme/app' })
      double.branches = () => origin(world, 'for-each-ref', '--format=%(refname:short)', 'refs/heads').split('\n')
      await check(world, double)
    } finally {
      await double.close()
    }
  }

  const reviewed = (file: string, check: (reviewed: Reviewed) => Promise<void>): Promise<void> =>
    withForge(async (world, double) => {
      const at = await atWork(world, file)
      await finish(world, at.agent, 'pr')
      const { pullRequest = '' } = await world.item(at.item)
      await check({ ...at, world, double, number: Number(pullRequest.split('/').at(-1)) })
    })

  /** As GitHub would squash it. */
  const merge = (it: Reviewed, { push = true } = {}): string => {
    const { world, environment } = it
    const head = origin(world, 'rev-parse', environment.branch)
    const main = origin(world, 'rev-parse', 'main')
    const commit = world.repo.git('commit-tree', '-p', main, '-m', 'Squashed', `${head}^{tree}`)
    if (push) world.repo.git('push', '-q', 'origin', `${commit}:main`)
    setPull(it, { state: 'closed', merged: true, merge_commit_sha: commit })
    return commit
  }

  const setPull = ({ world, double, number, environment }: Reviewed, change: object): void => {
    const repo = { full_name: 'acme/app' }
    const head = { ref: environment.branch, sha: origin(world, 'rev-parse', environment.branch), repo }
    double.pulls.set(`acme/app#${number}`, { number, state: 'open', head, base: { ref: 'main', repo }, ...change })
  }

  const watched = async ({ world }: Reviewed): Promise<QueueOutcome> => {
    const codebase = (await world.context.store.codebases.get(world.codebase.id)) ?? world.codebase
    await watchPullRequests(world.fleet, codebase)
    await watchPullRequests(world.fleet, codebase)
    return work(world)
  }

  test('is tested once on the merged result; then its item has landed and its worktree is gone', async () => {
    await reviewed('a', async (it) => {
      const { world, item, environment } = it
      setPull(it, {})
      await watched(it)
      expect([(await world.item(item)).state, runs(world)]).toEqual(['in_review', 0])
      const commit = merge(it)
      expect(await watched(it)).toEqual({ outcome: 'done', left: false })
      expect(await world.item(item)).toMatchObject({ state: 'landed' })
      expect(await latest(world)).toMatchObject({ state: 'landed', landedSha: commit, gate: { exitCode: 0 } })
      expect([existsSync(environment.path), runs(world)]).toEqual([false, 1])
      expect(kinds(world)).toEqual(['started', 'pull-request', 'landed'])
      expect(await world.context.store.landings.list({ limit: 9 })).toHaveLength(1)
      await assertClean(world)
    })
  })

  test('is red after the merge: its item waits for a person, and nothing is reverted', async () => {
    await reviewed('red-a', async (it) => {
      const { world, item, environment } = it
      const commit = merge(it)
      await watched(it)
      await watched(it)
      expect(await world.item(item)).toMatchObject({ state: 'parked', parked: { kind: 'gate-failed', attempts: 1 } })
      expect(origin(world, 'rev-parse', 'main')).toBe(commit)
      expect([existsSync(environment.path), runs(world)]).toEqual([true, 1])
      expect(kinds(world)).toEqual(['started', 'pull-request', 'parked'])
    })
  })

  test('counts as merged only if the remote has the merge', async () => {
    await reviewed('a', async (it) => {
      const { world, item, environment } = it
      merge(it, { push: false })
      await watched(it)
      expect(await world.item(item)).toMatchObject({ state: 'parked', parked: { kind: 'formula-failed' } })
      expect([existsSync(environment.path), runs(world)]).toEqual([true, 0])
    })
  })

  test('closes the issue of an item that landed without one', async () => {
    await withForge(async (world, double) => {
      double.issue(5)
      const source = { kind: 'github', repository: 'acme/app', number: 5 } as const
      const { agent } = await atWork(world, 'a', '', { source })
      await finish(world, agent)
      double.trouble = (request) => (request.startsWith('PATCH') ? { status: 502 } : undefined)
      expect(await work(world)).toEqual({ outcome: 'done', left: true })
      expect(double.issues.get('acme/app#5')).toMatchObject({ state: 'open' })
      double.trouble = undefined
      expect(await work(world)).toEqual({ outcome: 'done', left: false })
      expect(double.issues.get('acme/app#5')).toMatchObject({ state: 'closed' })
      const { landedSha } = await latest(world)
      expect(double.bodies('acme/app#5').filter((body) => body.includes(`Landed as ${landedSha}`))).toHaveLength(1)
    })
  })

  test('is closed without a merge: its item waits for a person', async () => {
    await reviewed('a', async (it) => {
      const { world, item, environment } = it
      setPull(it, { state: 'closed' })
      await watched(it)
      expect(await world.item(item)).toMatchObject({ state: 'parked', parked: { kind: 'pull-request-closed' } })
      expect(existsSync(environment.path)).toBe(true)
      // It is reopened and merged after all.
      merge(it)
      await watched(it)
      expect(await world.item(item)).toMatchObject({ state: 'landed' })
    })
  })
})
