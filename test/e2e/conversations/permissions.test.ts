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

test('what an agent asks goes to its thread, and /allow and /deny are the answers, beside the run', async () => {
  const { world, traces } = await asking()
  await using _ = world
  const server = await world.serve()
  const heard = async (text: string): Promise<void> => {
    while (!(await server.messages('T1')).some((said) => said.text.includes(text))) {
      await new Promise((done) => setTimeout(done, 20))
    }
  }
  expect((await server.ask('T1', '/allow')).at(-1)?.text).toBe('No pending permission request.')
  await server.say('T1', 'go on')
  await heard('`tester` asks for permission: npm test')
  // Another thread cannot answer for this one.
  await server.say('T2', '/allow')
  await server.say('T1', '/allow')
  await heard('`tester` asks for permission: rm -rf build')
  await server.say('T1', '/deny')
  await server.quiet()
  const answers = readFileSync(join(traces, 'answers'), 'utf8').trim().split('\n')
  expect(answers.map((line) => JSON.parse(line) as unknown)).toEqual([
    { ok: { outcome: { outcome: 'selected', optionId: 'yes' } } },
    { ok: { outcome: { outcome: 'selected', optionId: 'no' } } },
  ])
  const said = (await server.messages('T1')).map(({ text }) => text)
  expect(said).toEqual(expect.arrayContaining(['Allowed once.', 'Denied.', 'asked']))
  await server.stop()
})

test('/stop ends an agent that waits for an answer', async () => {
  const { world } = await asking()
  await using _ = world
  const server = await world.serve()
  await server.say('T1', 'go on')
  while (!(await server.messages('T1')).some(({ text }) => text.includes('asks for permission'))) {
    await new Promise((done) => setTimeout(done, 20))
  }
  await server.ask('T1', '/stop')
  expect((await server.messages('T1')).map(({ text }) => text).join('\n')).toContain('Stopped')
  await server.stop()
})

const timesHeard = async (server: ServerProcess, conversation: string, text: string): Promise<number> =>
  (await server.messages(conversation)).filter((said) => said.text.includes(text)).length

test('ten conversations wait for an answer: the eleventh is worked on, and after a crash each question is asked again', async () => {
  const { world } = await asking()
  await using _ = world
  const server = await world.serve()
  const names = Array.from({ length: 10 }, (_, n) => `T${n}`)
  const asked = async (of: ServerProcess, times: number): Promise<void> => {
    for (const name of names) {
      await until(`${name} is asked ${times} times`, async () =>
        (await timesHeard(of, name, 'asks for permission: npm test')) === times ? true : undefined,
      )
    }
  }
  await Promise.all(names.map((name) => server.say(name, 'go on')))
  await asked(server, 1)
  await server.say('eleventh', '/agent demo')
  await server.say('eleventh', 'work')
  await until('the eleventh is worked on', async () =>
    (await timesHeard(server, 'eleventh', 'Done: committed for real.')) === 1 ? true : undefined,
  )
  await server.stop('SIGKILL')
  const next = await world.serve()
  await asked(next, 2)
  await next.say('T0', '/allow')
  await until('the next question of the same run', async () =>
    (await timesHeard(next, 'T0', 'asks for permission: rm -rf build')) === 1 ? true : undefined,
  )
  // Nothing is there to wait for: the agents that wait are put back.
  const ended = await next.stop()
  expect(ended.out).toContain('10 unfinished messages will run again on the next start.')
})

test('an agent that never ends is ended at limits.runMinutes with all that it started, and the thread says how to continue', async () => {
  const { world, traces } = await asking('hangs', 'limits: { runMinutes: 0.1 }\n')
  await using _ = world
  const server = await world.serve()
  const said = await server.ask('T1', 'go on')
  expect(said.at(-1)?.text).toMatch(/^Stopped: the run reached its limit of 0\.1 minutes\./)
  const pids = readFileSync(join(traces, 'pids'), 'utf8').trim().split('\n').map(Number)
  expect(pids.filter(isAlive)).toEqual([])
  await server.say('T1', '/agent demo')
  expect((await server.ask('T1', 'continue')).map(({ text }) => text).join()).toContain('Done: committed for real.')
})

test('a setup command that never ends is ended at the limit, before there is an agent', async () => {
  const { world, traces } = await asking('asks', 'limits: { runMinutes: 0.1 }\n')
  await using _ = world
  const repo = await world.project('other')
  const pid = join(traces, 'setup-pid')
  repo.commit('.coppice/config.yaml', `worktree:\n  setup: echo $$ > '${pid}'; while :; do sleep 0.1; done\n`)
  repo.git('push', '-q')
  expect((await world.cli(repo.path, 'codebase', 'trust', 'other')).code).toBe(0)
  const server = await world.serve()
  const said = await server.ask('T1', 'go on', { codebase: 'other' })
  expect(said.map(({ text }) => text).join('\n')).toContain('Stopped: the run reached its limit of 0.1 minutes')
  expect(existsSync(pid) && isAlive(Number(readFileSync(pid, 'utf8')))).toBe(false)
})
