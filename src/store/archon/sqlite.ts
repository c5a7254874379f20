import { closeSync, copyFileSync, existsSync, mkdtempSync, openSync, readSync, rmdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { AppError } from '../../domain/errors.ts'
import type { ArchonDatabase, ArchonRow } from './database.ts'
import { explainError } from '../sqlite/errors.ts'

/** Opens Archon's file without changing it or creating files beside it. */
export const openArchonSqlite = async (file: string, scratch: string): Promise<ArchonDatabase> => {
  const mode = modeOf(file)
  const { database, discard } = open(file, mode, scratch)
  const query = <T>(ask: () => T): T => {
    try {
      return ask()
    } catch (error) {
      throw explainError(error, file)
    }
  }
  try {
    // A view in a foreign file may call functions; allow only harmless ones.
    query(() => database.exec('pragma trusted_schema = off; begin'))
  } catch (error) {
    database.close()
    discard()
    throw error
  }
  return {
    columns: async (table) =>
      query(() => database.prepare('select name from pragma_table_info(?)').all(table)).map((row) =>
        String(row['name']),
      ),
    rows: async (table, columns) => query(() => rowsOf(database, table, columns)),
    close: async () => {
      database.close()
      discard()
    },
  }
}

/** Names come from our own list, never from the file. */
const rowsOf = (database: DatabaseSync, table: string, columns: readonly string[]): ArchonRow[] => {
  const statement = database.prepare(`select ${columns.map((name) => `"${name}"`).join(', ')} from "${table}"`)
  // An integer beyond 2^53 would throw.
  statement.setReadBigInts(true)
  return statement
    .all()
    .map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, textOf(value)])))
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : typeof value === 'bigint' || typeof value === 'number' ? String(value) : undefined

type Opened = { readonly database: DatabaseSync; readonly discard: () => void }

/**
 * Reading a WAL-mode database creates `-wal` and `-shm` files if missing, and leaves them. So: without a `-wal`, nobody
 * has it open, and we read it as immutable; with both, their creator is running or crashed, and SQLite's locks give us
 * a snapshot; with only a `-wal` (a copy, a backup), we copy both.
 */
const open = (file: string, mode: 'wal' | 'rollback', scratch: string): Opened => {
  const inPlace = (): Opened => ({ database: openReadOnly(file, file), discard: () => {} })
  if (mode === 'rollback' || existsSync(`${file}-shm`)) return inPlace()
  if (existsSync(`${file}-wal`)) return openCopy(file, scratch)
  const url = pathToFileURL(file)
  url.searchParams.set('immutable', '1')
  return { database: openReadOnly(url, file), discard: () => {} }
}

const openCopy = (file: string, scratch: string): Opened => {
  const directory = mkdtempSync(join(scratch, 'archon-'))
  const copy = join(directory, 'archon.db')
  const discard = (): void => {
    for (const end of ['', '-wal', '-shm', '-journal']) rmSync(`${copy}${end}`, { force: true })
    rmdirSync(directory)
  }
  try {
    for (const end of ['', '-wal']) copyFileSync(`${file}${end}`, `${copy}${end}`)
    return { database: openReadOnly(copy, file), discard }
  } catch (error) {
    discard()
    throw error
  }
}

const openReadOnly = (place: string | URL, file: string): DatabaseSync => {
  try {
    return new DatabaseSync(place, { readOnly: true, timeout: 5_000 })
  } catch (error) {
    throw explainError(error, file)
  }
}

/** https://sqlite.org/fileformat.html: 16 magic bytes; byte 18, the write version, is 2 for WAL. */
const modeOf = (file: string): 'wal' | 'rollback' => {
  const header = Buffer.alloc(20)
  try {
    const handle = openSync(file, 'r')
    try {
      readSync(handle, header, 0, 20, 0)
    } finally {
      closeSync(handle)
    }
  } catch (error) {
    throw new AppError('not-found', `can't read ${file}: ${readFailure(error)}`, {
      cause: error,
      remedy: "pass the path of Archon's SQLite file, or a postgres:// URL",
    })
  }
  if (header.toString('latin1', 0, 16) !== 'SQLite format 3\0') {
    throw new AppError('not-found', `${file} isn't an SQLite database`, {
      remedy: "pass the path of Archon's SQLite file, or a postgres:// URL",
    })
  }
  return header[18] === 2 ? 'wal' : 'rollback'
}

const readFailure = (error: unknown): string => {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'no such file'
  if (code === 'EISDIR') return 'it is a directory'
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied'
  return error instanceof Error ? error.message : String(error)
}
