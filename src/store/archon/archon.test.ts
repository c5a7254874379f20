import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { archonOnSqlite } from '../../../test/helpers/archon.ts'
import { archonTime, readArchon } from './archon.ts'

let root: string
let file: string
let scratch: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'coppice-archon-'))
  mkdirSync(join(root, 'theirs'))
  mkdirSync(join(root, 'scratch'))
  scratch = join(root, 'scratch')
  file = join(root, 'theirs', 'a b#?%41.db')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

/** Names, sizes and times of everything beside the file, and what is left in the scratch directory. */
const traces = (): unknown[] => [
  readdirSync(scratch),
  readdirSync(join(root, 'theirs'))
    .sort()
    .map((name) => {
      const { size, mtimeMs } = statSync(join(root, 'theirs', name))
      // The index of the log is shared memory: readers mark themselves there.
      return name.endsWith('-shm') ? name : [name, size, mtimeMs]
    }),
]

const names = async (room = scratch): Promise<(string | undefined)[]> =>
  (await readArchon({ sqliteFile: file }, room)).codebases.map(({ name }) => name)

describe('reading an SQLite file leaves nothing in it and nothing beside it', () => {
  test.each(['wal', 'delete'])('when nobody has it open, in the mode %s', async (journal) => {
    const archon = await archonOnSqlite(file, 'environments', journal)
    await archon.insert('codebases', { name: 'one', default_cwd: '/one' })
    await archon.close()
    const before = traces()
    expect(await names()).toEqual(['one'])
    expect(traces()).toEqual(before)
  })

  test.each(['wal', 'delete'])('while Archon has it open, in the mode %s', async (journal) => {
    const archon = await archonOnSqlite(file, 'environments', journal)
    await archon.insert('codebases', { name: 'one', default_cwd: '/one' })
    const before = traces()
    // In place, with SQLite's own locks: a copy of a file that somebody writes to may be half of two states.
    expect(await names('/nowhere')).toEqual(['one'])
    expect(traces()).toEqual(before)
    await archon.insert('codebases', { name: 'two', default_cwd: '/two' })
    expect(await names()).toEqual(['one', 'two'])
    await archon.close()
  })

  test.each([
    ['without its index, as in a copy', ['', '-wal']],
    ['with its index, as after a crash', ['', '-wal', '-shm']],
  ])('when a log was left %s', async (_, ends) => {
    const original = join(root, 'original.db')
    const archon = await archonOnSqlite(original, 'environments')
    await archon.insert('codebases', { name: 'in the log', default_cwd: '/one' })
    for (const end of ends) copyFileSync(`${original}${end}`, `${file}${end}`)
    await archon.close()
    const before = traces()
    expect(await names()).toEqual(['in the log'])
    expect(traces()).toEqual(before)
  })
})

describe('what is no such database gets one sentence', () => {
  test('nothing there, a directory, a text, an empty file, a broken database', async () => {
    await expect(names()).rejects.toThrow(/^can't read .*: no such file$/)
    mkdirSync(file)
    await expect(names()).rejects.toThrow(/^can't read .*: it is a directory$/)
    rmSync(file, { recursive: true })
    for (const text of ['', 'SQLite format', 'hello '.repeat(1000)]) {
      writeFileSync(file, text)
      await expect(names()).rejects.toThrow(/ isn't an SQLite database$/)
    }
    writeFileSync(file, `SQLite format 3\0${'x'.repeat(5000)}`)
    await expect(names()).rejects.toMatchObject({ code: 'store-failed' })
    expect(readdirSync(scratch)).toEqual([])
  })

  test('a database of something else', async () => {
    const database = new DatabaseSync(file)
    database.exec('create table users (id text)')
    database.close()
    await expect(names()).rejects.toThrow("has none of Archon's tables")
  })
})

test('rows are in the order in which they were made, however the database returns them', async () => {
  const archon = await archonOnSqlite(file, 'latest')
  for (const [id, at] of [
    ['b', 2],
    ['c', 1],
    ['a', 2],
  ] as const) {
    const created_at = `2026-01-0${at} 00:00:00`
    await archon.insert('codebases', { id, name: id, default_cwd: '/x', created_at })
    await archon.insert('isolation_environments', {
      id,
      codebase_id: id,
      workflow_type: 'issue',
      workflow_id: id,
      working_path: '/x',
      branch_name: id,
      created_at,
    })
    await archon.insert('sessions', { id, ai_assistant_type: 'claude', started_at: created_at })
    await archon.insert('conversations', { id, platform_type: 'web', platform_conversation_id: id, created_at })
  }
  await archon.close()
  const read = await readArchon({ sqliteFile: file }, scratch)
  for (const rows of [read.codebases, read.environments, read.sessions, read.conversations]) {
    expect(rows?.map(({ id }) => id)).toEqual(['c', 'a', 'b'])
  }
})

test('columns that are not there are undefined, and odd values are no reason to stop', async () => {
  const database = new DatabaseSync(file)
  database.exec(`create table remote_agent_conversations (id, platform_type, last_activity_at, hidden);
    insert into remote_agent_conversations values (x'00ff', 9007199254740993, 'yesterday', 9223372036854775807)`)
  database.close()
  const read = await readArchon({ sqliteFile: file }, scratch)
  expect(read).toMatchObject({ codebases: [], sessions: [], environments: undefined })
  expect(read.conversations).toEqual([
    expect.objectContaining({ id: undefined, platform: '9007199254740993', lastActivityAt: undefined, hidden: false }),
  ])
})

test.each([
  ['2026-01-02 03:04:05', '2026-01-02T03:04:05.000Z'],
  ['2026-01-02 03:04:05.678901', '2026-01-02T03:04:05.678Z'],
  ['2026-01-02 03:04:05.6+00', '2026-01-02T03:04:05.600Z'],
  ['2026-01-02 03:04:05+05:30', '2026-01-01T21:34:05.000Z'],
  ['2026-01-02T03:04:05Z', '2026-01-02T03:04:05.000Z'],
])('the time %s is %s', (text, iso) => {
  expect(new Date(archonTime(text) ?? 0).toISOString()).toBe(iso)
})

test.each([undefined, '', 'infinity', '2026-13-40 99:00:00', '1767322800', '2026-01-02'])('%s is no time', (text) => {
  expect(archonTime(text)).toBeUndefined()
})
