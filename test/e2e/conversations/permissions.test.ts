import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { isAlive, makeServerWorld, type ServerProcess, type ServerWorld, until } from '../../helpers/server-process.ts'

const program = resolve(import.meta.dirname, '../../helpers/acp/agent.ts')

/** An agent that asks twice before it acts, or behaves as badly as it is told to. */
const asking = async (behaviour = 'asks', config = ''): Promise<{ world: ServerWorld; traces: string }> => {
  const world = makeServerWorld()
  const traces = world.box.path('traces')
  mkdirSync(traces)
  const options = [
    { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
    { optionId: 'no', name: 'No', kind: 'reject_once' },
  ]
  const wish = (title: string) => [
    'session/request_permission',
    { toolCall: { toolCallId: title, title, kind: 'execute' }, options },
  ]
  writeFileSync(join(traces, 'requests'), JSON.stringify([wish('npm test'), wish('rm -rf build')]))
  writeFileSync(
    join(world.home, 'config.yaml'),
    `worktrees: { spares: 0 }
agent:
  default: tester
  permissions: ask
  acp: { tester: { command: ["${process.execPath}", "${program}", ${behaviour}, "${traces}"] } }
${config}`,
  )
  await world.project()
  return { world, traces }
}

const timesHeard = async (server: ServerProcess, conversation: string, text: string): Promise<number> =>
  (await server.messages(conversation)).filter((said) => said.text.includes(text)).length

const isHeard = (server: ServerProcess, conversation: string, text: string, times = 1): Promise<true> =>
  until(`${conversation} hears "${text}" ${times} times`, async () =>
    (await timesHeard(server, conversation, text)) === times ? true : undefined,
  )

test('what an agent asks goes to its thread: /allow, /deny and /stop answer, waiting takes no place, and after a crash it is asked again', async () => {
  const { world, traces } = await asking()
  await using _ = world
  const env = { MAX_CONCURRENT_CONVERSATIONS: '3' }
  const server = await world.serve({ env })
  expect((await server.ask('T1', '/allow')).at(-1)?.text).toBe('No pending question.')
  await server.say('T1', 'go on')
  await isHeard(server, 'T1', '`tester` asks for permission: npm test')
  // Another thread cannot answer for this one.
  await server.say('T2', '/allow')
  await server.say('T1', '/allow')
  await isHeard(server, 'T1', '`tester` asks for permission: rm -rf build')
  await server.say('T1', '/deny')
  await server.quiet()
  const answers = readFileSync(join(traces, 'answers'), 'utf8').trim().split('\n')
  expect(answers.map((line) => JSON.parse(line) as unknown)).toEqual([
    { ok: { outcome: { outcome: 'selected', optionId: 'yes' } } },
    { ok: { outcome: { outcome: 'selected', optionId: 'no' } } },
  ])
  const said = (await server.messages('T1')).map(({ text }) => text)
  expect(said).toEqual(expect.arrayContaining(['Allowed once.', 'Denied.', 'asked']))

  // As many wait as are worked on at once: the next one is worked on all the same.
  const waiting = ['W1', 'W2', 'W3']
  const asked = async (of: ServerProcess, times: number): Promise<void> => {
    for (const name of waiting) await isHeard(of, name, 'asks for permission: npm test', times)
  }
  await Promise.all(waiting.map((name) => server.say(name, 'go on')))
  await asked(server, 1)
  await server.say('fourth', '/agent demo')
  await server.say('fourth', 'work')
  await isHeard(server, 'fourth', 'Done: committed for real.')
  await server.stop('SIGKILL')

  const next = await world.serve({ env })
  await asked(next, 2)
  await next.say('W1', '/allow')
  await isHeard(next, 'W1', 'asks for permission: rm -rf build')
  await next.say('W2', '/stop')
  await isHeard(next, 'W2', 'Stopped. The work so far is in the worktree.')
  // Nothing is there to wait for: the agents that wait are put back.
  const ended = await next.stop()
  expect(ended.out).toContain('2 unfinished messages will run again on the next start.')
})

test('an agent or a setup command that never ends is ended at limits.runMinutes with all that it started, and the thread says how to continue', async () => {
  const { world, traces } = await asking('hangs', 'limits: { runMinutes: 0.1 }\n')
  await using _ = world
  const repo = await world.project('other')
  const setup = join(traces, 'setup-pid')
  repo.commit('.coppice/config.yaml', `worktree:\n  setup: echo $$ > '${setup}'; while :; do sleep 0.1; done\n`)
  repo.git('push', '-q')
  expect((await world.cli(repo.path, 'codebase', 'trust', 'other')).code).toBe(0)
  const server = await world.serve()
  await server.say('T1', 'go on', { codebase: 'project' })
  await server.say('T2', 'go on', { codebase: 'other' })
  await server.quiet()
  expect((await server.messages('T1')).at(-1)?.text).toMatch(/^Stopped: the run reached its limit of 0\.1 minutes\./)
  const pids = readFileSync(join(traces, 'pids'), 'utf8').trim().split('\n').map(Number)
  expect(pids.filter(isAlive)).toEqual([])
  // Before there was an agent.
  const second = (await server.messages('T2')).map(({ text }) => text)
  expect(second.join('\n')).toContain('Stopped: the run reached its limit of 0.1 minutes')
  expect(existsSync(setup) && isAlive(Number(readFileSync(setup, 'utf8')))).toBe(false)
  await server.say('T1', '/agent demo')
  expect((await server.ask('T1', 'continue')).map(({ text }) => text).join()).toContain('Done: committed for real.')
})
