/*
 * SQLite. In: a file. Out: a connection that waits for other processes, and notices when its file is replaced.
 */
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Dialect, Kysely, type LimitNode, SqliteAdapter, SqliteQueryCompiler, ValueNode } from 'kysely'
import { AppError } from '../../domain/errors.ts'
import type { Database, Engine } from '../engine.ts'
import { SqliteDriver, type SqliteTimeouts } from './driver.ts'
import { isMissingTable, isUniqueViolation } from './errors.ts'
import type { Tables } from '../tables.ts'

export const openSqlite = (file: string, timeouts: Partial<SqliteTimeouts> = {}): Database => {
  createPrivateFile(file)
  const driver = new SqliteDriver(file, { busy: 10_000, turn: 30_000, ...timeouts })
  const db = new Kysely<Tables>({ dialect: dialectOver(driver) })
  return {
    db,
    engine: sqlite,
    inUse: () => driver.inUse,
    onLost: (listener) => driver.file.onLost(listener),
    close: () => db.destroy(),
  }
}

const sqlite: Engine = {
  name: 'sqlite',
  rowLocks: false,
  countingKey: 'integer primary key autoincrement',
  // `begin immediate` already makes us the only writer.
  lockMigrations: async () => {},
  lockQueues: async () => {},
  isMissingTable,
  isUniqueViolation,
}

/** The driver takes turns itself and can report who is stuck; Kysely would wait silently. */
class TurnTakingAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true
  }
}

/** SQLite plans a statement again for each use if its limit is bound, which takes ten times as long as running it. */
class LiteralLimits extends SqliteQueryCompiler {
  protected override visitLimit(node: LimitNode): void {
    const { limit } = node
    if (ValueNode.is(limit) && Number.isSafeInteger(limit.value)) this.append(`limit ${String(limit.value)}`)
    else super.visitLimit(node)
  }
}

const dialectOver = (driver: SqliteDriver): Dialect => ({
  createAdapter: () => new TurnTakingAdapter(),
  createDriver: () => driver,
  createQueryCompiler: () => new LiteralLimits(),
  createIntrospector: () => {
    throw new Error("the store doesn't support introspection")
  },
})

/**
 * Keeps messages and paths private: 0600 in a 0700 directory; SQLite gives its -wal and -shm files the same mode. Never
 * opens an existing file: closing it would drop the POSIX locks that another connection of this process holds on it
 * (https://sqlite.org/howtocorrupt.html, 2.2).
 */
const createPrivateFile = (file: string): void => {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return
    const text = error instanceof Error ? error.message : String(error)
    throw new AppError('store-failed', `can't create the database ${file}: ${text}`, {
      cause: error,
      remedy: 'check that its directory exists and that you own it',
    })
  }
}
