import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Expectations, checkInvariants, checkRecoveredOnce, processesAt } from '../helpers/invariants.ts'
import { writeIn } from '../helpers/repo.ts'
import type { World, WorldOptions } from '../helpers/world.ts'
import { takeInventory } from './inventory.ts'
import { appears, gitWrapper, startChild, temporaryOf } from './kill.ts'
import { type OperationName, operations, recover } from './operations.ts'
import { everyCase } from '../helpers/every-case.ts'
import { keepSpares } from '../../src/isolation/providers/worktree/spare.ts'
import { identityWord } from '../../src/domain/process-identity.ts'
import { endLeftoverGit } from '../../src/isolation/children.ts'
import { gitStarterVariable } from '../../src/process/git-processes.ts'
import { identifySync, liveness, selfIdentity } from '../../src/process/identity.ts'
import type { JournalEntry } from '../../src/store/store.ts'
import { makeDirty, makeScenarioWorld } from './arrange.ts'

/** Our process dies while this git command is still to do its work; git goes on when recovery has begun. */
type Outliving = {
  readonly command: string
  readonly operation: OperationName
  readonly options?: WorldOptions
  readonly arrange?: (world: World) => Promise<unknown>
  readonly mayKeep?: readonly string[]
}

const withIgnored = async (world: World): Promise<void> => {
  await operations['take-up-again'](world.context, world.codebase)
  writeIn(join(world.context.worktreesBase, 'project', 'issue-5'), 'secret.local', 'ignored, the only copy\n')
}

/** `npm run test:every-case` takes these as well. worktree-add.test.ts kills during the checkout, `reset`. */
const ofSoak: readonly Outliving[] = everyCase
  ? [
      { command: 'worktree add', operation: 'create-fresh' },
      { command: 'reset', operation: 'create-fresh' },
    ]
  : []

const fromSpare: Omit<Outliving, 'command'> = {
  operation: 'create-fresh',
  options: { settings: { spares: 1 } },
  arrange: (world) => keepSpares(world.context, world.codebase),
}

const cases: readonly Outliving[] = [
  ...ofSoak,
  { command: 'worktree add', operation: 'spare', options: { settings: { spares: 1 } } },
  { command: 'update-ref', ...fromSpare },
  { command: 'symbolic-ref', ...fromSpare },
  { command: 'fetch', operation: 'clone', options: { remote: true } },
  { command: 'worktree remove', operation: 'remove-clean', arrange: withIgnored },
  { command: 'worktree remove', operation: 'remove-forced', arrange: makeDirty, mayKeep: ['issue-5'] },
]

const expectationsOf = async (world: World, mayKeep: readonly string[] = []): Promise<Expectations> => ({
  before: await takeInventory(world),
  mayKeep,
  temporary: temporaryOf(world),
})

/** Killed with git underway; `go` lets that git continue. */
const killUnderGit = async (
  world: World,
  { command, operation }: Outliving,
  ready: () => Promise<void> = async () => undefined,
): Promise<{ go: () => void }> => {
  const started = world.box.path('git-started')
  const go = world.box.path('go')
  const bin = gitWrapper(
    world,
    `case " $* " in
*" ${command} "*)
  echo $$ > '${started}.tmp'; mv '${started}.tmp' '${started}'
  n=0; while [ ! -e '${go}' ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done;;
esac
exec "$REAL" "$@"`,
  )
  const { child, ended } = startChild(world, { operation, killAt: undefined }, bin)
  await Promise.race([
    appears(started),
    ended.then(({ output }) => {
      throw new Error(`${operation} ended without ${command}: ${output}`)
    }),
  ])
  await ready()
  child.kill('SIGKILL')
  await ended
  return { go: () => writeFileSync(go, '') }
}

const settled = async (world: World, expectations: Expectations, operation: OperationName): Promise<void> => {
  expect(await checkInvariants(world, expectations)).toEqual([])
  expect(await checkRecoveredOnce(world)).toEqual([])
  await operations[operation](world.context, world.codebase)
  expect(await checkInvariants(world, expectations)).toEqual([])
}

