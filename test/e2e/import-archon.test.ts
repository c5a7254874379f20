import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import type { Conversation, Store } from '../../src/store/store.ts'
import {
  type ArchonFixture,
  archonOnPostgres,
  archonOnSqlite,
  type Generation,
  generations,
  hasEnvironments,
} from '../helpers/archon.ts'
import { type CliWorld, type EnvironmentJson, makeCliWorld, project } from '../helpers/cli.ts'
import { everyCase } from '../helpers/every-case.ts'
import { startPostgres, type TestPostgres } from '../helpers/postgres.ts'
import type { TestRepo } from '../helpers/repo.ts'

type Count = { taken: number; known: number; leftOut: number }
type Report = {
  dryRun: boolean
  codebases: Count
  environments: Count
  conversations: Count
  sessions: Count
  taken: { codebases: string[]; environments: { work: { type: string; id: string }; branch: string; path: string }[] }
  leftOut: { kind: string; name: string; reason: string }[]
}

let postgres: TestPostgres
let world: CliWorld
let repo: TestRepo
let archon: ArchonFixture

beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(() => postgres.stop())
beforeEach(() => {
  world = makeCliWorld()
  repo = project(world)
  // Older than anything in Archon's rows.
  world.box.env['GIT_COMMITTER_DATE'] = '2025-12-31T00:00:00Z'
  repo.git('commit', '-q', '--amend', '--no-edit')
})
afterEach(async () => {
  await archon.close()
  world[Symbol.dispose]()
})

const thread = 'C123:1712.34'
const threadBranch = `thread-${createHash('sha256').update(thread).digest('hex').slice(0, 8)}`

/** Rows as an installation of this generation has them; the worktrees of issue 7 and of `old` are not there. */
const fill = async (generation: Generation): Promise<void> => {
  const trees = { 'issue-42': 'issue-42', 'pr-99': 'fix-login', [threadBranch]: threadBranch }
  for (const [name, branch] of Object.entries(trees)) repo.worktree(`trees/${name}`, '-b', branch)
  const codebase = await archon.insert('codebases', {
    name: 'acme/shop',
    repository_url: 'https://x:secret-token@github.com/acme/shop.git',
    default_cwd: repo.path,
  })
  const gone = await archon.insert('codebases', { name: 'acme/gone', default_cwd: world.box.path('gone') })
  const works: Record<string, readonly [string, string]> = {
    'issue-42': ['issue', '42'],
    'pr-99': ['pr', 'pr-99'],
    [threadBranch]: ['thread', thread],
    'issue-7': ['issue', '7'],
  }
  const rows = new Map<string, string>()
  const placed = async (tree: string, own = true): Promise<Record<string, string>> => {
    const path = world.box.path('trees', tree)
    if (generation === 'worktree-path') return { worktree_path: path }
    if (generation === 'text-id') return { worktree_path: path, isolation_env_id: path }
    // Half of an installation that was brought up to date half-way.
    if (generation === 'legacy-id' && own) return { isolation_env_id_legacy: path }
    const [workflow_type, workflow_id] = works[tree] ?? ['task', tree]
    const values = {
      codebase_id: codebase,
      workflow_type,
      workflow_id,
      working_path: path,
      branch_name: tree,
      created_at: '2026-01-01 00:00:00',
    }
    const id = rows.get(tree) ?? (await archon.insert('isolation_environments', values))
    rows.set(tree, id)
    return { isolation_env_id: id }
  }
  const said = async (platform: string, id: string, more: Record<string, string | null> = {}): Promise<string> =>
    archon.insert('conversations', {
      platform_type: platform,
      platform_conversation_id: id,
      codebase_id: codebase,
      created_at: '2026-01-01 00:00:00',
      updated_at: '2026-01-02 03:04:05.678',
      ...(hasEnvironments(generation) ? { last_activity_at: '2026-01-03 00:00:00' } : {}),
      ...more,
    })
  const session = (conversation: string, id: string, agent = 'claude', active = true): Promise<string> =>
    archon.insert('sessions', {
      conversation_id: conversation,
      ai_assistant_type: agent,
      assistant_session_id: id,
      active,
      started_at: '2026-01-01 12:00:00',
    })
  const issue = await said('github', 'acme/shop#42', await placed('issue-42'))
  await session(issue, 'ended', 'claude', false)
  await session(issue, 'claude-42')
  await said('github', 'acme/shop#99', await placed('pr-99', false))
  await said('discord', '777', await placed('issue-42'))
  await session(await said('slack', thread, await placed(threadBranch)), 'codex-1', 'codex')
  await session(await said('github', 'acme/shop#7', await placed('issue-7')), 'claude-7')
  await said('telegram', '5550')
  await said('slack', 'of-a-deleted-codebase', { codebase_id: gone })
  await said('web', 'never-bound', { codebase_id: null })
}

