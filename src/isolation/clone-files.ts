import { type Dirent, readdirSync } from 'node:fs'
import { bytesBelow } from '../domain/raw-path.ts'

/** What git and Coppice write at the top of a bare clone. Everything else is somebody's own. */
const ours: ReadonlySet<string> = new Set(
  (
    'HEAD FETCH_HEAD ORIG_HEAD config config.worktree description packed-refs shallow branches logs modules objects ' +
    'refs reftable rr-cache worktrees gc.log gc.pid coppice-id coppice.lock coppice.lock.info'
  ).split(' '),
)

/** Which files of these directories cannot be fetched or made again. Coppice clones without a template. */
const content: ReadonlyMap<string, (path: string) => boolean> = new Map([
  ['hooks', (path) => !path.endsWith('.sample')],
  ['info', (path) => path !== 'refs'],
  ['lfs', (path) => path.startsWith('objects/')],
])

/** Files in a clone of ours that no fetch brings back: large files of git-lfs or git-annex, hooks, a note left there. */
export const filesOnlyHere = (clone: string): string[] =>
  list(clone, '').flatMap((entry) => {
    const known = content.get(entry.name)
    if (known === undefined) return isOurs(entry.name) ? [] : [entry.name]
    if (!entry.isDirectory()) return [entry.name]
    return filesBelow(clone, entry.name).filter((path) => known(path.slice(entry.name.length + 1)))
  })

/** `packed-refs.lock`, or what a rename is about to put in place, is as much ours as the file itself. */
const isOurs = (name: string): boolean => ours.has(name) || ours.has(name.replace(/\.(?:lock|\d+\.tmp)$/, ''))

const filesBelow = (clone: string, directory: string): string[] =>
  list(clone, directory).flatMap((entry) => {
    const path = `${directory}/${entry.name}`
    return entry.isDirectory() ? filesBelow(clone, path) : [path]
  })

const list = (clone: string, raw: string): Dirent[] =>
  readdirSync(bytesBelow(clone, raw), { withFileTypes: true, encoding: 'latin1' })
