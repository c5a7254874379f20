import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isSha, type Sha } from '../domain/names.ts'
import type { Repo, Tree } from './door.ts'

/** Every commit a ref has ever been on as far as git remembers, oldest first; read from its file, no subprocess. */
export const reflog = async (at: Repo | Tree, ref: string): Promise<Sha[]> => {
  // HEAD and its like are a worktree's own; everything under refs/ is shared.
  const directory = 'gitDir' in at && !ref.startsWith('refs/') ? at.gitDir : at.commonDir
  const shas = readLog(join(directory, 'logs', ref)).flatMap((line) => line.split(' ', 2).filter(isSha))
  return [...new Set(shas)].filter((sha) => !/^0+$/.test(sha))
}

/** No file: git kept no log of it. Anything else that goes wrong is not the same as an empty log. */
const readLog = (path: string): string[] => {
  try {
    return readFileSync(path, 'utf8').split('\n')
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return []
    throw error
  }
}