describe('git outlives the process that started it', () => {
  test.each(cases.map((one) => [one.command, one.operation, one] as const))(
    '%s of %s: recovery waits for it',
    async (_command, operation, one) => {
      await using world = await makeScenarioWorld(one)
      await one.arrange?.(world)
      const expectations = await expectationsOf(world, one.mayKeep)
      const { go } = await killUnderGit(world, one)
      const recovery = recover(world.context, world.codebase)
      go()
      expect(await recovery).toEqual([])
      await untilQuiet(world)
      await settled(world, expectations, operation)
    },
  )

  test('a git process that does not end by itself is ended, by its identity', async () => {
    const one: Outliving = { command: 'worktree add', operation: 'create-fresh' }
    await using world = await makeScenarioWorld(one)
    const expectations = await expectationsOf(world)
    // Only one that the journal names is ended: a git that nobody wrote down might be anybody's.
    await killUnderGit(world, one, () => untilWrittenDown(world))
    const pid = Number(readFileSync(world.box.path('git-started'), 'utf8'))
    const context = { ...world.context, clock: hurried() }
    expect(await recover(context, world.codebase)).toEqual([])
    expect(processesAt(world.box.root).map(([found]) => found)).not.toContain(pid)
    await settled(world, expectations, 'create-fresh')
  })

  test.each(['runs', 'was stopped, to be killed'])(
    'a git process that is not written down yet and %s is waited for',
    async (how) => {
      const one: Outliving = { command: 'worktree add', operation: 'create-fresh' }
      await using world = await makeScenarioWorld(one)
      const expectations = await expectationsOf(world)
      const { go } = await killUnderGit(world, one)
      // As if killed a moment earlier: git runs, and the journal does not know it.
      const [entry] = await world.context.store.journal.open(world.context.host)
      await world.context.store.journal.advance(entry?.id ?? '', { child: null })
      if (how !== 'runs') process.kill(-Number(readFileSync(world.box.path('git-started'), 'utf8')), 'SIGSTOP')
      const recovery = recover(world.context, world.codebase)
      go()
      expect(await recovery).toEqual([])
      await untilQuiet(world)
      await settled(world, expectations, 'create-fresh')
    },
  )

  test('one that creates a worktree gets no SIGTERM, on which it would delete the directory', async () => {
    await using world = await makeScenarioWorld({})
    const git = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' })
    const ended = once(git, 'exit')
    const entry = { child: identifySync(git.pid ?? 0), kind: 'create', step: 'adding' } as JournalEntry
    const context = { ...world.context, clock: hurried() }
    expect(await endLeftoverGit(context, world.repo.commonDir, entry)).toBeUndefined()
    expect(await ended).toEqual([null, 'SIGKILL'])
  })

  test.each([
    ['left alone if nobody of ours started it', {}, 'alive'],
    ['left to who started it', { [gitStarterVariable]: identityWord(selfIdentity()) }, 'alive'],
    ['continued if who started it is dead', { [gitStarterVariable]: `${process.pid}+another` }, 'dead'],
  ] as const)('a stopped git is %s', async (_what, starter, outcome) => {
    await using world = await makeScenarioWorld({})
    const env = { ...world.box.env, ...starter }
    const git = spawn('git', ['cat-file', '--batch'], { cwd: world.repo.path, env, detached: true, stdio: 'pipe' })
    try {
      // It answers, so it is git by now.
      git.stdin.write('HEAD\n')
      await once(git.stdout, 'data')
      const identity = identifySync(git.pid ?? 0)
      git.kill('SIGSTOP')
      git.stdin.end()
      const entry = { child: undefined, step: 'adding' } as JournalEntry
      const context = { ...world.context, clock: hurried() }
      const running = `git process ${git.pid} (git cat-file --batch) is still running`
      expect(await endLeftoverGit(context, world.repo.commonDir, entry)).toBe(outcome === 'dead' ? undefined : running)
      expect(identity && liveness(identity)).toBe(outcome)
    } finally {
      git.kill('SIGKILL')
    }
  })

  test.each([
    ['setup', 'create-fresh'],
    ['teardown', 'remove-clean'],
  ] as const)('a %s script that outlives us is ended with all that it started', async (kind, operation) => {
    await using world = await makeScenarioWorld({
      options: {
        prepare: (repo, box) => {
          const loop = 'while :; do echo x >> log.local; sleep 0.05; done'
          // One more without parent, session and environment.
          const lost = `env -i PATH="$PATH" setsid sh -c 'sh -c "${loop}" &' </dev/null >/dev/null 2>&1`
          writeFileSync(box.path('script.sh'), `${lost}\ntouch '${box.path('started')}'\n${loop}\n`)
          repo.commit('.coppice/config.yaml', `worktree:\n  ${kind}: ["sh ${box.path('script.sh')}"]\n`)
        },
      },
    })
    if (kind === 'teardown') await withIgnored(world)
    const expectations = await expectationsOf(world)
    const { child, ended } = startChild(world, { operation, killAt: undefined })
    await appears(world.box.path('started'))
    child.kill('SIGKILL')
    await ended
    const context = { ...world.context, clock: hurried() }
    try {
      expect(await recover(context, world.codebase)).toEqual([])
      expect(await checkInvariants(world, expectations)).toEqual([])
      expect(processesAt(world.box.root)).toEqual([])
    } finally {
      for (const [pid] of processesAt(world.box.root)) process.kill(pid, 'SIGKILL')
    }
  })
})

const untilWrittenDown = async ({ context }: World): Promise<void> => {
  while ((await context.store.journal.open(context.host)).every(({ child }) => child === undefined)) {
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** A second for every look at it: the patience is ten seconds, and nobody has to sit through them. */
const hurried = (): (() => number) => {
  let now = Date.now()
  return () => (now += 1_000)
}

/** Nobody is at work in this world any more: whatever git still wanted to do is done. */
const untilQuiet = async (world: World): Promise<void> => {
  while (processesAt(world.box.root).length > 0) await new Promise((resolve) => setTimeout(resolve, 20))
}
