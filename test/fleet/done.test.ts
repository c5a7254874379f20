import { execFileSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { toAppError } from '../../src/domain/errors.ts'
import type { FleetAgent } from '../../src/domain/fleet/agent.ts'
import { needsPerson } from '../../src/domain/fleet/needs-person.ts'
import { stepName } from '../../src/domain/fleet/formula.ts'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import { describeNeed, needRemedies } from '../../src/commands/views/agents.ts'
import { resultJson, resultNotes } from '../../src/commands/views/items.ts'
import { explainDone } from '../../src/commands/views/fleet-refusals.ts'
import type { FleetContext } from '../../src/fleet/context.ts'
import { runRows } from '../../src/fleet/patrol/run-rows.ts'
import { unfinishedFormula } from '../../src/fleet/patrol/rows/unfinished-formula.ts'
import { done, type DoneRequest } from '../../src/fleet/formulas/done.ts'
import { readAgentFile } from '../../src/fleet/agent-file.ts'
import { sling } from '../../src/fleet/sling/sling.ts'
import { fleetStatus } from '../../src/fleet/status.ts'
import { treeOf } from '../../src/fleet/tree.ts'
import { mayRunChecks } from '../../src/isolation/codebases/formulas.ts'
import { addCodebase, resolveCodebase } from '../../src/isolation/codebases/codebases.ts'
import { agentDirectory } from '../../src/fleet/sessions/paths.ts'
import { liveness } from '../../src/process/identity.ts'
import { launchingWith } from '../helpers/launching.ts'
import { assertHooksAgree, type FleetWorld, type FleetWorldOptions, makeFleetWorld } from '../helpers/fleet.ts'

const finishFormulas = async (fleet: FleetContext) => (await runRows(fleet, [unfinishedFormula])).findings

type AtWork = { readonly agent: FleetAgent; readonly environment: IsolatedEnvironment; readonly item: number }

const atWork = async (world: FleetWorld, { commit = true } = {}): Promise<AtWork> => {
  const item = await world.addItem('Fix login')
  const result = await sling(world.fleet, { item: item.id, by: 'cli' })
  if (result.outcome !== 'started') throw new Error(`not started: ${JSON.stringify(result)}`)
  const { agent, environment } = result
  if (commit) {
    writeFileSync(join(environment.path, 'login.txt'), 'fixed\n')
    world.box.raw(environment.path, 'add', 'login.txt')
    world.box.raw(environment.path, 'commit', '-qm', 'Fix the login')
  }
  return { agent, environment, item: item.id }
}

const finish = (world: FleetWorld, { agent }: AtWork, change: Partial<DoneRequest> = {}) =>
  done(world.fleet, { agent: agent.name, spawn: agent.spawn, ...change })

const steps = (result: Awaited<ReturnType<typeof done>>): string[] =>
  'run' in result ? result.run.steps.map(({ step, state }) => `${stepName(step)} ${state}`) : []

/** The commands of the shell that a refusal names. */
const remedies = (result: Awaited<ReturnType<typeof done>>): string[] =>
  (result.outcome === 'refused' ? result.why : [])
    .flatMap((why) => explainDone(why, view).todo)
    .flatMap((one) => (typeof one === 'string' ? [] : one))
    .flatMap((part) => (typeof part === 'object' && part.of === 'shell' ? [part.command] : []))

const view = {
  paint: (_style: string, text: string) => text,
  now: 0,
  userHome: undefined,
  commandText: (words: string) => `coppice ${words}`,
  columns: undefined,
}

const isGone = async (world: FleetWorld, { agent }: AtWork): Promise<void> => {
  expect(liveness(agent.session?.root ?? { pid: 0, startTime: '' })).toBe('dead')
  expect((await world.context.store.fleetAgents.get(agent.id))?.state).toBe('gone')
  expect(existsSync(agentDirectory(world.context.home, agent.name))).toBe(false)
  await assertHooksAgree(world)
}

describe('done', () => {
  test('push: the branch is on the remote, the item is closed, the agent and its worktree are gone', async () => {
    await using world = await makeFleetWorld({ remote: true, pools: [{ done: 'push' }] })
    const work = await atWork(world)
    const result = await finish(world, work)
    expect(result).toMatchObject({ outcome: 'done', run: { formula: 'push', branch: work.environment.branch } })
    expect(steps(result).every((line) => line.endsWith(' done'))).toBe(true)
    expect('run' in result && resultNotes(result.run)).toEqual(['branch kept: 1 commit not on main'])
    const there = world.box.raw(world.box.path('origin.git'), 'rev-parse', `refs/heads/${work.environment.branch}`)
    expect('run' in result && result.run.sha).toBe(there)
    expect(await world.item(work.item)).toMatchObject({ state: 'closed', environmentId: undefined })
    expect(existsSync(work.environment.path)).toBe(false)
    // Its branch has a commit that main doesn't have.
    expect(world.repo.git('branch', '--list', work.environment.branch)).not.toBe('')
    expect(world.told.map(({ kind }) => kind)).toEqual(['started', 'pushed', 'closed'])
    await isGone(world, work)
  })

  test('without a remote, nothing is pushed and the branch stays', async () => {
    await using world = await makeFleetWorld({})
    const work = await atWork(world)
    const result = await finish(world, work)
    expect(steps(result)).toContain('push skipped')
    if (!('run' in result)) throw new Error('it has no run')
    const { run } = result
    expect(resultNotes(run)).toEqual(['not pushed: the repository has no remote', 'branch kept: 1 commit not on main'])
    expect(resultJson(run)).toMatchObject({ branch: work.environment.branch, pushed: false })
    expect(await world.item(work.item)).toMatchObject({ state: 'closed' })
    expect(world.told.map(({ kind }) => kind)).toEqual(['started', 'not-pushed', 'closed'])
    expect(world.repo.git('log', '-1', '--format=%s', work.environment.branch)).toBe('Fix the login')
    await isGone(world, work)
  })

  test('a remote that was added meanwhile gets nothing until a person has confirmed it', async () => {
    await using world = await makeFleetWorld({})
    const work = await atWork(world)
    const { path, branch } = work.environment
    const origin = world.box.bare('origin.git').path
    const why = async (): Promise<unknown> => {
      const result = await finish(world, work)
      expect(result).toMatchObject({ outcome: 'refused', step: 'push', why: [{ kind: 'not-published' }] })
      expect(await world.item(work.item)).toMatchObject({ state: 'hooked' })
      return 'why' in result && Array.isArray(result.why) && result.why[0]?.why
    }
    const needs = async (): Promise<readonly (readonly [string, readonly unknown[]])[]> =>
      (await fleetStatus(world.fleet)).needsYou.map((need) => [describeNeed(need), needRemedies(need).flat()])
    world.box.raw(path, 'remote', 'add', 'one', origin)
    world.box.raw(path, 'remote', 'add', 'two', origin)
    expect(await why()).toEqual({ kind: 'remote-ambiguous', remotes: ['one', 'two'] })
    expect(await needs()).toEqual([[expect.stringContaining('one, two'), expect.anything()]])
    world.box.raw(path, 'remote', 'rename', 'two', 'origin')
    const repository = world.repo.path
    expect(await why()).toEqual({ kind: 'remote-unconfirmed', remote: 'origin', url: origin, repository })
    const confirm = { of: 'coppice', command: `codebase add ${repository}` }
    expect(await needs()).toEqual([[expect.stringContaining('origin'), expect.arrayContaining([confirm])]])
    // The agent's own commands confirm nothing.
    const asAgent = { ...world.context, ownEnvironment: { COPPICE_RUN: 'agent.a' } }
    expect(await resolveCodebase(asAgent, { cwd: path })).toMatchObject({ remote: undefined })
    expect(await why()).toMatchObject({ kind: 'remote-unconfirmed' })
    expect(world.box.raw(origin, 'for-each-ref')).toBe('')
    // Once for each reason, not for each attempt.
    const refusals = world.told.filter((event) => event.kind === 'refused')
    expect(refusals.map(({ why: one }) => one.kind === 'not-published' && one.why.kind)).toEqual([
      'remote-ambiguous',
      'remote-unconfirmed',
    ])
    expect(refusals.map(needsPerson)).toEqual([true, true])
    await addCodebase(world.context, repository, '/')
    expect(await needs()).toEqual([])
    expect(await finish(world, work)).toMatchObject({ outcome: 'done' })
    expect(world.box.raw(origin, 'log', '-1', '--format=%s', branch)).toBe('Fix the login')
  })

  test('land: the branch is queued, and the worktree stays until it has landed', async () => {
    await using world = await makeFleetWorld({ remote: true })
    const work = await atWork(world)
    expect(await finish(world, work, { mode: 'land' })).toMatchObject({ outcome: 'done' })
    const [landing] = await world.context.store.landings.list({ limit: 5 })
    expect(landing).toMatchObject({ itemId: work.item, branch: work.environment.branch, state: 'queued' })
    expect(await world.item(work.item)).toMatchObject({ state: 'in_review', environmentId: work.environment.id })
    expect(existsSync(work.environment.path)).toBe(true)
    expect(world.told.map(({ kind }) => kind)).toEqual(['started', 'queued'])
    // Without the database, nobody would start with it again.
    const { gitDir } = await treeOf(world.context, world.codebase, work.environment)
    expect(readAgentFile({ gitDir })?.item?.state).toBe('in_review')
    const outcome = await world.provider.destroy(work.environment, { trigger: 'merged' })
    expect(outcome).toMatchObject({ outcome: 'refused', reasons: [{ fact: { kind: 'item', id: work.item } }] })
    await isGone(world, work)
  })

  test.each([
    [false, 'open'],
    [true, 'closed'],
  ])('discard (--close: %s): the item is %s, and what was there can be restored', async (close, state) => {
    await using world = await makeFleetWorld({ remote: true })
    const work = await atWork(world)
    writeFileSync(join(work.environment.path, 'half.txt'), 'not committed\n')
    expect(await finish(world, work, { mode: 'discard', close })).toMatchObject({ outcome: 'done' })
    expect(await world.item(work.item)).toMatchObject({ state, environmentId: undefined })
    expect(existsSync(work.environment.path)).toBe(false)
    const [point] = await world.context.store.restorePoints.list(world.codebase.id)
    const restored = point && (await world.provider.restore(point))
    expect(existsSync(join(restored?.environment.path ?? '', 'half.txt'))).toBe(true)
    await isGone(world, work)
  })

  test.each<[string, (world: FleetWorld, work: AtWork) => void, string]>([
    ['a changed file', (_, { environment }) => writeFileSync(join(environment.path, 'README'), 'x'), 'uncommitted'],
    ['an untracked file', (_, { environment }) => writeFileSync(join(environment.path, 'new'), 'x'), 'uncommitted'],
    [
      'another branch',
      ({ box }, { environment }) => void box.raw(environment.path, 'checkout', '-qb', 'other'),
      'other-branch',
    ],
  ])('%s is refused before anything happens, and the agent works on', async (_, disturb, kind) => {
    await using world = await makeFleetWorld({ remote: true })
    const work = await atWork(world)
    disturb(world, work)
    const result = await finish(world, work)
    expect(result).toMatchObject({ outcome: 'refused', step: 'validate', why: [{ kind }] })
    expect(world.box.raw(world.box.path('origin.git'), 'branch', '--list', 'agent/*')).toBe('')
    expect((await world.context.store.fleetAgents.get(work.agent.id))?.state).toBe('working')
    expect(await world.item(work.item)).toMatchObject({ state: 'hooked' })
    expect(liveness(work.agent.session?.root ?? { pid: 0, startTime: '' })).toBe('alive')
    await assertHooksAgree(world)
  })

  test('nothing committed is refused, and so is a command of an earlier life or of nobody', async () => {
    await using world = await makeFleetWorld({ remote: true })
    const work = await atWork(world, { commit: false })
    expect(await finish(world, work)).toMatchObject({ outcome: 'refused', why: [{ kind: 'no-commits' }] })
    expect(await finish(world, work, { spawn: 'another' })).toEqual({
      outcome: 'not-started',
      why: { kind: 'other-life', agent: 'alder' },
    })
    expect(await finish(world, work, { agent: undefined })).toEqual({
      outcome: 'not-started',
      why: { kind: 'no-agent' },
    })
  })

  test('commits on another branch or on none are refused, with a command that brings them along from anywhere', async () => {
    await using world = await makeFleetWorld({ remote: true, pools: [{ done: 'push' }] })
    const work = await atWork(world, { commit: false })
    const { path, branch } = work.environment
    for (const elsewhere of [
      ['switch', '-q', '--detach'],
      ['switch', '-qc', 'it-s-mine'],
    ] as const) {
      world.box.raw(path, ...elsewhere)
      world.box.raw(path, 'commit', '-q', '--allow-empty', '-m', elsewhere[2])
      const refused = await finish(world, work)
      expect(refused).toMatchObject({ outcome: 'refused', why: [{ kind: 'other-branch', branch }] })
      const todo = remedies(refused)
      expect(todo).toHaveLength(1)
      for (const command of todo) execFileSync('sh', ['-c', command], { cwd: world.box.root, stdio: 'pipe' })
    }
    expect(await finish(world, work)).toMatchObject({ outcome: 'done' })
    expect(world.repo.git('log', '-2', '--format=%s', `origin/${branch}`)).toBe('it-s-mine\n--detach')
  })

  test('a push that the remote rejects is refused, and works once it is mended', async () => {
    await using world = await makeFleetWorld({ remote: true })
    const work = await atWork(world)
    const other = world.repo.git('commit-tree', '-p', 'main', '-m', 'theirs', 'main^{tree}')
    world.repo.git('push', '-q', 'origin', `${other}:refs/heads/${work.environment.branch}`)
    expect(await finish(world, work)).toMatchObject({
      outcome: 'refused',
      step: 'push',
      why: [{ kind: 'not-published', why: { kind: 'rejected', why: 'behind' } }],
    })
    expect((await world.context.store.fleetAgents.get(work.agent.id))?.state).toBe('working')
    world.box.raw(work.environment.path, 'merge', '-q', '--no-edit', '--allow-unrelated-histories', other)
    expect(await finish(world, work)).toMatchObject({ outcome: 'done' })
    await isGone(world, work)
  })

  test.each([
    ['before', 'formula.validate.effect', 'refused'],
    ['after', 'formula.intent.done', 'done'],
  ])('one that died %s the intent is %s', async (_, at, outcome) => {
    await using world = await makeFleetWorld({ remote: true })
    const work = await atWork(world)
    const { context: isolation } = world
    const failpoint = async (name: string): Promise<void> => {
      if (name === at) throw new Error('died')
    }
    const dying: FleetWorld = { ...world, fleet: { ...world.fleet, isolation: { ...isolation, failpoint } } }
    await expect(finish(dying, work, { mode: 'land' })).rejects.toThrow('died')
    expect(await finishFormulas({ ...world.fleet, isolation: { ...isolation, host: 'another' } })).toEqual([])
    expect(await finishFormulas(world.fleet)).toMatchObject([{ outcome }])
    const isDone = outcome === 'done'
    const pushed = world.box.raw(world.box.path('origin.git'), 'branch', '--list', 'agent/*')
    expect(pushed !== '').toBe(isDone)
    expect(await world.item(work.item)).toMatchObject({ state: isDone ? 'in_review' : 'hooked' })
    expect(await finishFormulas(world.fleet)).toEqual([])
    // The agent decides anew, also how.
    const again = isDone ? undefined : await finish(world, work, { mode: 'push' })
    expect(again === undefined ? undefined : steps(again)).toEqual(
      isDone ? undefined : ['validate', 'intent', 'push', 'notify', 'settle', 'leave'].map((name) => `${name} done`),
    )
    await isGone(world, work)
  })

  test('done twice is done once', async () => {
    await using world = await makeFleetWorld({ remote: true })
    const work = await atWork(world)
    expect(await finish(world, work)).toMatchObject({ outcome: 'done' })
    expect(await finish(world, work)).toMatchObject({ outcome: 'not-started', why: { kind: 'other-life' } })
    expect(world.told.filter(({ kind }) => kind === 'closed')).toHaveLength(1)
  })
})

const withFormula = (text: string, options: FleetWorldOptions = {}): FleetWorldOptions => ({
  remote: true,
  pools: [{ done: 'release' }],
  prepare: (repo) => void repo.commit('.coppice/formulas/release.yaml', text),
  ...options,
})

describe("a repository's formula", () => {
  const formula =
    'steps:\n  - validate\n  - intent\n  - run: test -f login.txt && echo checked\n  - push\n  - notify\n  - settle\n  - leave\n'

  test('runs its commands as the provider starts programs, once a person has approved them', async () => {
    const command = 'test -f login.txt && test "$LAUNCHED" = yes'
    await using world = await makeFleetWorld(
      withFormula(formula.replace('test -f login.txt && echo checked', command), {
        context: { providers: launchingWith('LAUNCHED=yes') },
      }),
    )
    const work = await atWork(world)
    expect(await finish(world, work)).toMatchObject({
      outcome: 'refused',
      why: [{ kind: 'not-approved', commands: [command] }],
    })
    const needs = async (): Promise<unknown> =>
      (await fleetStatus(world.fleet)).needsYou.map((need) => [need.kind, needRemedies(need).flat()])
    const approve = { of: 'coppice', command: `codebase trust ${world.codebase.name}` }
    expect(await needs()).toEqual([['refused', expect.arrayContaining([approve])]])
    const approving: FleetWorld = {
      ...world,
      fleet: { ...world.fleet, isolation: { ...world.context, approve: async () => true } },
    }
    await mayRunChecks(approving.fleet.isolation, world.codebase, [command])
    expect(await needs()).toEqual([])
    expect(await finish(approving, work)).toMatchObject({ outcome: 'done', run: { formula: 'release' } })
    await isGone(world, work)
  })

  test('a command that fails is refused with its log', async () => {
    await using world = await makeFleetWorld(
      withFormula(formula.replace('test -f login.txt && echo checked', 'echo broken; exit 4'), {
        context: { approve: async () => true },
      }),
    )
    const work = await atWork(world)
    const result = await finish(world, work)
    expect(result).toMatchObject({
      outcome: 'refused',
      why: [{ kind: 'command-failed', exitCode: 4, log: expect.stringContaining('alder-') }],
    })
  })

  test.each([
    ['steps: [validate, intent, push, settle]', /missing or out of order/],
    ['steps: [validate, push, intent, settle, leave]', /before `intent`/],
    ['steps: [validate, intent, push, push, settle, leave]', /`push` is listed twice/],
    ['steps: [validate, intent, settle, push, leave]', /between `settle` and `leave`/],
    ['steps: [validate, intent, deploy, settle, leave]', /"deploy" isn't a step/],
    ['steps: [validate, intent, open-pr, settle, leave]', /`open-pr` must come after `push`/],
    ['steps: [validate, intent, {run: x, timeout: soon}, settle, leave]', /isn't a step/],
    ['stages: []', /unknown key "stages"/],
    ['steps: [', /invalid YAML/],
  ])('%s is an error that says what is wrong', async (text, message) => {
    await using world = await makeFleetWorld(withFormula(text))
    const work = await atWork(world)
    const error = await finish(world, work).catch((thrown: unknown) => toAppError(thrown))
    expect(error).toMatchObject({ message: expect.stringMatching(message) })
    expect(JSON.stringify(error)).not.toContain('validate-discard')
    expect(await world.item(work.item)).toMatchObject({ state: 'hooked' })
  })

  test('runs no command that has left the base branch since it began, even if all that are there are approved', async () => {
    await using world = await makeFleetWorld(withFormula(formula, { context: { approve: async () => true } }))
    const work = await atWork(world)
    const failpoint = async (name: string): Promise<void> => {
      if (name !== 'formula.intent.done') return
      world.repo.commit('.coppice/formulas/release.yaml', formula.replace('echo checked', 'false'))
      world.repo.git('push', '-q', 'origin', 'main')
    }
    const moving = { ...world, fleet: { ...world.fleet, isolation: { ...world.context, failpoint } } }
    expect(await finish(moving, work)).toMatchObject({ outcome: 'refused', why: [{ kind: 'not-approved' }] })
    expect(await world.item(work.item)).toMatchObject({ state: 'hooked' })
  })

  test('is read from the base commit, not from the agent’s own branch', async () => {
    await using world = await makeFleetWorld(withFormula(formula))
    const work = await atWork(world)
    writeFileSync(
      join(work.environment.path, '.coppice', 'formulas', 'release.yaml'),
      'steps: [validate, intent, settle, leave]\n',
    )
    world.box.raw(work.environment.path, 'commit', '-qam', 'skip the checks')
    expect(await finish(world, work)).toMatchObject({ outcome: 'refused', why: [{ kind: 'not-approved' }] })
  })
})
