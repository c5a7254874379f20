import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { Client } from 'pg'
import { describe, expect, test } from 'vitest'
import { ensureToken } from '../../../src/server/token-file.ts'
import { makeServerWorld, onEachDatabase, type ServerProcess, textsOf } from '../../helpers/server-process.ts'

describe('the tripwire', () => {
  test('an agent that writes into the canonical checkout is reported exactly; one that stays in its tree trips nothing', async () => {
    await using world = makeServerWorld()
    const repo = await world.project()
    repo.commit('src/kept.txt', 'kept\n')
    repo.commit('src/lost.txt', 'lost\n')
    // Somebody's own unfinished work was there before, and is not the agent's.
    repo.write('mine.txt', 'unfinished\n')
    const before = repo.sha()
    const staying = 'echo a > a.txt && git add . && git commit -q -m a && rm README && git status --porcelain'
    const straying = [
      `cd '${repo.path}'`,
      'echo stray > stray.txt',
      'echo more >> README',
      'rm src/lost.txt',
      'echo committed > committed.txt',
      'git add committed.txt && git commit -q -m "not here" -- committed.txt',
      'echo done',
    ].join('\n')
    const agent = `if [ "$(cat)" = stay ]; then ${staying}; exit; fi\n${straying}`
    const server = await world.serve({ env: { COPPICE_AGENT_COMMAND: agent } })
    expect((await server.ask('tidy', 'stay')).map(({ role }) => role)).toEqual(['system', 'agent'])
    const said = await server.ask('somebody', 'stray')
    expect(said.map(({ role }) => role)).toEqual(['system', 'agent', 'system'])
    const [first, ...lines] = said[2]?.text.split('\n') ?? []
    expect(first).toBe(`The shared checkout at \`${repo.path}\` changed during the run (by the agent or someone else):`)
    expect(lines.toSorted()).toEqual(
      [
        `- HEAD moved from \`main\` (${before.slice(0, 10)}) to \`main\` (${repo.sha().slice(0, 10)})`,
        '- changed `README`',
        '- changed `src/lost.txt`',
        '- new `stray.txt`',
        '- reset to committed content `committed.txt`',
      ].toSorted(),
    )
  })
})

const canaries = {
  GITHUB_TOKEN: 'ghp_canary0000000000000000000000000000',
  SLACK_BOT_TOKEN: 'xoxb-canary-1111-2222',
  SOME_SERVICE_SECRET: 'canary-of-a-service',
  // Its name says nothing; it must stay out all the same.
  UNHEARD_OF: 'canary-of-nobody',
}

/** Of platforms that nothing starts: one setting is not enough to run them. */
const configured = { github: 'canary-of-config-yaml/1', telegram: 'canary-of config-yaml+2' }
const config = `worktrees:
  spares: 0
platforms:
  github:
    token: ${configured.github}
  telegram:
    webhookSecret: ${configured.telegram}
`

/**
 * Prints each secret in the home as programs do by accident: as it is, in two halves with a pause between, as base64, in
 * lines, on both streams.
 */
const printing = (home: string): string => `
token=$(cat '${home}/token' 2>/dev/null || echo none)
github='${configured.github}'; telegram='${configured.telegram}'
for secret in "$token" "$github" "$telegram" "\${COPPICE_RUN_TOKEN:-none}"; do
  echo "it is $secret."; echo "it is $secret." >&2
  printf 'in halves: %s' "$(printf %s "$secret" | cut -c1-12)"; sleep 0.3; printf '%s\n' "$(printf %s "$secret" | cut -c13-)"
  printf 'on two lines: %s\n    %s\n' "$(printf %s "$secret" | cut -c1-12)" "$(printf %s "$secret" | cut -c13-)"
  printf '%s' "$secret" | base64; printf '%s' "$secret" | od -An -v -tx1 | tr -d ' \n'; echo
done
cat '${home}/config.yaml'
`

/** It also names its branch, and a file that it commits, after the token. */
const blabbing = (home: string): string => `${printing(home)}
git checkout -q -b "$token" 2>/dev/null; echo x > "$token.txt"; git add .; git commit -q -m "$token"
`

/** In each of the forms in which it was printed. Short ends, which say nothing, may remain. */
const traces = (secret: string): string[] => [
  secret,
  secret.slice(0, 12),
  secret.slice(12, 24),
  Buffer.from(secret).toString('base64').slice(4, 16),
  Buffer.from(secret).toString('hex').slice(8, 40),
]

