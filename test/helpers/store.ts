import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'

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
  const store = await openStore({ sqliteFile: file })
  const close = async (): Promise<void> => {
    try {
      await store.close()
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  }
  return { store, file, close }
}
