import { copyFileSync, existsSync, mkdtempSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { runDirectory } from './run-directory.ts'

export type TestStore = {
  readonly store: Store
  readonly file: string
  /** Closes the store and removes its directory. */
  close(): Promise<void>
}

/** A real SQLite store in a temporary directory of its own. */
export const openTestStore = async (): Promise<TestStore> => {
  const directory = await mkdtemp(join(tmpdir(), 'coppice-store-'))
  const file = join(directory, 'coppice.db')
  const store = await openCopiedStore(file)
  const close = async (): Promise<void> => {
    try {
      await store.close()
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  }
  return { store, file, close }
}

let emptyDatabase: Promise<string> | undefined

const makeEmptyDatabase = async (): Promise<string> => {
  const file = join(mkdtempSync(join(runDirectory(), 'database-')), 'coppice.db')
  const store = await openStore({ sqliteFile: file })
  await store.close()
  return file
}

/** Opens the SQLite file. One that is not there is copied from an empty database: all migrations take ten times as long. */
export const openCopiedStore = async (sqliteFile: string): Promise<Store> => {
  if (!existsSync(sqliteFile)) copyFileSync(await (emptyDatabase ??= makeEmptyDatabase()), sqliteFile)
  return openStore({ sqliteFile })
}