onEachDatabase((database, name) => {
  test("a secret of the server's environment is in no agent's environment, log, database or reply", async () => {
    const url = (await database())['COPPICE_DATABASE_URL']
    const password = url === undefined ? undefined : new URL(url).password
    const secrets = [...Object.values(canaries), ...(password === undefined ? [] : [password])]
    await using world = makeServerWorld({
      env: { ...canaries, ...(url !== undefined && { COPPICE_DATABASE_URL: url }) },
    })
    const repo = await world.project()
    repo.commit('.coppice/config.yaml', 'worktree:\n  setup: env > setup-env.txt\n')
    repo.git('push', '-q', 'origin', 'main')
    await world.cli(repo.path, 'codebase', 'trust', 'project')
    const agent = 'env > agent-env.txt; env; echo "and on standard error" >&2; env >&2; test "$(cat)" != fail'
    const server = await world.serve({ env: { COPPICE_AGENT_COMMAND: agent } })
    await server.ask('somebody', 'go on')
    const failed = await server.ask('somebody', 'fail')
    expect(textsOf(failed).at(-1)).toContain('exited with code 1')
    // Every kind of failure that speaks of the remote, the store or the process.
    repo.git('remote', 'set-url', 'origin', `https://x-access-token:${canaries.GITHUB_TOKEN}@127.0.0.1:9/app.git`)
    await server.ask('another', 'go on', { hints: { workflowType: 'pr', workflowId: '5', prBranch: 'feature' } })
    for (const command of ['/status', '/help', '/agent', '/worktree list', '/codebases', '/diff']) {
      await server.ask('somebody', command)
    }
    const replies = JSON.stringify([await server.messages('somebody'), await server.messages('another')])
    const metrics = await (await server.call('/metrics')).text()
    const status = await (await server.call('/api/status')).text()
    const ended = await server.stop()
    repo.git('remote', 'set-url', 'origin', repo.origin)

    const tree = world.box.path('state', 'worktrees', 'project')
    const dumped = filesUnder(tree).filter((path) => /(?:agent|setup)-env\.txt$/.test(path))
    const looked = new Set(dumped.map((path) => basename(path)))
    expect([...looked].toSorted(), 'the agent and the setup did look').toEqual(['agent-env.txt', 'setup-env.txt'])
    const places = {
      'environment of agent and setup': dumped.map((path) => readFileSync(path, 'utf8')).join('\n'),
      replies,
      metrics,
      status,
      output: ended.out + ended.err,
      // The log, the journal's files, the records, tokens, setup's output: all that is in the home.
      home: filesUnder(world.home)
        .map((path) => readFileSync(path, 'latin1'))
        .join('\n'),
      database: url === undefined ? '' : await dumpOf(url),
    }
    expect(places.home.length + places.database.length).toBeGreaterThan(10_000)
    const found = Object.entries(places).flatMap(([place, text]) =>
      secrets.filter((secret) => text.includes(secret)).map((secret) => `${secret} in ${place} on ${name}`),
    )
    expect(found).toEqual([])
    expect(places['environment of agent and setup']).not.toMatch(/COPPICE_DATABASE_URL|^PG/m)
  })
})

const found = (places: Readonly<Record<string, string>>, secrets: readonly string[]): string[] =>
  Object.entries(places).flatMap(([place, text]) =>
    secrets.flatMap((secret) =>
      traces(secret)
        .filter((trace) => text.includes(trace))
        .map((trace) => `${trace} in ${place}`),
    ),
  )

