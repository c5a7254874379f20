import { basename, dirname } from 'node:path'
import { toEnvironmentId } from '../../../domain/names.ts'
import { shellWord } from '../../../domain/text/shell-word.ts'
import { readToken, tokenFile } from '../../../git/admin-dir.ts'
import type { IsolationContext } from '../../context.ts'
import { managedRoot } from '../../paths.ts'
import type { Orphan } from '../../provider.ts'
import { remedy, shell } from '../../../domain/remedy.ts'

/**
 * A worktree that Coppice made with another home is that home's to delete, which doesn't know who else tracks it. One
 * in a directory of this home is ours even without a row: the database was lost.
 */
export const otherHomeOf = async (
  { store, host }: Pick<IsolationContext, 'store' | 'host'>,
  path: string,
  gitDir: string,
): Promise<Orphan['otherHome']> => {
  const token = await readToken(gitDir)
  if (token === undefined) return undefined
  const row = await store.environments.get(toEnvironmentId(token))
  const isOurs = row === undefined ? (await managedRoot(path, host)) !== undefined : row.host === host
  if (isOurs) return undefined
  const root = dirname(dirname(path))
  const home = basename(root) === 'worktrees' ? dirname(root) : undefined
  const use =
    home === undefined
      ? 'use it from there with COPPICE_HOME'
      : remedy`use it from there: ${shell(`COPPICE_HOME=${shellWord(home)}`)}`
  return {
    home,
    remedy: remedy`${use}; to track it here, delete that home's mark first: ${shell(`rm ${shellWord(tokenFile(gitDir))}`)}`,
  }
}
