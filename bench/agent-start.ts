import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { keepSpares } from '../src/isolation/providers/worktree/spare.ts'
import { createTestPlatform } from '../src/platforms/test/platform.ts'
import { processChannels } from './process-channels.ts'
import { createStubEngine } from './stub-engine.ts'
import { populate } from './populate.ts'
import { interleaved, median, ratioRow, type Row } from './measure.ts'
import type { Bench, Stage, World } from './stage.ts'

const environments = 100
const messages = 100

export const agentStart: Bench = {
  name: 'agent-start',
  title: 'from message to agent start',
  description: `From accepting a message until the agent is called, in a warm process with the product’s engine: the durable row, the claim, the conversation, its codebase and agent, \`resolveIsolation\`, the lease with git’s lock, the session, arming the tripwire, and the agent’s environment. The agent answers at once and starts no process; what follows its start (the tripwire’s check of the shared checkout, the reply) is untimed. *Existing environment*: ${messages} messages in ${environments} conversations that each have an environment; counts every process started in that time, git or not. *New environment from a warm spare*: a conversation’s first message in a codebase of 30,000 files; the spare is prepared untimed. Baseline: \`git worktree add --no-track -b\` in the same repository.`,
  measure: async (stage) => [...(await existingRows(stage)), ...(await newRows(stage))],
}

const existingRows = async (stage: Stage): Promise<Row[]> => {
  await using world = await stage.world(3_000)
  await populate(stage, world, 1, environments + 1)
  const { store } = world.context
  const live = await store.environments.live(world.codebase.id)
  for (const [i, environment] of live.entries()) await bind(world, `c${i}`, environment.id)
  await using started = await timedEngine(world)
  for (let i = 0; i < 20; i += 1) await started.say(`c${i}`)
  const samples: number[] = []
  let processes = 0
  for (let i = 0; i < messages; i += 1) {
    // 7 and 100 are coprime, so every conversation has its turn.
    const { ms, started: count } = await started.say(`c${(i * 7) % environments}`)
    samples.push(ms)
    processes += count
  }
  return [
    {
      figure: 'message to agent start, existing environment',
      ours: samples,
      raw: undefined,
      result: `${processes} processes, ${median(samples).toFixed(1)} ms`,
      toReach: 'no process',
      reached: processes === 0,
    },
  ]
}

const newRows = async (stage: Stage): Promise<Row[]> => {
  await using world = await stage.world(30_000, { spares: 1 })
  const { context, codebase } = world
  const spares = async (): Promise<number> => (await context.store.spares.list(codebase.id)).length
  await using started = await timedEngine(world)
  const samples = await interleaved(
    {
      ours: {
        prepare: async (round) => {
          await bind(world, `new-${round}`, undefined)
          await keepSpares(context, codebase)
          if ((await spares()) !== 1) throw new Error('no spare was prepared')
        },
        run: async (round) => started.begin(`new-${round}`),
        after: async () => {
          await started.ended()
          if ((await spares()) !== 0) throw new Error('the spare was not used')
        },
      },
      raw: {
        run: async (round) => {
          const path = join(world.root, 'raw', `raw-${round}`)
          await world.byHand('worktree', 'add', '--no-track', '-b', `raw-${round}`, path, 'main')
        },
      },
    },
    { rounds: 5, settle: stage.settle },
  )
  return [ratioRow('message to agent start, new environment from a warm spare, 30,000 files', samples, 0.5)]
}

const bind = async ({ context, codebase }: World, conversationId: string, environmentId: Bound): Promise<void> => {
  const now = context.clock()
  await context.store.conversations.ensure({
    id: context.ids(),
    platform: 'test',
    conversationId,
    codebaseId: codebase.id,
    environmentId,
    persistent: false,
    agent: undefined,
    lastActivityAt: now,
    closedAt: undefined,
    createdAt: now,
  })
}

type Bound = Awaited<ReturnType<World['create']>>['id'] | undefined

type TimedEngine = AsyncDisposable & {
  /** Resolves when the agent is called. */
  begin(conversationId: string): Promise<void>
  /** Resolves when the last message is done. */
  ended(): Promise<void>
  /** Runs both; returns the time until the agent was called and the processes started by then. */
  say(conversationId: string): Promise<{ readonly ms: number; readonly started: number }>
}

const timedEngine = async (world: World): Promise<TimedEngine> => {
  let called = Promise.withResolvers<void>()
  let done = Promise.withResolvers<void>()
  let processes = 0
  let said = 0
  const count = (): void => {
    processes += 1
  }
  for (const name of processChannels) subscribe(name, count)
  const engine = createStubEngine(world, new Map([['test', createTestPlatform()]]), () => called.resolve())
  engine.changes.subscribe((change) => {
    if (change.type === 'message' && change.state === 'done') done.resolve()
  })
  await engine.conversations.start()
  const begin = async (conversationId: string): Promise<void> => {
    called = Promise.withResolvers()
    done = Promise.withResolvers()
    said += 1
    const message = { platform: 'test', conversationId, deliveryId: `d${said}`, kind: 'message', details: {} } as const
    await engine.conversations.accept({ ...message, text: 'fix the login bug' })
    await Promise.race([called.promise, done.promise.then(() => Promise.reject(new Error('no agent was called')))])
  }
  const ended = (): Promise<void> => done.promise
  return {
    begin,
    ended,
    say: async (conversationId) => {
      const before = processes
      const at = performance.now()
      await begin(conversationId)
      const answer = { ms: performance.now() - at, started: processes - before }
      await ended()
      return answer
    },
    [Symbol.asyncDispose]: async () => {
      for (const name of processChannels) unsubscribe(name, count)
      await engine.conversations.stop(10_000)
    },
  }
}
