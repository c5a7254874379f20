import { mkdirSync, mkdtempSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { unlessMissing } from '../domain/missing.ts'
import { identityWord, parseIdentityWord } from '../domain/process-identity.ts'
import { deleteTree } from '../process/files/delete-tree.ts'
import { liveness, selfIdentity } from '../process/identity.ts'
import type { Git } from './door.ts'

/**
 * An index file (not there yet) that no other git sees. It lies in the home under its maker's name, not in the system's
 * temporary directory: what a killed process leaves can then be told from what a living one uses.
 */
export const withPrivateIndex = async <T>(git: Git, work: (indexFile: string) => Promise<T>): Promise<T> => {
  mkdirSync(directoryOf(git), { recursive: true, mode: 0o700 })
  const directory = mkdtempSync(join(directoryOf(git), `${identityWord(selfIdentity())}+`))
  try {
    return await work(join(directory, 'index'))
  } finally {
    await deleteTree(directory)
  }
}

/** Deletes those whose maker is dead. One whose name does not tell, or whose maker may live, is left. */
export const clearPrivateIndexes = async (git: Git): Promise<void> => {
  for (const name of (await unlessMissing(readdir(directoryOf(git)))) ?? []) {
    const maker = parseIdentityWord(name.slice(0, Math.max(0, name.lastIndexOf('+'))))
    if (maker === undefined || liveness(maker) !== 'dead') continue
    // A git that outlived its maker may be writing there at this moment: then it is there for the next time.
    await deleteTree(join(directoryOf(git), name)).catch(() => undefined)
  }
}

const directoryOf = ({ home }: Git): string => join(home, 'tmp')
