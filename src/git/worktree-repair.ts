import { join } from 'node:path'
import { replaceFileSync } from '../process/files/replace-file.ts'

/*
 * Not `git worktree repair`: whatever its arguments, it also rewrites the `.git` file of every other worktree from
 * git's records, and two that were swapped would get each other's branch.
 */

/** After the worktree's directory was moved. */
export const pointRecordAtWorktree = (adminDir: string, path: string): void =>
  replaceFileSync(join(adminDir, 'gitdir'), `${join(path, '.git')}\n`, { sync: true })

/** After the repository was moved. */
export const pointWorktreeAtRecord = (path: string, adminDir: string): void =>
  replaceFileSync(join(path, '.git'), `gitdir: ${adminDir}\n`, { sync: true })
