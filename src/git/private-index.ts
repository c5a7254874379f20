import { mkdirSync, mkdtempSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { unlessMissing } from '../domain/missing.ts'
import { identityWord, parseIdentityWord } from '../domain/process-identity.ts'
import { deleteTree } from '../process/files/delete-tree.ts'
import { liveness, selfIdentity } from '../process/identity.ts'
import type { Git } from './door.ts'

/**
 * A path for an index file that no other git sees. It's in the home, under the name of the process that created it, not
 * in the system's temporary directory: so leftovers of killed processes can be told from files in use.
 */
export const withPrivateIndex = async <T>(git: Git, work: (indexFile: string) => Promise<T>): Promise<T> => {
  mkdirSync(temporaryDirectory(git), { recursive: true, mode: 0o700 })
  const directory = mkdtempSync(join(temporaryDirectory(git), `${identityWord(selfIdentity())}+`))
  try {
    return await work(join(directory, 'index'))
  } finally {
    await deleteTree(directory)
  }
}

/** Deletes those whose creator is dead. Keeps one whose creator is unknown or may be alive. */
export const clearPrivateIndexes = async (git: Git): Promise<void> => {
  for (const name of (await unlessMissing(readdir(temporaryDirectory(git)))) ?? []) {
    const creator = parseIdentityWord(name.slice(0, Math.max(0, name.lastIndexOf('+'))))
    if (creator === undefined || liveness(creator) !== 'dead') continue
    // A git that outlived its creator may be writing there right now: leave it for the next time.
    await deleteTree(join(temporaryDirectory(git), name)).catch(() => undefined)
  }
}

/** Entries begin with the identity of the process that created them, and are deleted once it is dead. */
export const temporaryDirectory = ({ home }: Git): string => join(home, 'tmp')