const engines = {
  sqlite: (generation: Generation) => archonOnSqlite(world.box.path('archon.db'), generation),
  postgres: async (generation: Generation) => archonOnPostgres(await postgres.freshDatabase(), generation),
}
const engineNames = ['sqlite', 'postgres'] as const
/** Each generation once, and each engine; with `npm run test:every-case` each generation on each engine. */
const cases = generations
  .slice(1)
  .flatMap((generation, index) =>
    engineNames
      .filter((_, engine) => everyCase || engine === index % engineNames.length)
      .map((engine) => [generation, engine] as const),
  )

const imported = (...more: string[]): Promise<Report> =>
  world.json<Report>('/', 0, 'import', 'archon', archon.address, ...more)

const inStore = async <T>(look: (store: Store) => Promise<T>): Promise<T> => {
  const store = await openStore({ sqliteFile: join(world.home, 'coppice.db') })
  try {
    return await look(store)
  } finally {
    await store.close()
  }
}

const found = (platform: string, id: string): Promise<Conversation | undefined> =>
  inStore((store) => store.conversations.find(platform, id))

/** The repository's own files and the worktrees, by name and content. */
const outside = (): Record<string, string> => {
  const content: Record<string, string> = {}
  for (const top of [repo.path, world.box.path('trees')]) {
    for (const entry of readdirSync(top, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name)
      if (entry.isFile()) content[path] = createHash('sha256').update(readFileSync(path)).digest('hex')
    }
  }
  return content
}

