import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'vitest'
import { makeServerWorld, type ServerWorld, until } from '../helpers/server-process.ts'
import { testInTmux } from '../helpers/tmux.ts'

/**
 * An agent whose commands can't reach the home: Codex by the shape of its command line, as a script. The real one, in
 * its own sandbox, is in test/agents/fleet-sessions.test.ts.
 */

const worker = resolve(import.meta.dirname, '../helpers/fleet-worker.sh')

const answers = [
  { id: 0, result: { userAgent: 'coppice/0.166.0 (x)' } },
  { id: 1, result: { account: { type: 'apiKey' }, requiresOpenaiAuth: true } },
  { id: 2, result: { data: [] } },
  { id: 3, result: { data: [] } },
].map((answer) => `echo '${JSON.stringify(answer)}'`)

const confined = `#!/bin/sh
case "$*" in
  --version) echo 'codex-cli 0.166.0' ;;
  login*) echo 'Logged in using an API key' ;;
  sandbox*) ;;
  app-server*) ${answers.join('; ')}; cat >/dev/null ;;
  *) export COPPICE_HOME=/no/such/home; exec sh '${worker}' ;;
esac
`

const atWork = async (world: ServerWorld) => {
  const command = world.box.path('codex.sh')
  writeFileSync(command, confined, { mode: 0o755 })
  writeFileSync(
    join(world.home, 'config.yaml'),
    `worktrees: { spares: 0 }
agent: { default: codex, codex: { command: "${command}", sandbox: workspace-write } }
fleet: { session: tmux, supervisor: lead, pools: { workers: { done: push, names: [alder] } } }
`,
  )
  const repo = await world.project()
  await world.json(repo.path, 'item', 'add', 'Fix login')
  const { environment } = await world.json<{ environment: { path: string; branch: string } }>(repo.path, 'sling', '1')
  const order = async (line: string, agent = 'alder'): Promise<void> => {
    expect(await world.cli(repo.path, 'nudge', agent, line)).toMatchObject({ code: 0 })
  }
  const printed = (file: string): Promise<string> =>
    until(`it has written ${file}`, async () => {
      const path = join(environment.path, file)
      return existsSync(path) ? readFileSync(path, 'utf8') : undefined
    })
  return { repo, environment, order, printed }
}

testInTmux.each([true, false])('prime and done work from inside, with a server: %s', async (withServer) => {
  await using world = makeServerWorld()
  const { repo, environment, order, printed } = await atWork(world)
  const server = withServer ? await world.serve() : undefined
  await order('coppice prime >prime.tmp; coppice prime --json >json.tmp; mv json.tmp ../json; mv prime.tmp prime')
  expect(await printed('prime')).toContain('Fix login')
  expect(JSON.parse(await printed('../json'))).toMatchObject({ item: { id: 1, title: 'Fix login' } })
  // With the words, and the exit code, that it would have without.
  await order('coppice done >out 2>err; echo $? >code.tmp; mv code.tmp code')
  expect(await printed('code')).toBe('3\n')
  expect(await printed('err')).toContain('untracked')
  await order('coppice done --mode nothing >out 2>err; echo $? >code.tmp; mv code.tmp code2')
  expect(await printed('code2')).toBe('1\n')
  expect(await printed('err')).toContain('Choose one of: push, pr, land, discard')
  await order('rm -f prime out err code code2; commit login; coppice done >../out 2>&1; echo $? >../code')
  const show = () => world.json<{ state: string; agent: string | null }>(repo.path, 'item', 'show', '1')
  await until('its item is closed', async () => ((await show()).state === 'closed' ? true : undefined))
  await until('it is gone', async () => {
    const { agents } = await world.json<{ agents: unknown[] }>(repo.path, 'fleet', 'status')
    return agents.length === 0 ? true : undefined
  })
  expect(existsSync(environment.path)).toBe(false)
  expect(world.box.raw(repo.origin, 'log', '-1', '--format=%s', environment.branch)).toBe('login')
  // It was told before its session ended.
  expect(readFileSync(join(environment.path, '..', 'out'), 'utf8')).toContain('Done (push)')
  expect(existsSync(join(world.home, 'fleet', 'agents', 'alder'))).toBe(false)
  await server?.stop()
})

testInTmux('the supervisor can park and nudge from inside, and nobody else can', async () => {
  await using world = makeServerWorld()
  const { repo, environment, order, printed } = await atWork(world)
  const park = (name: string) =>
    `coppice item park 1 "Which API?" >out 2>&1; echo $? >${environment.path}/${name}.tmp; mv ${environment.path}/${name}.tmp ${environment.path}/${name}`
  await order(park('refused'))
  expect(await printed('refused')).toBe('3\n')
  expect(await printed('out')).toContain("only the fleet's supervisor can do this")
  await world.json(repo.path, 'crew', 'add', 'lead')
  await order(park('allowed'), 'lead')
  expect(await printed('allowed')).toBe('0\n')
  expect(await world.json(repo.path, 'item', 'show', '1')).toMatchObject({ state: 'parked' })
  await order('coppice nudge alder "touch nudged"', 'lead')
  expect(await printed('nudged')).toBe('')
  await world.cli(repo.path, 'fleet', 'down', '--grace', '0')
})

testInTmux('what a program would take for a command of its own is a message', async () => {
  await using world = makeServerWorld()
  const { repo, order } = await atWork(world)
  await order('/exit')
  await order('look at @src')
  await until('it got both', async () => {
    const { out } = await world.cli(repo.path, 'peek', 'alder', '--lines', '100')
    return out.includes('ready after: Message: /exit') && out.includes('ready after: look at @src') ? true : undefined
  })
  await world.cli(repo.path, 'fleet', 'down', '--grace', '0')
  execFileSync('sh', ['-c', `tmux -S '${join(world.home, 'fleet', 'tmux')}' kill-server 2>/dev/null || :`])
})
