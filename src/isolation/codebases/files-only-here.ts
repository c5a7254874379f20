import { bytesBelow } from '../../domain/text/raw-path.ts'
import { listDirectory } from '../../process/files/list-directory.ts'
import { createTimeSlice, type TimeSlice } from '../../process/time-slice.ts'

/** What git and Coppice write at the top of a bare clone. Anything else is the user's. */
const ours: ReadonlySet<string> = new Set(
  (
    'HEAD FETCH_HEAD ORIG_HEAD config config.worktree description packed-refs shallow branches logs modules objects ' +
    'refs reftable rr-cache worktrees gc.log gc.pid coppice-id coppice.lock coppice.lock.info'
  ).split(' '),
)

/** Files in these directories that can't be fetched or recreated. Coppice clones without a template. */
const content: ReadonlyMap<string, (path: string) => boolean> = new Map([
  ['hooks', (path) => !path.endsWith('.sample')],
  ['info', (path) => path !== 'refs'],
  ['lfs', (path) => path.startsWith('objects/')],
])

/** Files in a clone of ours that no fetch restores: large files of git-lfs or git-annex, hooks, a note left there. */
export const filesOnlyHere = async (clone: string): Promise<string[]> => {
  const slice = createTimeSlice()
  const found: string[] = []
  for (const entry of await listDirectory(Buffer.from(clone), { slice })) {
    const known = content.get(entry.name)
    if (known === undefined ? !isOurs(entry.name) : !entry.isDirectory()) found.push(entry.name)
    if (known === undefined || !entry.isDirectory()) continue
    for (const path of await filesBelow(clone, entry.name, slice)) {
      if (known(path.slice(entry.name.length + 1))) found.push(path)
    }
  }
  return found
}

/** `packed-refs.lock`, or a file about to be renamed into place, is ours too. */
const isOurs = (name: string): boolean => ours.has(name) || ours.has(name.replace(/\.(?:lock|\d+\.tmp)$/, ''))

const filesBelow = async (clone: string, top: string, slice: TimeSlice): Promise<string[]> => {
  const files: string[] = []
  const ahead = [top]
  for (let directory = ahead.pop(); directory !== undefined; directory = ahead.pop()) {
    for (const entry of await listDirectory(bytesBelow(clone, directory), { slice })) {
      if (slice.isOver()) await slice.next()
      ;(entry.isDirectory() ? ahead : files).push(`${directory}/${entry.name}`)
    }
    if (slice.isOver()) await slice.next()
  }
  return files
}
