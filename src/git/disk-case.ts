import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { shownPath } from '../domain/text/raw-path.ts'
import { listDirectory } from '../process/files/list-directory.ts'
import type { Setting } from './neutral.ts'

/**
 * With `core.ignoreCase` on a case-sensitive disk, git hides an untracked `F` beside a tracked `f`. So check the disk,
 * not the configuration: a `.git` copied from a Mac says true, and an agent can set it.
 */
export const caseSettings = async (directory: string | undefined): Promise<Setting[]> => [
  ['core.ignoreCase', directory !== undefined && (await ignoresCase(directory)) ? 'true' : 'false'],
]

/** Does `.GIT` find `.git` here? Checks the listing too: a separate `.GIT` may exist. */
const ignoresCase = async (directory: string): Promise<boolean> => {
  try {
    if (lstatSync(join(directory, '.GIT'), { throwIfNoEntry: false }) === undefined) return false
    const names = new Set((await listDirectory(Buffer.from(directory))).map(({ name }) => name))
    return names.has('.git') && !names.has('.GIT')
  } catch {
    return false
  }
}

/** The same text for all spellings of a raw path that some disk takes for one: case, and macOS's accented letters. */
export const looseName = (raw: string): string => shownPath(raw).normalize('NFC').toUpperCase().toLowerCase()
