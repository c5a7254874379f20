import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import type { CompiledQuery, KyselyPlugin } from 'kysely'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { toBranchName, toCodebaseId, toEnvironmentId, toSha } from '../../domain/names.ts'
import { buildStore } from '../build.ts'
import { openDatabase, openStore } from '../open.ts'
import type { Store } from '../store.ts'

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'coppice-sqlite-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8)

describe('the SQLite file', () => {
  test('is for its owner only, and so are its folder and the files SQLite puts beside it', async () => {
    const file = join(directory, 'home', 'coppice.db')
    const store = await openStore({ sqliteFile: file })
    await store.codebases.list('host')
    expect(await modeOf(join(directory, 'home'))).toBe('700')
    for (const path of [file, `${file}-wal`, `${file}-shm`]) expect(await modeOf(path)).toBe('600')
    await store.close()
  })

  test('keeps a write-ahead log, syncs fully and enforces foreign keys', async () => {
    const database = await openDatabase({ sqliteFile: join(directory, 'coppice.db') })
    const pragma = async (name: string) => (await database.db.executeQuery<object>(raw(`pragma ${name}`))).rows[0]
    expect(await pragma('journal_mode')).toEqual({ journal_mode: 'wal' })
    expect(await pragma('synchronous')).toEqual({ synchronous: 2 })
    expect(await pragma('foreign_keys')).toEqual({ foreign_keys: 1 })
    expect(await pragma('busy_timeout')).toEqual({ timeout: 0 })
    await database.close()
  })

  test('that is not a database is refused with a sentence and left as it is', async () => {
    const file = join(directory, 'notes.txt')
    await writeFile(file, 'these are my notes, and they are long enough to have a header of their own\n'.repeat(20))
    await expect(openStore({ sqliteFile: file })).rejects.toMatchObject({
      code: 'store-failed',
      message: expect.stringContaining('not a database') as string,
    })
    expect((await stat(file)).size).toBe(75 * 20)
  })

  test('that cannot be opened is refused with a sentence', async () => {
    await mkdir(join(directory, 'a-folder'))
    await expect(openStore({ sqliteFile: join(directory, 'a-folder') })).rejects.toMatchObject({ code: 'store-failed' })
    await writeFile(join(directory, 'a-file'), '')
    const below = join(directory, 'a-file', 'coppice.db')
    await expect(openStore({ sqliteFile: below })).rejects.toMatchObject({ code: 'store-failed' })
  })

  test('that another process opened exclusively for too long is an error that says so', async () => {
    const file = join(directory, 'coppice.db')
    await (await openStore({ sqliteFile: file })).close()
    const other = new DatabaseSync(file)
    other.exec('pragma locking_mode = exclusive; begin exclusive')
    await expect(openStore({ sqliteFile: file }, { busy: 30 })).rejects.toMatchObject({
      code: 'store-failed',
      message: expect.stringContaining('another process') as string,
    })
    other.close()
  })
})

test('statements one after the other let the event loop turn, so that a server reads its sockets meanwhile', async () => {
  const store = await openStore({ sqliteFile: join(directory, 'coppice.db') })
  await store.codebases.list('host')
  const turns: number[] = []
  setImmediate(() => turns.push(1))
  for (let asked = 0; asked < 20_000 && turns.length === 0; asked++) await store.codebases.list('host')
  expect(turns).toEqual([1])
  await store.close()
})

test('every look-up has an index: no statement reads a whole table', async () => {
  const file = join(directory, 'coppice.db')
  const database = await openDatabase({ sqliteFile: file })
  const queries: CompiledQuery[] = []
  const listening: KyselyPlugin = {
    transformQuery: ({ node, queryId }) => {
      queries.push(database.db.getExecutor().compileQuery(node, queryId))
      return node
    },
    transformResult: ({ result }) => Promise.resolve(result),
  }
  await lookUpEverything(buildStore(database.db.withPlugin(listening), database.engine, database))
  await database.close()
  const plain = new DatabaseSync(file)
  const plans = queries.map(({ sql, parameters }) => {
    const steps = plain.prepare(`explain query plan ${sql}`).all(...(parameters as SQLInputValue[]))
    return `${sql}: ${steps.map((step) => String(step['detail'])).join('; ')}`
  })
  plain.close()
  expect(plans.length).toBeGreaterThan(25)
  expect(queries.filter(({ sql }) => /limit \?/.test(sql))).toEqual([])
  expect(plans.filter((plan) => /: .*\bSCAN (?!events USING INDEX events_at)/.test(plan))).toEqual([])
  const live = plans.filter((plan) => /environments_live_(?:work|branch|path)/.test(plan))
  expect(live.length).toBeGreaterThan(3)
})

const raw = (sql: string): CompiledQuery => ({
  sql,
  parameters: [],
  query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
  queryId: { queryId: sql },
})

const lookUpEverything = async (store: Store): Promise<void> => {
  const codebase = toCodebaseId('c')
  const id = toEnvironmentId('e')
  const work = { type: 'issue', id: '1' } as const
  const sha = toSha('a'.repeat(40))
  await store.codebases.get(codebase)
  await store.codebases.byName('host', 'name')
  await store.codebases.byRepoPath('host', '/path')
  await store.codebases.list('host')
  await store.codebases.remove(codebase)
  await store.environments.get(id)
  await store.environments.liveByWork(codebase, work)
  await store.environments.liveByBranch(codebase, toBranchName('b'))
  await store.environments.liveByPath('host', '/path')
  await store.environments.live(codebase)
  await store.environments.notOwn(codebase)
  await store.environments.lastRemoved(codebase, 'b')
  await store.environments.transition(id, 'active', 'removing')
  await store.environments.addAlias(id, codebase, work, 1)
  await store.environments.aliasesOf([id])
  await store.environments.dropAliases(id)
  await store.conversations.find('slack', 'c')
  await store.conversations.ofEnvironments([id])
  await store.conversations.detachEnvironment(id)
  await store.restorePoints.list(codebase)
  await store.restorePoints.watch('host', 1)
  await store.restorePoints.expired('host', 1)
  await store.leases.ofEnvironments([id])
  await store.leases.all('host')
  await store.journal.open('host')
  await store.journal.open('host', codebase)
  await store.spares.list(codebase)
  await store.ports.ofEnvironment(id)
  await store.ports.taken('host')
  await store.mergeAnswers.find(codebase, sha)
  await store.mergeAnswers.keepOnly(codebase, sha)
  await store.events.recent({ limit: 1 })
  await store.events.recent({ kind: 'k', limit: 1 })
  await store.events.recent({ codebaseId: codebase, limit: 1 })
}
