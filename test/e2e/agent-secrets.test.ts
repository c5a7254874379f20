import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { makeServerWorld, type ServerWorld, textsOf, until } from '../helpers/server-process.ts'

/* What an agent, which runs as the same user, finds out about the server that started it. */

const root = resolve(import.meta.dirname, '../..')
const pinned = join(root, 'node_modules/node/bin/node')
const launcher = join(root, 'bin/coppice.js')
const main = join(root, 'src/main.ts')

/** The first `node` on the PATH that is older than ours: with it the launcher stays as the parent of the server. */
const older = (process.env['PATH'] ?? '')
  .split(delimiter)
  .map((directory) => join(directory, 'node'))
  .filter((file) => existsSync(file))
  .find((file) => {
    const { stdout } = spawnSync(file, ['-p', 'process.versions.node'], { encoding: 'utf8' })
    return Number(stdout.split('.')[0]) < 24
  })

/** Looks through the environment of every process that it may read. What it looks for is in none of its own variables. */
const lookout = (world: ServerWorld, canary: string): string => {
  writeFileSync(world.box.path('canary'), canary)
  const script = world.box.path('look.sh')
  writeFileSync(
    script,
    `canary=$(cat '${world.box.path('canary')}')
for process in /proc/[0-9]*; do
  if tr '\\0' '\\n' < $process/environ 2>/dev/null | grep -qF "$canary"; then
    echo "found in $(tr '\\0' ' ' < $process/cmdline)"
  fi
done
env | grep -c COPPICE_HOME
echo looked
`,
  )
  return `sh '${script}'`
}

/** Under names that say what they are, under one that says nothing, and inside an address. */
const canaries = (canary: string): Record<string, string> => ({
  GITHUB_TOKEN: `${canary}-token`,
  SLACK_SIGNING_SECRET: `${canary}-secret`,
  UNHEARD_OF: `${canary}-unheard-of`,
  SOME_DATABASE: `postgres://user:${canary}@db/x`,
})

describe.skipIf(process.platform !== 'linux')('an agent finds no secret in the environment of our processes', () => {
  test.each([
    ['from source', [pinned, main], []],
    ['by its launcher', [pinned, launcher], []],
    ...(older === undefined ? [] : [['by its launcher in an older Node', [older, launcher], []] as const]),
    // A shell that waits, as npm does: it is not ours, and keeps what it was given.
    [
      'by a shell, as npm start does',
      ['/bin/sh', '-c', '"$0" "$@" & server=$!; trap "kill $server" TERM; wait; wait', pinned, main],
      [expect.stringMatching(/^found in \/bin\/sh /)],
    ],
  ] as const)('when the server was started %s', async (_, program, found) => {
    const canary = `canary-${randomUUID()}`
    await using world = makeServerWorld()
    await world.project()
    const env = { ...canaries(canary), COPPICE_AGENT_COMMAND: lookout(world, canary) }
    const server = await world.serve({ env, program })
    const said = textsOf(await server.ask('somebody', 'go on')).at(-1)
    const { out } = await server.stop()
    expect(said?.trim().split('\n')).toEqual([...found, '0', 'looked'])
    expect(out).not.toContain('agents can read')
  })

  test('when there is no server and the command line does the work itself', async () => {
    const canary = `canary-${randomUUID()}`
    await using world = makeServerWorld()
    const repo = await world.project()
    const env = {
      ...canaries(canary),
      COPPICE_AGENT_COMMAND: `${lookout(world, canary)}; env | grep -c COPPICE_RUN_TOKEN`,
    }
    const { out } = await world.cliWith(env, repo.path, 'chat', 'go on')
    expect(out).toContain('0\nlooked\n0\n')
    expect(out).not.toContain('found in')
  })
})

test('a run can ask the server about itself with a token of its own, as long as it runs', async () => {
  await using world = makeServerWorld()
  await world.project()
  // Says what it was given, and works on until it may end.
  const agent = `me=$HOME/\${COPPICE_CONVERSATION#test:}
mkfifo "$me.end"
echo "$COPPICE_URL $COPPICE_RUN_TOKEN" > "$me.new" && mv "$me.new" "$me"
echo "my token is $COPPICE_RUN_TOKEN"
read -r word < "$me.end"`
  const home = world.env['HOME'] ?? ''
  const server = await world.serve({ env: { COPPICE_AGENT_COMMAND: agent } })
  const given = (conversation: string): Promise<string[]> =>
    until(`${conversation} runs`, async () => {
      const file = join(home, conversation)
      return existsSync(file) ? readFileSync(file, 'utf8').trim().split(' ') : undefined
    })
  const end = (conversation: string): Promise<void> => writeFile(join(home, `${conversation}.end`), 'now\n')
  await server.say('one', 'go on')
  await server.say('two', 'go on')
  const [url = '', one = ''] = await given('one')
  const [, two = ''] = await given('two')
  expect(url).toBe(server.url)
  expect(one).not.toBe(two)
  const ask = async (token: string, path: string): Promise<{ status: number; body: unknown }> => {
    const answer = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } })
    return { status: answer.status, body: await answer.json() }
  }
  const first = await ask(one, '/api/run')
  const second = await ask(two, '/api/run')
  expect([first.body, second.body]).toMatchObject([
    { conversation: { platform: 'test', conversationId: 'one' }, codebase: 'project', attempt: 1 },
    { conversation: { platform: 'test', conversationId: 'two' } },
  ])
  const environments = [first, second].map(({ body }) => (body as { environment: { id: string } }).environment.id)
  const asked = async (token: string): Promise<number[]> => [
    (await ask(token, `/api/environments/${environments[0]}`)).status,
    (await ask(token, `/api/environments/${environments[1]}`)).status,
    (await ask(token, '/api/conversations/one/messages?platform=test')).status,
    (await ask(token, '/api/conversations/two/messages?platform=test')).status,
    (await ask(token, '/api/status')).status,
  ]
  expect(await asked(one)).toEqual([200, 403, 200, 403, 403])
  expect(await asked(two)).toEqual([403, 200, 403, 200, 403])
  await end('one')
  await until('the first run is over', async () => (await ask(one, '/api/run')).status === 401 || undefined)
  expect(await asked(one)).toEqual([401, 401, 401, 401, 401])
  expect((await ask(two, '/api/run')).status).toBe(200)
  await end('two')
  await server.quiet()
  expect(textsOf(await server.messages('one')).at(-1)).toBe('my token is [hidden]\n')
})
