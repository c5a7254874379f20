import { join } from 'node:path'
import { replaceFileSync } from '../process/files/replace-file.ts'

/*
 * Not with `git worktree repair`: whatever paths it is given, it then rewrites the `.git` file of every other worktree
 * from git's records, and two that changed places would get each other's branch.
 */

/** Git's record names the directory, after that was moved. */
export const pointRecordAtWorktree = (adminDir: string, path: string): void =>
  replaceFileSync(join(adminDir, 'gitdir'), `${join(path, '.git')}\n`, { sync: true })

/** The directory names git's record, after the repository was moved. */
export const pointWorktreeAtRecord = (path: string, adminDir: string): void =>
  replaceFileSync(join(path, '.git'), `gitdir: ${adminDir}\n`, { sync: true })
