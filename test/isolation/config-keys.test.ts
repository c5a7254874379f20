import { existsSync, readFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runScheduledCleanup } from '../../src/cleanup/sweep.ts'
import { poolTable } from '../../src/domain/config/fleet.ts'
import { defaultSettings, type Settings } from '../../src/domain/config/settings.ts'
import type { RepoSettings } from '../../src/domain/config/repository.ts'
import type { PoolSettings } from '../../src/domain/fleet/pool.ts'
import { keepSpares } from '../../src/isolation/providers/worktree/spare.ts'
import { sendTo } from '../helpers/send.ts'
import { makeWorld, type World, type WorldOptions } from '../helpers/world.ts'
import { ask, conversation, inside, issue, refusal, remove, removed, resolved } from './scene.ts'

/** "A config key that nothing read": a key without an entry here does not compile, and each entry sees its effect. */

const hour = 60 * 60 * 1000
const day = 24 * hour

const repository = (yaml: string, prepare: NonNullable<WorldOptions['prepare']> = () => undefined): Promise<World> =>
  makeWorld({
    context: { approve: () => Promise.resolve(true) },
    prepare: (repo, box) => {
      repo.commit('.gitignore', '.env\nnotes\ncache\nran\n')
      prepare(repo, box)
      repo.commit('.coppice/config.yaml', `worktree:\n  ${yaml}\n`)
    },
  })

/** `test/fleet/landing.test.ts` sees the effect of each. */
type LandingKey = Extract<keyof RepoSettings, `landing${string}`>

const repoKeys: Record<Exclude<keyof RepoSettings, LandingKey>, () => Promise<void>> = {
  base: async () => {
    await using world = await repository('base: develop', (repo) => void repo.git('branch', 'develop'))
    expect((await issue(world, 1)).baseBranch).toBe('develop')
  },
  provider: async () => {
    await using world = await repository('provider: clone')
    expect((await issue(world, 1)).provider).toBe('clone')
  },
  copy: async () => {
    await using world = await repository('copy: [.env]', (repo) => repo.write('.env', 'A=1\n'))
    expect(inside(world, await issue(world, 1)).read('.env')).toBe('A=1\n')
  },
  link: async () => {
    await using world = await repository('link: [cache]')
    const [one, two] = [inside(world, await issue(world, 1)), inside(world, await issue(world, 2))]
    one.write('cache/shared', 'x')
    expect(two.read('cache/shared')).toBe('x')
  },
  keep: async () => {
    await using world = await repository('keep: [notes]')
    const environment = await issue(world, 1)
    inside(world, environment).write('notes', 'mine\n')
    expect(await refusal(world, environment)).toEqual(['no-kept-files no: notes differs from its source'])
  },
  setup: async () => {
    await using world = await repository('setup: ["touch ran"]')
    expect(inside(world, await issue(world, 1)).has('ran')).toBe(true)
  },
  teardown: async () => {
    await using world = await repository('teardown: ["touch ../teardown-ran"]')
    const environment = await issue(world, 1)
    await removed(world, environment)
    expect(existsSync(join(environment.path, '../teardown-ran'))).toBe(true)
  },
  submodules: async () => {
    await using world = await repository('submodules: false', (repo, box) => {
      box.repo('lib')
      repo.git('submodule', '--quiet', 'add', box.path('lib'), 'lib')
    })
    expect(inside(world, await issue(world, 1)).has('lib/README')).toBe(false)
  },
  ports: async () => {
    await using world = await repository('ports: [WEB]')
    const { id } = await issue(world, 1)
    expect((await world.context.store.ports.ofEnvironment(id)).map(({ name }) => name)).toEqual(['WEB'])
  },
  allowForks: async () => {
    for (const allowed of [true, false]) {
      await using world = await makeWorld({
        remote: true,
        context: { approve: () => Promise.resolve(true) },
        prepare: (repo) =>
          repo.commit('.coppice/config.yaml', `worktree:\n  setup: ["touch ran"]\n  allowForks: ${allowed}\n`),
      })
      world.repo.git('push', '-q', 'origin', 'main:refs/pull/7/head')
      const { environment } = await resolved(world, 'pr', 7, { hints: { isForkPR: true } })
      expect(inside(world, environment).has('ran')).toBe(allowed)
    }
  },
  route: async () => {
    await using world = await makeWorld({
      prepare: (repo) => {
        repo.commit('.coppice/commands/review.md', 'Review it.')
        repo.commit('.coppice/config.yaml', 'commands:\n  route: suggest\n')
      },
    })
    const { said } = await sendTo(world, 'review this', { conversationId: 'C1', details: { codebase: 'project' } })
    expect(said).toContain('This sounds like `/review`')
  },
  openPullRequests: async () => {
    for (const open of ['auto', 'on-request']) {
      await using world = await makeWorld({
        remote: true,
        prepare: (repo) => void repo.commit('.coppice/config.yaml', `pullRequests:\n  open: ${open}\n`),
      })
      const agent = async (directory: string): Promise<void> => {
        world.box.raw(directory, 'commit', '-q', '--allow-empty', '-m', 'work')
      }
      await sendTo(world, 'do it', { conversationId: 'C1', details: { codebase: 'project' } }, { agent })
      const pushed = world.box.raw(world.box.path('origin.git'), 'for-each-ref', '--format=%(refname)', 'refs/heads')
      expect(pushed.includes('refs/heads/thread-')).toBe(open === 'auto')
    }
  },
}

