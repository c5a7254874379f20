import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Client } from 'pg'
import { describe, expect, test } from 'vitest'
import { makeServerWorld, onEachDatabase, textsOf } from '../../helpers/server-process.ts'

describe('the tripwire', () => {
  test('an agent that writes into the canonical checkout is reported exactly', async () => {
    await using world = makeServerWorld()
    const repo = await world.project()
    repo.commit('src/kept.txt', 'kept\n')
    repo.commit('src/lost.txt', 'lost\n')
    // Somebody's own unfinished work was there before, and is not the agent's.
    repo.write('mine.txt', 'unfinished\n')
    const before = repo.sha()
    const agent = [
      `cd '${repo.path}'`,
      'echo stray > stray.txt',
      'echo more >> README',
      'rm src/lost.txt',
      'echo committed > committed.txt',
      'git add committed.txt && git commit -q -m "not here" -- committed.txt',
      'echo done',
    ].join('\n')
    const server = await world.serve({ env: { COPPICE_AGENT_COMMAND: agent } })
    const said = await server.ask('somebody', 'go on')
    expect(said.map(({ role }) => role)).toEqual(['system', 'agent', 'system'])
    const [first, ...lines] = said[2]?.text.split('\n') ?? []
    expect(first).toBe(`The shared checkout at \`${repo.path}\` changed while the agent ran, whoever did it:`)
    expect(lines.toSorted()).toEqual(
      [
        `- HEAD went from \`main\` (${before.slice(0, 10)}) to \`main\` (${repo.sha().slice(0, 10)})`,
        '- changed `README`',
        '- changed `src/lost.txt`',
        '- new `stray.txt`',
        '- written again as committed `committed.txt`',
      ].toSorted(),
    )
  })

  test('an agent that stays in its tree trips nothing, whatever it does there', async () => {
    await using world = makeServerWorld()
    const repo = await world.project()
    repo.write('mine.txt', 'unfinished\n')
    const agent = 'echo a > a.txt && git add . && git commit -q -m a && rm README && git status --porcelain'
    const server = await world.serve({ env: { COPPICE_AGENT_COMMAND: agent } })
    expect((await server.ask('somebody', 'go on')).map(({ role }) => role)).toEqual(['system', 'agent'])
  })
})

const canaries = {
  GITHUB_TOKEN: 'ghp_canary0000000000000000000000000000',
  SLACK_BOT_TOKEN: 'xoxb-canary-1111-2222',
  SOME_SERVICE_SECRET: 'canary-of-a-service',
  // Its name says nothing; it must stay out all the same.
  UNHEARD_OF: 'canary-of-nobody',
}

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
    expect(textsOf(failed).at(-1)).toContain('exit code 1')
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
