import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { builtInSteps } from '../../src/domain/fleet/formula.ts'
import type { SessionKind } from '../../src/domain/fleet/agent.ts'
import { type ProviderName, providerNames } from '../../src/domain/provider-name.ts'
import { patrol } from '../../src/fleet/patrol/patrol.ts'
import { recoverFleet } from '../../src/fleet/recover.ts'
import { createGithubForge } from '../../src/platforms/github/forge/forge.ts'
import { createLogger } from '../../src/process/log.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'
import { reconcile } from '../../src/isolation/reconcile.ts'
import { built } from '../helpers/built.ts'
import { everyCase } from '../helpers/every-case.ts'
import { type FleetWorld, makeFleetWorld } from '../helpers/fleet.ts'
import { runnableKinds } from '../helpers/tmux.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { said } from '../helpers/words.ts'
import { type GithubDouble, startDouble } from '../platforms/github-double.ts'
import { checkFleet } from './fleet-check.ts'
import type { FleetChildOrder } from './fleet-child.ts'
import { crashPools, CREW, fleetOperations, lost, scripted, scriptedTurns } from './fleet-operations.ts'
import { type FleetScenario, fleetScenarios } from './fleet-scenarios.ts'
import { type Inventory, takeInventory } from './inventory.ts'
import { temporaryOf } from './kill.ts'
import { failpointsIn } from './source-failpoints.ts'

const timeout = 10 * 60_000
const root = resolve(import.meta.dirname, '../..')
const script = resolve(root, 'test/helpers/fleet-worker.sh')
const exercised = new Set<string>()
const counts = { kills: 0, lost: 0 }

afterAll(() => console.log(`the fleet under kill -9: ${counts.kills} kills, ${counts.lost} lost`))

type Case = { readonly kind: SessionKind; readonly isolationProvider: ProviderName }

/**
 * `npm test` kills at each failpoint once; `npm run test:every-case` in every scenario, where kinds of sessions and
 * environments take turns.
 */
const cases: readonly Case[] = everyCase
  ? runnableKinds.flatMap((kind) => providerNames.map((isolationProvider) => ({ kind, isolationProvider })))
  : [{ kind: 'process', isolationProvider: 'worktree' }]

type Scene = { readonly world: FleetWorld; readonly double: GithubDouble | undefined; readonly before: Inventory }

const arranged = async (scenario: FleetScenario, { kind, isolationProvider }: Case): Promise<Scene> => {
  const double = scenario.forge === true ? await startDouble() : undefined
  const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })
  const tools = { log, clock: Date.now, secrets: createSecrets() }
  const world = await makeFleetWorld({
    remote: true,
    kind,
    pools: crashPools,
    agents: [scripted(script), lost],
    fleet: { installation: scriptedTurns(script) },
    context: {
      approve: async () => true,
      ...(double !== undefined && {
        forge: createGithubForge({ token: 'ghp_x', apiUrl: double.url }, tools, { timeoutMs: 10_000 }),
      }),
    },
    settings: { isolationProvider, supervisor: CREW },
    ...((scenario.config ?? scenario.formula) !== undefined && {
      prepare: (repo) => {
        if (scenario.config !== undefined) repo.commit('.coppice/config.yaml', scenario.config)
        if (scenario.formula !== undefined) repo.commit('.coppice/formulas/release.yaml', scenario.formula)
      },
    }),
  })
  if (double !== undefined) {
    await world.context.store.codebases.update(world.codebase.id, { github: 'acme/app' })
    double.branches = () =>
      world.box.raw(world.box.path('origin.git'), 'for-each-ref', '--format=%(refname:short)', 'refs/heads').split('\n')
  }
  await scenario.arrange(world)
  return { world, double, before: await takeInventory(world) }
}

const left = async ({ world, double }: Scene): Promise<void> => {
  await world[Symbol.asyncDispose]()
  await double?.close()
}

/** The failpoints of the fleet that the operation passes, in order. */
const record = async (scenario: FleetScenario, one: Case): Promise<string[]> => {
  const scene = await arranged(scenario, one)
  try {
    const names: string[] = []
    const { fleet } = scene.world
    const failpoint = async (name: string): Promise<void> => void names.push(name)
    await fleetOperations[scenario.operation]({ ...fleet, isolation: { ...fleet.isolation, failpoint } })
    await hold(scenario, scene, 'unharmed')
    return [...new Set(names)].filter((name) => ours.has(name))
  } finally {
    await left(scene)
  }
}