type Probe = () => Promise<void>

/** Isolation and cleanup don't read it; this file does, and tests beside it see the effect. */
type ReadBy = `src/${string}.ts`

const settingKeys: Record<keyof Settings, Probe | ReadBy> = {
  databaseUrl: 'src/main.ts',
  worktreesBase: 'src/domain/config/config.ts',
  concurrentConversations: 'src/conversations/conversations.ts',
  runMinutes: 'src/conversations/conversations.ts',
  cleanupIntervalHours: 'src/main/serve.ts',
  agentDefault: 'src/agents/registry.ts',
  agentCommand: 'src/agents/registry.ts',
  claudeCommand: 'src/agents/registry.ts',
  claudePermissionMode: 'src/agents/registry.ts',
  codexCommand: 'src/agents/registry.ts',
  codexSandbox: 'src/agents/registry.ts',
  acpAgents: 'src/agents/registry.ts',
  agentPermissions: 'src/agents/registry.ts',
  agentSilenceMinutes: 'src/agents/registry.ts',
  questionMinutes: 'src/conversations/questions.ts',
  budgetConversationUsd: 'src/runs/budget.ts',
  budgetDayUsd: 'src/runs/budget.ts',
  budgetConversationTurns: 'src/runs/budget.ts',
  budgetDayTurns: 'src/runs/budget.ts',
  fleetSession: 'src/main/fleet.ts',
  patrolSeconds: 'src/fleet/schedule.ts',
  maxAgents: 'src/fleet/sling/hook.ts',
  fleetRestarts: 'src/fleet/patrol/look.ts',
  stuckMinutes: 'src/fleet/patrol/look.ts',
  massDeathAgents: 'src/fleet/patrol/rows/mass-death.ts',
  massDeathSeconds: 'src/fleet/patrol/rows/mass-death.ts',
  supervisor: 'src/fleet/patrol/supervisor.ts',
  supervisorMinutes: 'src/fleet/patrol/supervisor.ts',
  pools: 'src/fleet/pools.ts',
  hooks: 'src/main/hooks.ts',
  eventDays: 'src/cleanup/schedule.ts',
  isolationProvider: async () => {
    await using world = await makeWorld({ settings: { isolationProvider: 'clone' } })
    expect((await issue(world, 1)).provider).toBe('clone')
  },
  spares: async () => {
    await using world = await makeWorld({ settings: { spares: 2 } })
    expect(await keepSpares(world.context, world.codebase)).toBe(2)
    expect(await keepSpares(world.context, world.codebase)).toBe(0)
  },
  fetchFreshSeconds: async () => {
    for (const [seconds, seen] of [
      [0, true],
      [60, false],
    ] as const) {
      await using world = await makeWorld({ remote: true, settings: { fetchFreshSeconds: seconds } })
      await issue(world, 1)
      const tip = world.repo.git('commit-tree', '-p', 'main', '-m', 'newer', 'main^{tree}')
      world.repo.git('push', '-q', 'origin', `${tip}:main`)
      world.repo.git('update-ref', 'refs/remotes/origin/main', 'main')
      // The row knows when it was fetched; the caller holds the row.
      const codebase = (await world.context.store.codebases.get(world.codebase.id)) ?? world.codebase
      const { environment } = await resolved(world, 'issue', 2, { codebase })
      expect(environment.startSha === tip).toBe(seen)
    }
  },
  worktreesPerCodebase: async () => {
    await using world = await makeWorld({ settings: { worktreesPerCodebase: 1 } })
    await issue(world, 1)
    expect((await ask(world, 'issue', 2)).outcome).toBe('limit')
  },
  staleDays: async () => {
    for (const [days, gone] of [
      [2, 1],
      [4, 0],
    ] as const) {
      let now = Date.now()
      await using world = await makeWorld({ settings: { staleDays: days }, context: { clock: () => now } })
      // Also while a conversation has it: the same threshold counts from its last message.
      await conversation(world, { environmentId: (await issue(world, 1)).id })
      now += 3 * day
      const report = await runScheduledCleanup(world.context, world.provider, world.codebase)
      expect(report.removed).toHaveLength(gone)
    }
    // Merged work isn't held longer than other work.
    await using world = await makeWorld({ settings: { staleDays: 0 } })
    const environment = await issue(world, 1)
    await conversation(world, { environmentId: environment.id })
    inside(world, environment).commit('a', 'a\n')
    world.repo.git('merge', '-q', '--no-ff', '-m', 'land', 'issue-1')
    expect((await remove(world, environment)).outcome).toBe('removed')
  },
  restoreDays: async () => {
    await using world = await makeWorld({ settings: { restoreDays: 3 } })
    const { restorePoint } = await removed(world, await issue(world, 1))
    expect(restorePoint.expiresAt - restorePoint.createdAt).toBe(3 * day)
  },
  restoreIgnoredBytes: async () => {
    await using world = await makeWorld({
      settings: { restoreIgnoredBytes: 100 * 1024 * 1024 },
      prepare: (repo) => repo.commit('.gitignore', '*.dat\n'),
    })
    const environment = await issue(world, 1)
    inside(world, environment).write('a.dat', '')
    truncateSync(join(environment.path, 'a.dat'), 100 * 1024 * 1024 + 1)
    expect((await removed(world, environment)).leftOut).toMatchObject([
      { reason: 'over the limit of 100 MB for ignored files' },
    ])
  },
  holdMergedHours: async () => {
    let now = Date.now()
    await using world = await makeWorld({ settings: { holdMergedHours: 5 }, context: { clock: () => now } })
    const environment = await issue(world, 1)
    await conversation(world, { environmentId: environment.id })
    inside(world, environment).commit('a', 'a\n')
    world.repo.git('merge', '-q', '--no-ff', '-m', 'land', 'issue-1')
    now += 4.9 * hour
    await refusal(world, environment)
    now += 0.2 * hour
    expect((await remove(world, environment)).outcome).toBe('removed')
  },
  regenerable: async () => {
    await using world = await makeWorld({
      settings: { regenerable: ['made'] },
      prepare: (repo) => repo.commit('.gitignore', 'made/\nnode_modules/\n'),
    })
    const environment = await issue(world, 1)
    inside(world, environment).write('made/x', 'x')
    inside(world, environment).write('node_modules/x', 'x')
    const { leftOut, restorePoint } = await removed(world, environment)
    expect(leftOut.map(({ path }) => path)).toEqual(['made/'])
    expect(readFileSync(join(world.context.home, 'restore', restorePoint.id, 'ignored/node_modules/x'), 'utf8')).toBe(
      'x',
    )
  },
}

