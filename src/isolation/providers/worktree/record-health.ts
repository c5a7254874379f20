import { lstatSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { maxLineBytes } from '../../../domain/git-link.ts'
import { unlessMissingSync } from '../../../domain/missing.ts'
import {
  readAdminDir,
  readAdminDirs,
  readHead,
  readToken,
  readWorktreeLink,
  worktreePaths,
  worktreePathSync,
} from '../../../git/admin-dir.ts'
import { readUntrustedTextSync } from '../../../process/files/read-untrusted.ts'

/** What is broken between git's record of an environment and its directory, and the repair that works. */
export type RecordFault = { readonly detail: string; readonly repair: RecordRepair }

/** Never `git worktree repair`, which also changes other worktrees: see `git/worktree-repair.ts`. */
export type RecordRepair =
  /** These files' correct content is known. `away`: a person should look at what blocks the first. */
  | { readonly kind: 'write'; readonly files: readonly FileContent[]; readonly away?: boolean }
  /** The directory belongs to one worktree but is where git has another: move it back. */
  | { readonly kind: 'move'; readonly from: string; readonly to: string }
  /** The same, once the one that occupies its place was moved back. */
  | { readonly kind: 'wait'; readonly place: string }
  /** Only a person can tell whose files these are: this worktree's with a wrong link, or a copy of another. */
  | { readonly kind: 'copied'; readonly path: string; readonly link: FileContent }
  /** A FIFO, a link or a directory where git has a file: clear it away, then treat the file as missing. */
  | { readonly kind: 'clear'; readonly file: string }
  /** Nothing to repair it from: only its files are left. */
  | { readonly kind: 'give-up' }

export type FileContent = { readonly file: string; readonly content: string }

/** undefined if record and directory are intact and agree. The directory itself may be missing. */
export const recordFault = async (
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<RecordFault | undefined> => {
  const { adminName, id, owned, branch, path } = environment
  if (adminName === undefined) return undefined
  const dir = join(codebase.repoPath, 'worktrees', adminName)
  const odd = recordFiles.map((name) => join(dir, name)).find(isOdd)
  if (odd !== undefined) return { detail: `${odd} is not a file`, repair: { kind: 'clear', file: odd } }
  const record = await readAdminDir(dir)
  if (record === undefined) return { detail: `git's record of it (${dir}) is gone`, repair: { kind: 'give-up' } }
  const token = await readToken(dir)
  if (owned && token !== id) {
    const whose = token === undefined ? 'has lost its mark' : 'is of another worktree'
    return { detail: `git's record ${dir} ${whose}`, repair: { kind: 'give-up' } }
  }
  if ((await readHead(dir)) === undefined) {
    const repair = writing({ file: join(dir, 'HEAD'), content: `ref: refs/heads/${branch}` })
    return { detail: `HEAD in git's record ${dir} is missing or broken`, repair }
  }
  if (!leadsTo(dir, codebase.repoPath)) {
    const repair = writing({ file: join(dir, 'commondir'), content: '../..' })
    return { detail: `commondir in git's record ${dir} is missing or broken`, repair }
  }
  return linkFault(dir, record.worktreePath, path)
}

const recordFiles = ['HEAD', 'gitdir', 'commondir', 'locked', 'coppice']

const isOdd = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isFile() === false

const writing = (...files: FileContent[]): RecordRepair => ({ kind: 'write', files })

const linkFault = async (dir: string, recorded: string | undefined, path: string): Promise<RecordFault | undefined> => {
  const dotGit = join(path, '.git')
  const link = { file: dotGit, content: `gitdir: ${dir}` }
  const place = { file: join(dir, 'gitdir'), content: dotGit }
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return misplaced(dir, path)
  const found = lstatSync(dotGit, { throwIfNoEntry: false })
  const leads = found?.isFile() === true ? await readWorktreeLink(path) : undefined
  if (leads === dir && recorded === path) return undefined
  if (leads === dir) {
    const where = recorded === undefined ? 'does not say where its files are' : `says that its files are at ${recorded}`
    return { detail: `git's record ${dir} ${where}`, repair: writing(place) }
  }
  if (found !== undefined && !found.isFile()) {
    const repair = { kind: 'write', files: [link, place], away: true } as const
    return { detail: `${dotGit} is not the file that git wrote`, repair }
  }
  if (leads !== undefined && dirname(leads) === dirname(dir)) return crossedFault(dir, path, leads)
  if (recorded !== path) {
    return { detail: `${dotGit} and git's record ${dir} are both broken`, repair: writing(link, place) }
  }
  const what = found === undefined ? 'is missing' : 'does not lead to its repository'
  return { detail: `${dotGit} ${what}`, repair: writing(link) }
}

/** A missing one whose directory is where git has another worktree. */
const misplaced = async (dir: string, path: string): Promise<RecordFault | undefined> => {
  const from = await placeOf(dir)
  if (from === undefined) return undefined
  return { detail: `its files are at ${from}`, repair: { kind: 'move', from, to: path } }
}

/** Its directory is linked to another worktree's record. */
const crossedFault = async (dir: string, path: string, leads: string): Promise<RecordFault> => {
  const detail = `${path} is the worktree of git's record ${leads}, not of ${dir}`
  const own = await placeOf(dir)
  const ends = await endOfChain(dir, path)
  if (ends === 'circle' && own !== undefined) {
    const repair = writing({ file: join(dir, 'gitdir'), content: join(own, '.git') })
    return { detail: `${detail}, whose files are at ${own}`, repair }
  }
  const place = worktreePathSync(leads)
  if (place !== undefined && place !== path && ends === 'missing') {
    const isFree = lstatSync(place, { throwIfNoEntry: false }) === undefined
    return { detail, repair: isFree ? { kind: 'move', from: path, to: place } : { kind: 'wait', place } }
  }
  return { detail, repair: { kind: 'copied', path, link: { file: join(path, '.git'), content: `gitdir: ${dir}` } } }
}

/** The one directory, among those of all worktrees, that is linked to this record. */
const placeOf = async (dir: string): Promise<string | undefined> => {
  const places: string[] = []
  for (const place of new Set(await worktreePaths(dirname(dirname(dir))))) {
    if ((await readWorktreeLink(place).catch(() => undefined)) === dir) places.push(place)
  }
  return places.length === 1 ? places[0] : undefined
}

/** Follows each place to the place of the worktree found there: back to the start if they swapped places. */
const endOfChain = async (dir: string, path: string): Promise<'circle' | 'missing' | 'other'> => {
  const seen = new Set<string>()
  for (let at: string | undefined = path; at !== undefined && !seen.has(at);) {
    seen.add(at)
    if (lstatSync(at, { throwIfNoEntry: false }) === undefined) return 'missing'
    const leads: string | undefined = await readWorktreeLink(at)
    if (leads === dir) return 'circle'
    at = leads === undefined || dirname(leads) !== dirname(dir) ? undefined : worktreePathSync(leads)
  }
  return 'other'
}

const leadsTo = (dir: string, repoPath: string): boolean => {
  const text = readUntrustedTextSync(join(dir, 'commondir'), { maxBytes: maxLineBytes })?.trim()
  if (text === undefined || text === '') return false
  return unlessMissingSync(() => realpathSync(resolve(dir, text))) === repoPath
}

/** Records that git can't read and that aren't ours. */
export const brokenRecords = async (codebase: Codebase, ours: ReadonlySet<string>): Promise<string[]> => {
  const records = await readAdminDirs(codebase.repoPath)
  return records
    .filter(({ name, dir, head, worktreePath }) => {
      if (ours.has(name)) return false
      return head === undefined || worktreePath === undefined || !leadsTo(dir, codebase.repoPath)
    })
    .map(({ dir }) => dir)
}
