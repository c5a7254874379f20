import { once } from 'node:events'
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import { describe, expect, test } from 'vitest'
import { runningServer } from '../../../src/server/record.ts'
import {
  makeServerWorld,
  onEachDatabase,
  type SayOptions,
  type ServerProcess,
  type ServerWorld,
  textsOf,
  until,
} from '../../helpers/server-process.ts'

/** What a person reads is sentences: no stack, no name of an exception, no path of our source. */
const isSpeech = (text: string): boolean => !/\n\s+at |Error:|node:internal|src\/|undefined|\[object/.test(text)

/** What each message gets of the agent: a failure, a program that is not there, nothing, a megabyte. */
const agent = `case "$(cat)" in
  fail) echo half an answer; echo "the model is not reachable" >&2; exit 3 ;;
  missing) no-such-agent --fast ;;
  silent) ;;
  long) echo first; head -c 1000000 /dev/zero | tr "\\0" x; echo; echo last ;;
  *) echo done ;;
esac`

/** Sentences only, and the server runs on. */
const toldBy =
  (server: ServerProcess) =>
  async (conversation: string, message: string, options?: SayOptions): Promise<string[]> => {
    const said = textsOf(await server.ask(conversation, message, options)).map((text) => text.trim())
    expect(said.filter((text) => !isSpeech(text))).toEqual([])
    expect((await server.call('/healthz')).status, 'it runs on').toBe(200)
    return said
  }

describe('a message that cannot be worked on is answered with what happened and what to do', () => {
  test('by a server that has no codebase, one, and several, and whatever its agent does', async () => {
    await using world = makeServerWorld()
    const server = await world.serve({ env: { COPPICE_AGENT_COMMAND: agent } })
    const told = toldBy(server)
    expect(await told('early', 'go on'), 'no codebase at all').toEqual([
      'This conversation has no repository, and none is registered. Clone one with `/clone <url>`, or register a local one on the server with `coppice codebase add <path>`.',
    ])

    await world.project('one')
    expect(await told('somebody', '/worktre list'), 'an unknown command gets the nearest one').toEqual([
      'Unknown command "/worktre".\nDid you mean `/worktree`? Run `/help` for a list of commands.',
    ])
    const failed = await told('fail', 'fail')
    expect(failed[1]).toBe('half an answer')
    expect(failed[2], 'its last words').toMatch(
      /^The agent's command exited with code 3: the model is not reachable\. Send the message again, or run COPPICE_AGENT_COMMAND yourself in \S+ to see what fails\.$/,
    )
    expect(failed).toHaveLength(3)
    expect((await told('fail', 'missing')).at(-1), 'a program that is not there').toMatch(
      /exited with code 127.*not found.*Check that COPPICE_AGENT_COMMAND is an executable/,
    )
    expect(await told('fail', 'silent')).toEqual(['The agent finished without a reply.'])
    const [reply = ''] = await told('fail', 'long')
    expect(reply.length).toBeLessThan(101_000)
    expect(reply, 'cut in the middle').toMatch(/^first\nx+\n\n\[… 90\d{4} bytes of output omitted …\]\n\nx+\nlast$/)

    const two = await world.project('two')
    expect(await told('several', 'go on')).toEqual([
      'This conversation has no repository. Choose one with `/codebase <name>`: `one`, `two`.',
    ])
    expect(await told('several', '/codebase three')).toEqual([
      'Unknown codebase "three".\nRegistered: one, two. Add another with `/clone <url>`.',
    ])
    expect((await told('several', '/codebase two'))[0]).toMatch(/^This conversation now uses `two`/)
    const [place, answer] = await server.ask('several', 'go on')
    expect(place?.text).toMatch(/^Working in isolated branch `thread-/)
    expect(answer?.role).toBe('agent')
    expect(await world.json<unknown[]>(two.path, 'worktree', 'list')).toHaveLength(1)
    expect(await world.json<unknown[]>(world.box.path('one'), 'worktree', 'list'), 'that of `fail`').toHaveLength(1)
    expect(await told('somebody else', 'go on', { codebase: 'three' })).toEqual([
      'Unknown codebase `three`. Registered: one, two.',
    ])

    const young = world.box.repo('young')
    await world.json(world.box.root, 'codebase', 'add', young.path)
    young.git('update-ref', '-d', 'refs/heads/main')
    expect(await told('young', 'go on', { codebase: 'young' })).toEqual([
      expect.stringMatching(
        /^Couldn't set up an isolated worktree of `young`: young has no commits yet, so there is nothing to start from\. Nothing was run\. Make a first commit \(`git commit/,
      ),
    ])
    await server.stop()
  })

  test('when the repository is gone, before and after a start, and when nobody knows the agent', async () => {
    await using world = makeServerWorld()
    const repo = await world.project('project')
    await world.project('other')
    const server = await world.serve()
    const codebase = 'project'
    await server.ask('before', '/agent demo', { codebase })
    await server.ask('before', 'go on')
    renameSync(repo.path, `${repo.path}-elsewhere`)
    const replies = [...(await server.ask('before', 'go on')), ...(await server.ask('after', 'go on', { codebase }))]
    await server.stop()
    expect(replies.map(({ role }) => role)).toEqual(['system', 'system'])
    for (const { text } of replies) expect([text, isSpeech(text)]).toEqual([expect.stringContaining(repo.path), true])

    const next = await world.serve({ env: { COPPICE_AGENT: 'claud' } })
    const told = toldBy(next)
    expect(await told('before', 'go on')).toEqual([expect.stringContaining(repo.path)])
    await told('since', '/agent demo', { codebase })
    expect(await told('since', 'go on')).toEqual([expect.stringContaining(repo.path)])
    // It comes back with its disk, and so does the work.
    renameSync(`${repo.path}-elsewhere`, repo.path)
    expect((await next.ask('before', 'go on')).map(({ role }) => role)).toEqual(['agent'])

    expect(await told('somebody', 'go on', { codebase: 'other' })).toEqual([
      expect.stringMatching(/^Unknown agent "claud" \(the configured default.*\)\. Choose one of: .*demo\.$/),
    ])
    expect((await told('somebody', '/agent dmo'))[0]).toMatch(/^Unknown agent "dmo"\.\nDid you mean demo\?/)
    const refused = await next.post('/api/conversations/x/messages', { message: 'go on', agent: 'claud' })
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { error: { message: expect.stringContaining('unknown agent') } },
    ])
  })
})

