import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { makeServerWorld, type ServerWorld } from '../../helpers/server-process.ts'

const program = resolve(import.meta.dirname, '../../helpers/acp/agent.ts')

/** An agent that asks twice before it acts. */
const asking = async (): Promise<{ world: ServerWorld; traces: string }> => {
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
  acp: { tester: { command: ["${process.execPath}", "${program}", asks, "${traces}"] } }
`,
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
  expect((await server.ask('T1', '/allow')).at(-1)?.text).toBe('Nobody asks anything here at the moment.')
  await server.say('T1', 'go on')
  await heard('`tester` asks whether it may: npm test')
  // Another thread cannot answer for this one.
  await server.say('T2', '/allow')
  await server.say('T1', '/allow')
  await heard('`tester` asks whether it may: rm -rf build')
  await server.say('T1', '/deny')
  await server.quiet()
  const answers = readFileSync(join(traces, 'answers'), 'utf8').trim().split('\n')
  expect(answers.map((line) => JSON.parse(line) as unknown)).toEqual([
    { ok: { outcome: { outcome: 'selected', optionId: 'yes' } } },
    { ok: { outcome: { outcome: 'selected', optionId: 'no' } } },
  ])
  const said = (await server.messages('T1')).map(({ text }) => text)
  expect(said).toEqual(expect.arrayContaining(['Allowed, this once.', 'Denied.', 'asked']))
  await server.stop()
})

test('/stop ends an agent that waits for an answer', async () => {
  const { world } = await asking()
  await using _ = world
  const server = await world.serve()
  await server.say('T1', 'go on')
  while (!(await server.messages('T1')).some(({ text }) => text.includes('asks whether it may'))) {
    await new Promise((done) => setTimeout(done, 20))
  }
  await server.ask('T1', '/stop')
  expect((await server.messages('T1')).map(({ text }) => text).join('\n')).toContain('Stopped')
  await server.stop()
})
