import { once } from 'node:events'
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import { describe, expect, test } from 'vitest'
import { runningServer } from '../../../src/server/record.ts'
import { makeServerWorld, onEachDatabase, type ServerWorld, textsOf, until } from '../../helpers/server-process.ts'

/** What a person reads is sentences: no stack, no name of an exception, no path of our source. */
const isSpeech = (text: string): boolean => !/\n\s+at |Error:|node:internal|src\/|undefined|\[object/.test(text)

const told = async (
  world: ServerWorld,
  options: Parameters<ServerWorld['serve']>[0],
  message = 'go on',
): Promise<string[]> => {
  const server = await world.serve(options)
  const said = textsOf(await server.ask('somebody', message)).map((text) => text.trim())
  expect(said.filter((text) => !isSpeech(text))).toEqual([])
  expect((await server.call('/healthz')).status, 'it runs on').toBe(200)
  await server.stop()
  return said
}

describe('a message that cannot be worked on is answered with what happened and what to do', () => {
  test('an unknown command gets the nearest one', async () => {
    await using world = makeServerWorld()
    await world.project()
    expect(await told(world, {}, '/worktre list')).toEqual([
      'Unknown command "/worktre".\nDid you mean `/worktree`? Run `/help` for a list of commands.',
    ])
  })

  test('no codebase at all', async () => {
    await using world = makeServerWorld()
    expect(await told(world, {})).toEqual([
      'This conversation has no repository, and none is registered. Clone one with `/clone <url>`, or register a local one with `coppice codebase add <path>`.',
    ])
  })

  test('several codebases and none of them bound, until one is', async () => {
    await using world = makeServerWorld()
    await world.project('one')
    await world.project('two')
    const server = await world.serve()
    expect(textsOf(await server.ask('somebody', 'go on'))).toEqual([
      'This conversation has no repository. Choose one with `/codebase <name>`: `one`, `two`.',
    ])
    expect(textsOf(await server.ask('somebody', '/codebase three'))).toEqual([
      'Unknown codebase "three".\nRegistered: one, two. Add another with `/clone <url>`.',
    ])
    expect(textsOf(await server.ask('somebody', '/codebase two'))[0]).toMatch(/^This conversation now uses `two`/)
    const [place, answer] = await server.ask('somebody', 'go on')
    expect(place?.text).toMatch(/^Working in isolated branch `thread-/)
    expect(answer?.role).toBe('agent')
    const trees = await world.json<unknown[]>(world.box.path('one'), 'worktree', 'list')
    expect(trees).toEqual([])
    expect(textsOf(await server.ask('somebody else', 'go on', { codebase: 'three' }))).toEqual([
      'Unknown codebase `three`. Registered: one, two.',
    ])
  })

  test('an agent that nobody knows', async () => {
    await using world = makeServerWorld()
    await world.project()
    const [reply, ...more] = await told(world, { env: { COPPICE_AGENT: 'claud' } })
    expect(more).toEqual([])
    expect(reply).toMatch(/^Unknown agent "claud" \(the configured default.*\)\. Choose one of: .*demo\.$/)
    const server = await world.serve()
    expect(textsOf(await server.ask('somebody', '/agent dmo'))[0]).toMatch(
      /^Unknown agent "dmo"\.\nDid you mean demo\?/,
    )
    const refused = await server.post('/api/conversations/x/messages', { message: 'go on', agent: 'claud' })
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { error: { message: expect.stringContaining('unknown agent') } },
    ])
  })

  test('a codebase whose repository is gone, also when the server starts', async () => {
    await using world = makeServerWorld()
    const repo = await world.project()
    const server = await world.serve()
    await server.ask('before', 'go on')
    renameSync(repo.path, `${repo.path}-elsewhere`)
    const replies = [...(await server.ask('before', 'go on')), ...(await server.ask('after', 'go on'))]
    await server.stop()
    expect(replies.map(({ role }) => role)).toEqual(['system', 'system'])
    for (const { text } of replies) expect([text, isSpeech(text)]).toEqual([expect.stringContaining(repo.path), true])
    const again = await told(world, {})
    expect(again).toEqual([expect.stringContaining(repo.path)])
    // It comes back with its disk, and so does the work.
    renameSync(`${repo.path}-elsewhere`, repo.path)
    const back = await world.serve()
    expect((await back.ask('before', 'go on')).map(({ role }) => role)).toEqual(['agent'])
  })

  test('an agent that fails says so with its last words', async () => {
    await using world = makeServerWorld()
    await world.project()
    const said = await told(world, {
      env: { COPPICE_AGENT_COMMAND: 'echo half an answer; echo "the model is not reachable" >&2; exit 3' },
    })
    expect(said[1]).toBe('half an answer')
    expect(said[2]).toMatch(
      /^The agent's command exited with code 3: the model is not reachable\. Send the message again, or run COPPICE_AGENT_COMMAND yourself in \S+ to see what fails\.$/,
    )
    expect(said).toHaveLength(3)
  })

  test('an agent whose program is not there', async () => {
    await using world = makeServerWorld()
    await world.project()
    const said = await told(world, { env: { COPPICE_AGENT_COMMAND: 'no-such-agent --fast' } })
    expect(said[1]).toMatch(/exited with code 127.*not found.*Check that COPPICE_AGENT_COMMAND is an executable/)
  })

  test('an agent that says nothing', async () => {
    await using world = makeServerWorld()
    await world.project()
    expect((await told(world, { env: { COPPICE_AGENT_COMMAND: 'true' } }))[1]).toBe(
      'The agent finished without a reply.',
    )
  })

  test('a reply of a megabyte is cut in the middle, with its beginning, its end and how much is missing', async () => {
    await using world = makeServerWorld()
    await world.project()
    const [, reply = ''] = await told(world, {
      env: { COPPICE_AGENT_COMMAND: 'echo first; head -c 1000000 /dev/zero | tr "\\0" x; echo; echo last' },
    })
    expect(reply.length).toBeLessThan(101_000)
    expect(reply).toMatch(/^first\nx+\n\n\[… 90\d{4} bytes of output omitted …\]\n\nx+\nlast$/)
  })

  test('a repository without commits', async () => {
    await using world = makeServerWorld()
    const repo = world.box.repo('young')
    await world.json(world.box.root, 'codebase', 'add', repo.path)
    repo.git('update-ref', '-d', 'refs/heads/main')
    const [reply, ...more] = await told(world, {})
    expect(more).toEqual([])
    expect(reply).toMatch(/^Young has no commits yet, so there is nothing to start from\. .*commit/i)
  })
})

describe('a server that cannot start says why in a sentence', () => {
  const refusal = async (world: ServerWorld, ...args: string[]): Promise<string> => {
    const { code, out, err } = await world.cli(world.box.root, 'serve', '--test-platform', ...args)
    expect([code, out]).toEqual([1, ''])
    expect(isSpeech(err) || err).toBe(true)
    return err
  }

  test('a second one on the same home is told where the first one is', async () => {
    await using world = makeServerWorld()
    const first = await world.serve()
    expect(await refusal(world, '--port', '0')).toBe(
      `coppice: a server is already running for this home at ${first.url}.\nUse that server, stop it first, or start another one with a different --home.\n`,
    )
    expect((await first.call('/healthz')).status).toBe(200)
    expect(existsSync(join(world.home, 'server.json')), "the first one's record stays").toBe(true)
    await first.stop()
    await (await world.serve()).stop()
  })

  test('a port that is in use, and what waits in the home is left to the next start', async () => {
    await using world = makeServerWorld()
    await world.project()
    const ran = world.box.path('ran')
    const agent = `echo $COPPICE_ATTEMPT >> '${ran}'; while [ $COPPICE_ATTEMPT = 1 ] && [ -e '${ran}' ]; do sleep 0.05; done; echo done`
    const env = { COPPICE_AGENT_COMMAND: agent }
    const first = await world.serve({ env })
    await first.say('somebody', 'go on')
    await until('the agent runs', async () => existsSync(ran) || undefined)
    await first.stop('SIGKILL')

    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const address = taken.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    try {
      const { code, out, err } = await world.cliWith(
        env,
        world.box.root,
        'serve',
        '--test-platform',
        '--port',
        String(port),
      )
      expect([code, out]).toEqual([1, ''])
      expect(err).toBe(
        `coppice: port ${port} on 127.0.0.1 is in use.\nAnother server may be using it; choose another port with --port.\n`,
      )
      expect(existsSync(join(world.home, 'server.json')) && runningServer(world.home)).toBeFalsy()
      expect(readFileSync(ran, 'utf8')).toBe('1\n')
    } finally {
      taken.close()
    }
    const next = await world.serve({ env })
    await next.quiet()
    expect(readFileSync(ran, 'utf8')).toBe('1\n2\n')
    expect(
      textsOf(await next.messages('somebody'))
        .at(-1)
        ?.trim(),
    ).toBe('done')
  })

  onEachDatabase((database) => {
    test('a home that a newer version wrote', async () => {
      const env = await database()
      await using world = makeServerWorld({ env })
      await world.project()
      await fromTheFuture(world, env['COPPICE_DATABASE_URL'])
      expect(await refusal(world, '--port', '0')).toMatch(
        /^coppice: the database was written by a newer version of coppice: it is at migration 99, but this version only knows \d+\.\nUse the newer version; nothing was changed\.\n$/,
      )
      expect((await world.cli(world.box.root, 'chat', 'hello')).code).toBe(1)
    })
  })

  test('a home whose token was deleted gets a new one, and the old one opens nothing', async () => {
    await using world = makeServerWorld()
    const first = await world.serve()
    await first.stop()
    rmSync(join(world.home, 'token'))
    const second = await world.serve()
    expect(second.token).not.toBe(first.token)
    expect(readFileSync(join(world.home, 'token'), 'utf8').trim()).toBe(second.token)
    expect((await fetch(`${second.url}/metrics`, { headers: { authorization: `Bearer ${first.token}` } })).status).toBe(
      401,
    )
  })
})

const fromTheFuture = async (world: ServerWorld, url: string | undefined): Promise<void> => {
  const statement = "insert into migrations (number, name) values (99, 'from-the-future')"
  if (url === undefined) {
    const database = new DatabaseSync(join(world.home, 'coppice.db'))
    database.exec(statement)
    database.close()
    return
  }
  const client = new Client(url)
  await client.connect()
  await client.query(statement)
  await client.end()
}
