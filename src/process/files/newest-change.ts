import { lstatSync } from 'node:fs'
import { createTimeSlice } from '../time-slice.ts'
import { listDirectory } from './list-directory.ts'

/** 200,000 files take about a second, in slices. */
const MOST_ENTRIES = 200_000

/**
 * When something below a directory was last written, added or removed. Ignores times after `now`, which say nothing.
 * Doesn't look into `.git`, which changes when somebody only looks. Undefined if it can't be read completely.
 */
export const newestChange = async (
  directory: string,
  { now, most = MOST_ENTRIES }: { readonly now: number; readonly most?: number },
): Promise<number | undefined> => {
  const slice = createTimeSlice()
  let newest = 0
  let left = most
  const visit = async (path: Buffer): Promise<void> => {
    for (const entry of await listDirectory(path, { slice, maxEntries: left })) {
      left -= 1
      const below = Buffer.concat([path, Buffer.from('/'), Buffer.from(entry.name, 'latin1')])
      const { mtimeMs, ctimeMs } = lstatSync(below)
      // A write to a file doesn't show in its directory. A time of writing can be set, to the future, too.
      for (const at of [mtimeMs, ctimeMs]) if (at <= now) newest = Math.max(newest, at)
      if (slice.isOver()) await slice.next()
      if (entry.isDirectory() && entry.name !== '.git') await visit(below)
    }
  }
  try {
    await visit(Buffer.from(directory))
    return newest
  } catch {
    return undefined
  }
}