const killedAt = async (scenario: FleetScenario, { kind, isolationProvider }: Case, scene: Scene, at: string) => {
  const { box } = scene.world
  mkdirSync(temporaryOf(scene.world), { recursive: true })
  const order: FleetChildOrder = {
    root: box.root,
    operation: scenario.operation,
    killAt: at,
    kind,
    isolationProvider,
    script,
    forge: scene.double?.url,
  }
  const child = spawn(process.execPath, [built('test/crash/fleet-child.ts'), JSON.stringify(order)], {
    env: {
      ...box.env,
      TMPDIR: temporaryOf(scene.world),
      GIT_CONFIG_NOSYSTEM: '1',
      NODE_NO_WARNINGS: '1',
      COPPICE_TEST_ROOT: root,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const signal = await new Promise((ended) => child.once('exit', (_code, how) => ended(how)))
  if (signal === 'SIGKILL') return true
  if (scenario.isQuick === true) return false
  throw new Error(`it was not killed at ${at}: ${output}`)
}

/** The next start: what every command of the fleet and every server does first. */
const recover = async ({ world }: Scene, { byPatrol }: FleetScenario): Promise<string[]> => {
  const { left: undecided } = await reconcile(world.context, world.codebase)
  const left = byPatrol === true ? (await patrol(world.fleet)).problems : (await recoverFleet(world.fleet)).left
  return [...said(undecided), ...left.map(({ agent, why }) => `${agent}: ${why}`)]
}

/** Everything holds once the operation is done; then all sessions end, and nothing is lost or left behind. */
const hold = async (scenario: FleetScenario, { world, before }: Scene, when: string): Promise<void> => {
  const problems = await checkFleet(world)
  const item = await world.item(1)
  if (item.state !== scenario.endsAs) problems.push(`item 1 is ${item.state} instead of ${scenario.endsAs}`)
  await fleetOperations.down(world.fleet)
  problems.push(...(await checkFleet(world)))
  const { branches } = before
  const mayKeep = branchesOf(world).filter((branch) => branch.startsWith('agent/'))
  problems.push(
    ...(await checkInvariants(world, { before: { ...before, branches }, mayKeep, temporary: temporaryOf(world) })),
  )
  counts.lost += problems.filter((problem) => problem.startsWith('G1:')).length
  if (problems.length > 0) throw new Error(`${when}:\n  ${problems.join('\n  ')}`)
}

const branchesOf = (world: FleetWorld): string[] =>
  world.repo.git('for-each-ref', '--format=%(refname:short)', 'refs/heads').split('\n')

/** A sling that was undone has left no branch and no worktree. What is discarded leaves its branch. */
const checkUndone = async ({ operation }: FleetScenario, { world, before }: Scene): Promise<string[]> => {
  const item = await world.item(1)
  if (item.state !== 'open' || operation === 'done-discard') return []
  const known = new Set(before.branches)
  const environments = await world.context.store.environments.live(world.codebase.id)
  const held = new Set(environments.map(({ branch }) => String(branch)))
  return branchesOf(world)
    .filter((branch) => !known.has(`refs/heads/${branch}`) && !held.has(branch))
    .map((branch) => `G4: stray branch ${branch}`)
}

const kill = async (scenario: FleetScenario, one: Case, at: string): Promise<void> => {
  const scene = await arranged(scenario, one)
  try {
    if (await killedAt(scenario, one, scene, at)) {
      counts.kills += 1
      exercised.add(at)
    }
    expect(await recover(scene, scenario), `recovery after ${at}`).toEqual([])
    const problems = [...(await checkFleet(scene.world)), ...(await checkUndone(scenario, scene))]
    if (problems.length > 0) throw new Error(`after recovery:\n  ${problems.join('\n  ')}`)
    const rows = async () =>
      JSON.stringify([
        // Whatever it prints meanwhile.
        (await scene.world.context.store.fleetAgents.live()).map((agent) => ({ ...agent, lastSignAt: 0 })),
        await scene.world.context.store.items.list({}),
      ])
    const once = await rows()
    expect(await recover(scene, scenario)).toEqual([])
    expect(await rows(), 'a second recovery').toBe(once)
    await fleetOperations[scenario.operation](scene.world.fleet)
    await hold(scenario, scene, `after a kill at ${at}, recovery and doing it again`)
  } finally {
    await left(scene)
  }
}

/**
 * `formula.${name}.begun` stands for every step. `npm test` takes those that change something outside the store: what is
 * recorded before and after a step is the same for all.
 */
const steps = everyCase ? [...builtInSteps, 'run: test -f login.txt'] : ['push', 'settle', 'leave']
const ours = new Set(
  failpointsIn('of the fleet').flatMap((name) =>
    name.includes('${name}') ? steps.map((step) => name.replace('${name}', step)) : [name],
  ),
)

describe.each(cases)('a process killed at every failpoint ($kind, $isolationProvider)', { timeout }, (one) => {
  test.each(fleetScenarios.map((scenario, i) => [scenario.name, scenario, i] as const))(
    'of %s',
    async (_, scenario, i) => {
      const problems: string[] = []
      const turn = cases.indexOf(one)
      const isLast = turn === cases.length - 1
      // The last ones also take what is left: not every case passes the same failpoints.
      const isTaken = (name: string, at: number): boolean =>
        (everyCase && (at + i) % cases.length === turn) || (isLast && !exercised.has(name))
      for (const name of (await record(scenario, one)).filter(isTaken)) {
        await kill(scenario, one, name).catch((error: unknown) => {
          problems.push(`${name}: ${error instanceof Error ? error.message : String(error)}`)
        })
      }
      expect(problems.join('\n\n')).toBe('')
    },
  )
})

test('no failpoint of the fleet was left out', () => {
  expect(ours.size).toBeGreaterThan(40)
  expect([...ours].filter((name) => !exercised.has(name))).toEqual([])
})