describe.each(cases)('an installation of the generation %s on %s', (generation, engine) => {
  beforeEach(async () => {
    archon = await engines[engine](generation)
    await fill(generation)
  })

  const isTakenOver = async (): Promise<void> => {
    const [before, dump] = [outside(), await archon.dump()]
    const { dryRun, ...announced } = await imported('--dry-run')
    expect(outside()).toEqual(before)
    expect(await world.json('/', 0, 'codebase', 'list')).toEqual([])
    expect(await found('github', 'acme/shop#42')).toBeUndefined()
    const report = await imported()
    expect(dryRun).toBe(true)
    expect({ ...announced, dryRun: false }).toEqual(report)
    expect(report).toMatchObject({
      dryRun: false,
      codebases: { taken: 1, known: 0, leftOut: 1 },
      environments: { taken: 3, known: 0, leftOut: 1 },
      conversations: { taken: 6, known: 0, leftOut: 2 },
      sessions: { taken: 2, known: 0, leftOut: 1 },
      taken: { codebases: ['shop'] },
    })
    expect(report.leftOut.map(({ kind, name, reason }) => `${kind} ${name}: ${reason}`)).toEqual([
      `codebase acme/gone: ${world.box.path('gone')} doesn't exist`,
      expect.stringMatching(/^environment .*issue-7: .*\/trees\/issue-7 doesn't exist$/),
      "session of github:acme/shop#7: its conversation's worktree wasn't imported",
      "conversation slack:of-a-deleted-codebase: its repository wasn't imported",
      'conversation web:never-bound: it has no repository',
    ])
    const list = await world.json<EnvironmentJson[]>(repo.path, 0, 'worktree', 'list')
    const works = list.map(({ work, branch, owned, status }) => `${work.type}:${work.id} ${branch} ${owned} ${status}`)
    expect(works.sort()).toEqual([
      'issue:42 issue-42 false active',
      'pr:99 fix-login false active',
      `thread:${thread} ${threadBranch} false active`,
    ])
    expect(await archon.dump()).toBe(dump)
    // Two files of our own beside git's; nothing else changed.
    const own = ['coppice.lock', 'coppice-id'].map((name) => join(repo.commonDir, name))
    const after = Object.entries(outside()).filter(([path]) => !own.includes(path))
    expect(Object.fromEntries(after)).toEqual(before)
  }

  const conversationsAreBound = async (): Promise<void> => {
    const at = hasEnvironments(generation) ? '2026-01-03T00:00:00.000Z' : '2026-01-02T03:04:05.678Z'
    await inStore(async (store) => {
      const issue = await store.conversations.find('github', 'acme/shop#42')
      const environment = issue?.environmentId && (await store.environments.get(issue.environmentId))
      expect(environment).toMatchObject({ path: world.box.path('trees/issue-42'), owned: false, createdBy: 'archon' })
      expect(environment).toMatchObject({ lastActivityAt: Date.parse(at) })
      expect(issue).toMatchObject({ agent: 'claude', closedAt: undefined, lastActivityAt: Date.parse(at) })
      expect(issue).toMatchObject({ createdAt: Date.parse('2026-01-01T00:00:00Z'), persistent: false })
      expect(await store.sessions.live(issue?.id ?? '')).toMatchObject({
        agent: 'claude',
        agentSessionId: 'claude-42',
        directory: world.box.path('trees/issue-42'),
        startedAt: Date.parse('2026-01-01T12:00:00Z'),
      })
      // Two conversations that shared a tree go on sharing it.
      expect((await store.conversations.find('discord', '777'))?.environmentId).toBe(issue?.environmentId)
      const slack = await store.conversations.find('slack', thread)
      expect(await store.sessions.live(slack?.id ?? '')).toMatchObject({ agent: 'codex', agentSessionId: 'codex-1' })
      const without = await store.conversations.find('github', 'acme/shop#7')
      expect(without).toMatchObject({ codebaseId: issue?.codebaseId, environmentId: undefined, agent: undefined })
      expect(await store.sessions.live(without?.id ?? '')).toBeUndefined()
      expect(await store.conversations.find('telegram', '5550')).toMatchObject({ persistent: true })
      const codebase = issue?.codebaseId && (await store.codebases.get(issue.codebaseId))
      expect(codebase).toMatchObject({ repoPath: repo.commonDir, github: 'acme/shop' })
      expect(JSON.stringify(codebase)).not.toContain('secret-token')
    })
  }

  const twiceIsOnce = async (): Promise<void> => {
    const conversation = await found('github', 'acme/shop#42')
    const again = await imported()
    expect(again).toMatchObject({
      codebases: { taken: 0, known: 1 },
      environments: { taken: 0, known: 3 },
      conversations: { taken: 0, known: 6 },
      sessions: { taken: 0, known: 2 },
      taken: { codebases: [], environments: [] },
    })
    expect(await found('github', 'acme/shop#42')).toEqual(conversation)
    expect(await world.json<unknown[]>(repo.path, 0, 'worktree', 'list')).toHaveLength(3)
  }

  const returnedIsTaken = async (): Promise<void> => {
    repo.worktree('trees/issue-7', '-b', 'issue-7')
    expect(await imported()).toMatchObject({
      environments: { taken: 1, known: 3 },
      conversations: { taken: 1, known: 5 },
      sessions: { taken: 1, known: 2, leftOut: 0 },
    })
    await inStore(async (store) => {
      const conversation = await store.conversations.find('github', 'acme/shop#7')
      expect(conversation?.environmentId).toBeDefined()
      expect(await store.sessions.live(conversation?.id ?? '')).toMatchObject({ agentSessionId: 'claude-7' })
    })
  }

  // One installation for all of it: to fill one and to start the command line is most of the time.
  test('is taken over as a dry run said, once, and completed when a worktree comes back', async () => {
    await isTakenOver()
    await conversationsAreBound()
    await twiceIsOnce()
    await returnedIsTaken()
  })
})

test('an installation of the first generation, which had no worktrees', async () => {
  archon = await engines.postgres('initial')
  const codebase_id = await archon.insert('codebases', { name: 'acme/shop', default_cwd: repo.path })
  const talk = { platform_type: 'telegram', platform_conversation_id: '5550', codebase_id, cwd: repo.path }
  const conversation_id = await archon.insert('conversations', talk)
  const session = { conversation_id, ai_assistant_type: 'claude', assistant_session_id: 'c-1', active: true }
  await archon.insert('sessions', session)
  const { dryRun: _, ...announced } = await imported('--dry-run')
  const report = await imported()
  expect(report).toMatchObject({ ...announced, codebases: { taken: 1 }, conversations: { taken: 1 } })
  expect(report.leftOut.map(({ kind, reason }) => `${kind}: ${reason}`)).toEqual([
    "session: its conversation's worktree wasn't imported",
  ])
  expect(await found('telegram', '5550')).toMatchObject({ persistent: true, environmentId: undefined })
})
