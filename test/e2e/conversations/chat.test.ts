import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { CliResult } from '../../helpers/cli.ts'
import { isAlive, makeServerWorld, onDatabase, type ServerWorld, until } from '../../helpers/server-process.ts'

type Chat = { conversationId: string; messages: { role: string; text: string; at: string }[] }

/** Says which session and which directory it is in, so that going on can be told from beginning anew. */
const agent = 'echo "session $COPPICE_SESSION"; pwd -P; echo "heard $(cat)"'

const chatJson = async (
  world: ServerWorld,
  env: Record<string, string>,
  cwd: string,
  ...args: string[]
): Promise<Chat> => parsed(await world.cliWith(env, cwd, 'chat', '--json', ...args))

const parsed = ({ code, out, err }: CliResult): Chat => {
  if (code !== 0) throw new Error(`exit code ${code}\n${out}\n${err}`)
  return JSON.parse(out) as Chat
}

const answersAndGoesOn =
  (how: 'without a server' | 'through a server that listens on every address'): Parameters<typeof onDatabase>[1] =>
  (database) => {
    test(`coppice chat ${how} answers, goes on, and says by its exit code how it went`, async () => {
      await using world = makeServerWorld({ env: { COPPICE_AGENT_COMMAND: agent, ...(await database()) } })
      const repo = await world.project()
      const everywhere = ['--host', '0.0.0.0', '--allow-remote']
      const server = how === 'without a server' ? undefined : await world.serve({ args: everywhere })

      const plain = await world.cli(repo.path, 'chat', 'fix', 'the login')
      expect(plain.code).toBe(0)
      expect(plain.out).toMatch(/Working in isolated branch `thread-[0-9a-f]{8}` of `project`/)
      expect(plain.out.match(/heard fix the login/g), 'streamed and not said twice').toHaveLength(1)
      const id = /chat --conversation (cli-\w+)/.exec(plain.out)?.[1] ?? ''
      expect(id).not.toBe('')
      const json = async (...args: string[]): Promise<Chat> =>
        parsed(await world.warm({}, repo.path, 'chat', '--json', ...args))

      const second = await json('--conversation', id, 'and a test')
      expect(second.conversationId).toBe(id)
      expect(second.messages[0]?.at).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
      expect(
        second.messages.map(({ role }) => role),
        'the place is told once',
      ).toEqual(['agent'])
      const session = /session \S+/.exec(plain.out)?.[0] ?? 'none'
      expect(second.messages[0]?.text).toContain(session)
      expect(second.messages[0]?.text).toContain('heard and a test')
      // Another conversation is another session in another tree.
      const other = await json('something else')
      expect(other.messages.at(-1)?.text).not.toContain(session)

      const demo = await json('--conversation', id, '--agent', 'demo', 'write it down')
      expect(demo.messages.at(-1)?.text).toMatch(/^Done: committed for real\./)
      const still = await json('--conversation', id, 'once more')
      expect(still.messages.at(-1)?.text, 'from now on').toContain('demo agent')

      const command = await world.warm({}, repo.path, 'chat', '--conversation', id, '/status')
      expect([command.code, command.out]).toEqual([0, expect.stringMatching(/Repository.*`project`/)])
      expect(command.out).not.toContain('Continue with')
      expect(command.out, 'a terminal shows no Markdown').not.toContain('**')
      const nothing = await world.warm({}, repo.path, 'chat')
      expect(nothing.code).toBe(2)
      const unknown = await world.warm({}, repo.path, 'chat', '--agent', 'nobody', 'go on')
      expect(unknown.code, `${unknown.out}${unknown.err}`).not.toBe(0)
      expect(unknown.out + unknown.err).toMatch(/unknown agent "nobody"/i)
      const outside = await world.warm({}, world.box.root, 'chat', '--codebase', 'nowhere', 'go on')
      expect([outside.code, outside.err]).toEqual([1, expect.stringContaining('nowhere')])
      const stopped = await server?.stop()
      expect(stopped?.code ?? 0).toBe(0)
    })
  }