describe('what an agent says by accident', () => {
  test('reaches nobody through a server: not a reply, a preview, an event, a log, the database or a branch', async () => {
    await using world = makeServerWorld({ config })
    await world.project()
    const server = await world.serve({
      env: { COPPICE_AGENT_COMMAND: `${blabbing(world.home)} exit 3` },
      args: ['--verbose'],
    })
    const events = await server.call('/api/events')
    let streamed = ''
    const streaming = (async () => {
      for await (const text of events.body?.pipeThrough(new TextDecoderStream()) ?? []) streamed += text
    })().catch(() => undefined)
    const said = await server.ask('somebody', 'go on')
    expect(said.map(({ role }) => role)).toEqual(['system', 'agent', 'system'])
    const answers = ['/diff', '/status', '/worktree list', '/worktree orphans'].map((one) =>
      server.ask('somebody', one),
    )
    const places = {
      replies: JSON.stringify([said, await Promise.all(answers)]),
      environments: await (await server.call('/api/environments?codebase=project')).text(),
      metrics: await (await server.call('/metrics')).text(),
      ...(await printedBy(server)),
    }
    await streaming
    const home = { events: streamed, ...homeOf(world.home) }
    expect(streamed).toContain('event: progress')
    expect(said[1]?.text.match(/\[hidden\]/g)?.length).toBeGreaterThan(15)
    expect(found({ ...places, ...home }, [server.token, ...Object.values(configured)])).toEqual([])
    expect(JSON.stringify({ ...places, ...home })).not.toMatch(/coppice_run_[0-9a-f]/)
  })

  test('reaches nobody through the command line without a server, in no command and no form of answer', async () => {
    await using world = makeServerWorld({ config })
    const repo = await world.project()
    const { token } = ensureToken(world.home)
    const env = { COPPICE_AGENT_COMMAND: blabbing(world.home) }
    const chat = await world.cliWith(env, repo.path, 'chat', 'go on', '--verbose')
    expect(chat.out).toContain('[hidden]')
    const json = await world.cliWith(env, repo.path, 'chat', 'go on', '--json')
    const kept = homeOf(world.home)
    const commands = [
      ['worktree', 'list'],
      ['worktree', 'list', '--json'],
      ['worktree', 'orphans', '--json'],
      // What a person names after a secret is kept under that name, and not shown.
      ['worktree', 'create', `${token}-again`],
      ['worktree', 'create', `${token}-again`, '--json'],
      ['worktree', 'remove', `${token}-none`, '--json', '--verbose'],
      ['status', '--json'],
    ]
    const places: Record<string, string> = { ...kept, chat: chat.out + chat.err, json: json.out + json.err }
    for (const words of commands) {
      const { out, err } = await world.cliWith(env, repo.path, ...words)
      places[words.join(' ').replace(token, '…')] = out + err
    }
    expect(found(places, [token, ...Object.values(configured)])).toEqual([])
  })

  test('reaches nobody from setup: not its log, and not the message when it fails', async () => {
    await using world = makeServerWorld({ config })
    const repo = await world.project()
    const { token } = ensureToken(world.home)
    // What it would write into the tree is kept with it, as an agent's is.
    repo.write('blab.sh', `${printing(world.home)} exit 3`)
    repo.write('.coppice/config.yaml', 'worktree:\n  setup: sh blab.sh\n')
    repo.git('add', '.')
    repo.git('commit', '-q', '-m', 'setup')
    repo.git('push', '-q', 'origin', 'main')
    await world.cli(repo.path, 'codebase', 'trust', 'project')
    const { code, out, err } = await world.cli(repo.path, 'worktree', 'create', 'work', '--verbose')
    expect(code).toBe(1)
    expect(err).toContain('[hidden]')
    expect(found({ out, err, ...homeOf(world.home) }, [token, ...Object.values(configured)])).toEqual([])
  })
})

const printedBy = async (server: ServerProcess): Promise<Record<string, string>> => {
  const { out, err } = await server.stop()
  return { out: out.replace(/^ {2}new token .*$/m, ''), err }
}

/** All that is kept in the home, but for the files in which the secrets are at home and the agent's own tree. */
const homeOf = (home: string): Record<string, string> =>
  Object.fromEntries(
    filesUnder(home)
      .filter((path) => !/^(?:token|config\.yaml|worktrees\/.*)$/.test(relative(home, path)))
      .map((path) => [relative(home, path), readFileSync(path, 'latin1')]),
  )

const filesUnder = (directory: string): string[] =>
  !existsSync(directory)
    ? []
    : readdirSync(directory, { withFileTypes: true, recursive: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
        .filter((path) => statSync(path).size < 50_000_000)

/** Every row of every table. */
const dumpOf = async (url: string): Promise<string> => {
  const client = new Client(url)
  await client.connect()
  try {
    const tables = await client.query<{ name: string }>(
      "select table_name as name from information_schema.tables where table_schema = 'public'",
    )
    const dumps: string[] = []
    for (const { name } of tables.rows) dumps.push(JSON.stringify((await client.query(`select * from "${name}"`)).rows))
    return dumps.join('\n')
  } finally {
    await client.end()
  }
}
