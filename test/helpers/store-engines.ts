import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect } from 'vitest'
import { buildStore } from '../../src/store/build.ts'
import type { Database } from '../../src/store/engine.ts'
import { openDatabase, type StoreTimeouts, type StoreTarget } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { startPostgres, type TestPostgres } from './postgres.ts'

export type EngineUnderTest = {
  readonly name: 'sqlite' | 'postgres'
  /** A database of its own for this test, empty. */
  fresh(): Promise<StoreTarget>
  /** Opened, migrated, and closed after the test; a connection that was not given back fails the test. */
  open(target: StoreTarget, patience?: StoreTimeouts): Promise<Store & { readonly database: Database }>
}

/** One suite, looped over both engines. */
export const onEachEngine = (suite: (engine: EngineUnderTest) => void): void => {
  describe('on sqlite', () => {
    const directories: string[] = []
    afterAll(async () => {
      for (const directory of directories) await rm(directory, { recursive: true, force: true })
    })
    suite(
      underTest('sqlite', async () => {
        const directory = await mkdtemp(join(tmpdir(), 'coppice-store-'))
        directories.push(directory)
        return { sqliteFile: join(directory, 'home', 'coppice.db') }
      }),
    )
  })
  describe('on postgres', () => {
    let server: TestPostgres | undefined
    beforeAll(async () => {
      server = await startPostgres()
    })
    afterAll(() => server?.stop())
    suite(
      underTest('postgres', async () => {
        if (server === undefined) throw new Error('PostgreSQL is not running')
        return { postgresUrl: await server.freshDatabase() }
      }),
    )
  })
}

const underTest = (name: EngineUnderTest['name'], fresh: () => Promise<StoreTarget>): EngineUnderTest => {
  const opened: Database[] = []
  afterEach(async () => {
    const databases = opened.splice(0)
    const leaked = databases.map((database) => database.inUse())
    await Promise.allSettled(databases.map((database) => database.close()))
    expect(leaked, 'every connection was given back').toEqual(databases.map(() => 0))
  })
  const open: EngineUnderTest['open'] = async (target, patience) => {
    const database = await openDatabase(target, patience)
    opened.push(database)
    return { ...buildStore(database.db, database.engine, database), database }
  }
  return { name, fresh, open }
}