onDatabase('postgres', answersAndGoesOn('without a server'))
onDatabase('sqlite', answersAndGoesOn('through a server that listens on every address'))

onDatabase('sqlite', (database) => {
  test('two coppice chat at once in one conversation, without a server, keep the order and each gets its own answer', async () => {
    await using world = makeServerWorld({ env: await database() })
    const repo = await world.project()
    const log = world.box.path('log')
    const gate = world.box.path('gate')
    const slow = `m=$(cat); echo "begin $m" >> '${log}'; while [ "$m" = first ] && [ -e '${log}' ] && [ ! -e '${gate}' ]; do sleep 0.02; done; echo "end $m" >> '${log}'; echo "heard $m at attempt $COPPICE_ATTEMPT"`
    const env = { COPPICE_AGENT_COMMAND: slow }
    const first = chatJson(world, env, repo.path, '--conversation', 'shared', 'first')
    await until('the first one runs', async () => existsSync(log) || undefined)
    const second = chatJson(world, env, repo.path, '--conversation', 'shared', 'second')
    const third = chatJson(world, env, repo.path, '--conversation', 'apart', 'third')
    // Another conversation does not wait for it.
    expect((await third).messages.at(-1)?.text.trim()).toBe('heard third at attempt 1')
    expect(readFileSync(log, 'utf8')).not.toContain('second')
    await world.cli(repo.path, 'worktree', 'list')
    expect(readFileSync(log, 'utf8')).not.toContain('second')
    writeFileSync(gate, '')
    const answers = await Promise.all([first, second])
    expect(answers.map(({ messages }) => messages.at(-1)?.text.trim())).toEqual([
      'heard first at attempt 1',
      'heard second at attempt 1',
    ])
    const lines = readFileSync(log, 'utf8')
      .trim()
      .split('\n')
      .filter((line) => !line.endsWith('third'))
    expect(lines).toEqual(['begin first', 'end first', 'begin second', 'end second'])
  })
})

test('what was said without a server is known to the server, and Ctrl-C ends the run and not the conversation', async () => {
  await using world = makeServerWorld()
  const repo = await world.project()
  const { conversationId } = await chatJson(world, { COPPICE_AGENT_COMMAND: agent }, repo.path, 'begin')
  const server = await world.serve({ env: { COPPICE_AGENT_COMMAND: agent } })
  const answer = await chatJson(world, {}, repo.path, '--conversation', conversationId, 'go on')
  expect(answer.messages.map(({ role }) => role)).toEqual(['agent'])
  const history = (await (await server.call(`/api/conversations/${conversationId}/messages?platform=cli`)).json()) as {
    role: string
    text: string
  }[]
  expect(history.filter(({ role }) => role === 'user').map(({ text }) => text)).toEqual(['begin', 'go on'])
  await server.stop()

  const began = world.box.path('began')
  const endless = `echo $$ > '${began}'; while [ -e '${began}' ]; do sleep 0.05; done`
  const interrupted: Promise<CliResult> = world.cliWith(
    { COPPICE_AGENT_COMMAND: endless },
    repo.path,
    'chat',
    '--conversation',
    conversationId,
    'for ever',
  )
  const pid = await until('the agent runs', async () =>
    existsSync(began) && readFileSync(began, 'utf8').endsWith('\n') ? Number(readFileSync(began, 'utf8')) : undefined,
  )
  world.interrupt('SIGINT')
  const { code, out, err } = await interrupted
  expect([code, isAlive(pid)]).toEqual([130, false])
  expect(out + err).toMatch(/Stopped|Cancelled/)
  const after = await chatJson(
    world,
    { COPPICE_AGENT_COMMAND: agent },
    repo.path,
    '--conversation',
    conversationId,
    'and now',
  )
  expect(after.messages.at(-1)?.text).toContain('heard and now')
})