describe('a server that cannot start says why in a sentence', () => {
  const refusal = async (world: ServerWorld, env: Record<string, string>, ...args: string[]): Promise<string> => {
    const { code, out, err } = await world.cliWith(env, world.box.root, 'serve', '--test-platform', ...args)
    expect([code, out]).toEqual([1, ''])
    expect(isSpeech(err) || err).toBe(true)
    return err
  }

  test('a second one on the same home, a port that is in use; what waits in the home is left to the next start', async () => {
    await using world = makeServerWorld()
    await world.project()
    const ran = world.box.path('ran')
    const agent = `echo $COPPICE_ATTEMPT >> '${ran}'; while [ $COPPICE_ATTEMPT = 1 ] && [ -e '${ran}' ]; do sleep 0.05; done; echo done`
    const env = { COPPICE_AGENT_COMMAND: agent }
    const first = await world.serve({ env })
    await first.say('somebody', 'go on')
    await until('the agent runs', async () => existsSync(ran) || undefined)
    expect(await refusal(world, env, '--port', '0')).toBe(
      `coppice: a server is already running for this home at ${first.url}.\nUse that server, stop it first, or start another one with a different --home.\n`,
    )
    expect((await first.call('/healthz')).status).toBe(200)
    expect(existsSync(join(world.home, 'server.json')), "the first one's record stays").toBe(true)
    await first.stop('SIGKILL')

    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const address = taken.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    try {
      expect(await refusal(world, env, '--port', String(port))).toBe(
        `coppice: port ${port} on 127.0.0.1 is in use.\nAnother server may be using it; choose another port with --port.\n`,
      )
      expect(existsSync(join(world.home, 'server.json')) && runningServer(world.home)).toBeFalsy()
      expect(readFileSync(ran, 'utf8')).toBe('1\n')
    } finally {
      taken.close()
    }

    // A home whose token was deleted gets a new one, and the old one opens nothing.
    rmSync(join(world.home, 'token'))
    const next = await world.serve({ env })
    expect(next.token).not.toBe(first.token)
    expect(readFileSync(join(world.home, 'token'), 'utf8').trim()).toBe(next.token)
    expect((await fetch(`${next.url}/metrics`, { headers: { authorization: `Bearer ${first.token}` } })).status).toBe(
      401,
    )
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
      expect(await refusal(world, {}, '--port', '0')).toMatch(
        /^coppice: the database was written by a newer version of coppice: it is at migration 99, but this version only knows \d+\.\nUse the newer version; nothing was changed\.\n$/,
      )
      expect((await world.cli(world.box.root, 'chat', 'hello')).code).toBe(1)
    })
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
