import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Setting } from './neutral.ts'

/**
 * With `core.ignoreCase` on a disk that tells `F` from `f`, git hides an untracked `F` beside a tracked `f`. So the disk
 * is asked, not the configuration: a `.git` copied from a Mac says true, and an agent can set it.
 */
export const caseSettings = (directory: string | undefined): Setting[] => [
  ['core.ignoreCase', directory !== undefined && ignoresCase(directory) ? 'true' : 'false'],
]

/** Does `.GIT` find the `.git` of this directory? By the listing, too: somebody may have made a `.GIT` beside it. */
const ignoresCase = (directory: string): boolean => {
  try {
    if (lstatSync(join(directory, '.GIT'), { throwIfNoEntry: false }) === undefined) return false
    const names = readdirSync(directory)
    return names.includes('.git') && !names.includes('.GIT')
  } catch {
    return false
  }
}
