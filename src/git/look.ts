import { type Dirent, lstatSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type AppError, isAppError } from '../domain/errors.ts'
import { rawBytes, shownPath, toRaw } from '../domain/text/raw-path.ts'
import { linkedGitDirectory, maxLineBytes } from '../domain/git-link.ts'
import { listDirectory } from '../process/files/list-directory.ts'
import { readUntrustedTextSync } from '../process/files/read-untrusted.ts'
import { createTimeSlice, type TimeSlice } from '../process/time-slice.ts'
import type { GitRequest, Tree } from './request.ts'
import { maxConfigBytes, maxOtherBytes } from './file-limits.ts'
import { trimEndOf } from '../domain/text/trim-end.ts'
import { assertNotBlocking, assertSize, createInspector, tryStat } from './inspect.ts'

export type Look = {
  /** Throws when a file there would block git, so git isn't started. */
  readonly before: (at: GitRequest['at'], options: { readonly modules: boolean }) => Promise<void>
  /** What a slow git may be blocked on; undefined when nothing is found. */
  readonly whileSlow: (request: GitRequest, isOver: () => boolean) => Promise<AppError | undefined>
}

/** Checks what git is about to read. `userFiles`: the user's own configuration, which an agent can write too. */
export const createLook = (userFiles: readonly string[]): Look => {
  const { inspect } = createInspector()

  const before: Look['before'] = async (at, { modules }) => {
    for (const file of userFiles) assertReadable(raw(file), maxConfigBytes)
    if ('cwd' in at) return inspect({ gitDirs: await foundFrom(at.cwd), modules })
    if ('path' in at) for (const name of readAtTop) assertReadable(raw(join(at.path, name)), maxOtherBytes)
    return inspect({ gitDirs: gitDirsOf(at), modules })
  }

  const whileSlow: Look['whileSlow'] = async ({ at }, isOver) => {
    try {
      const gitDirs = 'cwd' in at ? await foundFrom(at.cwd) : gitDirsOf(at)
      await inspect({ gitDirs, modules: true, untilAnswered: isOver })
      if ('path' in at) await walkTree(at, isOver, (dir) => inspect({ gitDirs: [dir], untilAnswered: isOver }))
      return undefined
    } catch (error) {
      return isAppError(error, 'unusable-file') ? error : undefined
    }
  }

  return { before, whileSlow }
}

const gitDirsOf = (at: Exclude<GitRequest['at'], { cwd: string }>): string[] =>
  'gitDir' in at && at.gitDir !== at.commonDir ? [at.commonDir, at.gitDir] : [at.commonDir]

/** Read by git at the top of a working tree. Those below are checked only when git is slow: a tree can be large. */
const readAtTop = ['.gitattributes', '.gitignore', '.gitmodules', '.mailmap']

const raw = (path: string): string => toRaw(Buffer.from(path))

const assertReadable = (path: string, limit: number): void => {
  const stat = tryStat(path, statSync)
  if (stat === undefined) return
  assertNotBlocking(path, stat)
  if (stat.isFile()) assertSize(path, stat.size, limit)
}

/** The git directories that git discovers from a directory, by its own rule: here or in the nearest parent. */
const foundFrom = async (cwd: string): Promise<string[]> => {
  const slice = createTimeSlice()
  for (let dir = cwd; dir !== '/'; dir = dirname(dir)) {
    if (slice.isOver()) await slice.next()
    const dotGit = join(dir, '.git')
    const stat = tryStat(raw(dotGit), statSync)
    if (stat?.isDirectory() === true) return [dotGit]
    if (stat?.isFile() === true) return linkedDirs(dotGit)
    // Git checks whether each directory is a bare repository, and for that it opens HEAD.
    assertReadable(raw(join(dir, 'HEAD')), maxLineBytes)
    if (['HEAD', 'objects', 'refs'].every((name) => tryStat(raw(join(dir, name)), lstatSync) !== undefined))
      return [dir]
    if (dirname(dir) === dir) break
  }
  return []
}

/** A `.git` file names the worktree's record, which names the repository. */
const linkedDirs = (dotGit: string): string[] => {
  const target = linkedGitDirectory(readUntrustedTextSync(dotGit, { maxBytes: maxLineBytes }))
  if (target === undefined) return []
  const gitDir = resolve(dirname(dotGit), target)
  const common = readUntrustedTextSync(join(gitDir, 'commondir'), { maxBytes: maxLineBytes })
  return common === undefined ? [gitDir] : [gitDir, resolve(gitDir, trimEndOf(common, '\r\n'))]
}

const readAnywhere: ReadonlySet<string> = new Set(['.gitattributes', '.gitignore', '.gitmodules'])

/** Throws at the first file that git reads by name, or nested repository, that would block it. */
const walkTree = async (
  tree: Tree,
  isOver: () => boolean,
  inspectInside: (gitDir: string) => Promise<void>,
): Promise<void> => {
  const top = raw(tree.path)
  const pending = [top]
  const slice = createTimeSlice()
  for (let path = pending.pop(); path !== undefined && !isOver(); path = pending.pop()) {
    if (slice.isOver()) await slice.next()
    for (const entry of await entriesOf(path, slice)) {
      if (slice.isOver()) await slice.next()
      const place = `${path}/${entry.name}`
      if (readAnywhere.has(entry.name)) assertReadable(place, maxOtherBytes)
      if (entry.name !== '.git' && entry.isDirectory()) pending.push(place)
      if (entry.name !== '.git' || path === top) continue
      const gitDirs = entry.isDirectory() ? [shownPath(place)] : entry.isFile() ? linkedDirs(shownPath(place)) : []
      for (const gitDir of gitDirs) await inspectInside(gitDir)
    }
  }
}

const entriesOf = async (path: string, slice: TimeSlice): Promise<Dirent[]> => {
  try {
    return await listDirectory(rawBytes(path), { slice })
  } catch {
    return []
  }
}