const poolKeys: Record<Exclude<keyof PoolSettings, 'name'>, ReadBy> = {
  agent: 'src/fleet/program.ts',
  command: 'src/fleet/program.ts',
  codebases: 'src/fleet/pools.ts',
  min: 'src/fleet/reconcile-pools.ts',
  max: 'src/fleet/sling/hook.ts',
  pull: 'src/fleet/reconcile-pools.ts',
  done: 'src/fleet/formulas/done.ts',
  isolation: 'src/fleet/sling/spawn.ts',
  names: 'src/fleet/names.ts',
  prompt: 'src/fleet/prime.ts',
  wake: 'src/fleet/restart-agent.ts',
  dependsOn: 'src/domain/fleet/pool.ts',
  drainTimeoutMs: 'src/fleet/reconcile-pools.ts',
}

/** `settings.key`, or taken apart: `{ key }`. Half of a pool's keys are ordinary words: its type has to be there, too. */
const reads = (file: string, key: string, of: 'settings' | 'pool'): boolean => {
  const source = readFileSync(join(import.meta.dirname, '../..', file), 'utf8').replaceAll(/^ *(?:\/?\*|\/\/).*$/gm, '')
  return new RegExp(
    of === 'pool'
      ? String.raw`\bpool\??\.${key}\b|\{.*\b${key}\b.*\}.*PoolSettings|PoolSettings.*'${key}'`
      : String.raw`\.${key}\b|[{,]\s*${key}\b`,
  ).test(source)
}

describe.concurrent('a config key that nothing read: each key of the repository has an effect', () => {
  test.for(Object.entries(repoKeys))('worktree.%s', async ([, probe]) => {
    await probe()
  })
})

describe.concurrent('a config key that nothing read: each setting of the home has an effect', () => {
  const probes = Object.entries(settingKeys).filter((entry): entry is [string, Probe] => typeof entry[1] === 'function')
  test.for(probes)('%s', async ([, probe]) => {
    await probe()
  })

  test('there is no setting without an entry here', () => {
    expect(Object.keys(settingKeys).sort()).toEqual(Object.keys(defaultSettings).sort())
    expect(Object.keys(poolKeys).sort()).toEqual(Object.keys(poolTable).sort())
  })

  test('the file that is said to read a setting reads it', () => {
    const read = Object.entries(settingKeys).filter(
      ([key, by]) => typeof by === 'string' && !reads(by, key, 'settings'),
    )
    const ofPools = Object.entries(poolKeys).filter(([key, by]) => !reads(by, key, 'pool'))
    expect([...read, ...ofPools]).toEqual([])
  })
})
