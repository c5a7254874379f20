import { chmod, lstat, mkdir, readdir, readlink, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../../../domain/errors.ts'
import { bytesBelow, shownPath, toRaw } from '../../../../domain/text/raw-path.ts'
import type { LeftOut } from '../../../../domain/removal/restore-point.ts'
import { copyUntrusted, kindOf } from '../../../../process/files/read-untrusted.ts'
import { syncPath } from '../../../../process/files/sync-path.ts'
import { trimEndOf } from '../../../../domain/text/trim-end.ts'
import { makePrivateDirectory, syncDirectory } from '../../../durable.ts'
import type { Special } from '../../../walk.ts'

export type ArchiveRequest = {
  /** The tree's directory. */
  readonly from: string
  /** `<home>/restore/<id>`, mode 0700. */
  readonly to: string
  /** Raw paths; a directory ends with `/`. */
  readonly ignored: readonly string[]
  /** Can't be kept, only named. */
  readonly special: readonly Special[]
  /** Names that git refuses: kept regardless of size. */
  readonly refused: readonly string[]
  /** Repositories inside the tree, and submodules with changes: kept whole. None is inside another. */
  readonly nested: readonly string[]
  /** Git's record of the tree: reflogs, refs, half-done operations, submodules' git directories. */
  readonly record: string
  readonly withoutIndex: boolean
  readonly regenerable: readonly string[]
  readonly limitBytes: number
}

export type Archived = { readonly ignored: string[]; readonly nested: string[]; readonly leftOut: LeftOut[] }

/**
 * What git must not hold (a mirror push would publish it) or can't: ignored files, smallest first up to the limit,
 * nested repositories, git's own record. On disk when this resolves.
 */
export const archiveBesideGit = async (request: ArchiveRequest): Promise<Archived> => {
  const { from, to, nested } = request
  const leftOut: LeftOut[] = []
  await makePrivateDirectory(join(to, 'admin'))
  for (const name of await readdir(request.record, { encoding: 'latin1' })) {
    if (request.withoutIndex && /^(?:index|sharedindex\.[0-9a-f]+)$/.test(name)) continue
    await copyTree(request.record, join(to, 'admin'), name, leftOut)
  }
  const survey = await surveyIgnored(request, leftOut)
  const kept: string[] = []
  let room = request.limitBytes
  for (const file of survey.sort((a, b) => a.size - b.size)) {
    if (file.size > room) {
      leftOut.push({
        path: shownPath(file.path),
        reason: `over the limit of ${megabytes(request.limitBytes)} MB for ignored files`,
      })
      continue
    }
    room -= file.size
    await copyEntry(from, join(to, 'ignored'), file.path, leftOut)
    kept.push(file.path)
  }
  for (const path of request.refused) await copyEntry(from, join(to, 'ignored'), path, leftOut)
  for (const path of nested) {
    await makeParents(join(to, 'nested'), path)
    await copyTree(from, join(to, 'nested'), path, leftOut)
  }
  leftOut.push(...notKept(request.special, leftOut))
  await syncDirectories(to)
  return { ignored: [...kept, ...request.refused], nested: [...nested], leftOut }
}

/** FIFOs, sockets and devices, each by name unless a directory above it is already named. */
export const notKept = (special: readonly Special[], named: readonly LeftOut[] = []): LeftOut[] => {
  const shown = special.map(({ path, kind }) => ({ path: shownPath(path), reason: kind }))
  return shown.filter(
    ({ path }) => !named.some((one) => one.path === path || (one.path.endsWith('/') && path.startsWith(one.path))),
  )
}

type Survey = { path: string; size: number }[]

/** Every ignored file below the listed entries, except regenerable ones. */
const surveyIgnored = async (request: ArchiveRequest, leftOut: LeftOut[]): Promise<Survey> => {
  const survey: Survey = []
  const regenerable = new Set(request.regenerable)
  const nested = new Set(request.nested)
  const visit = async (path: string): Promise<void> => {
    const plain = strip(path)
    if (nested.has(plain)) return
    const found = await lstat(bytesBelow(request.from, plain))
    if (found.isDirectory()) {
      if (regenerable.has(shownPath(lastPart(plain)))) {
        leftOut.push({ path: `${shownPath(plain)}/`, reason: 'can be regenerated' })
        return
      }
      const names = await readdir(bytesBelow(request.from, plain), { encoding: 'latin1' })
      for (const name of names) await visit(`${plain}/${name}`)
    } else if (found.isFile() || found.isSymbolicLink()) survey.push({ path: plain, size: found.size })
    else leftOut.push({ path: shownPath(plain), reason: kindOf(found) })
  }
  // A file that is itself ignored may be inside one of them.
  const isNested = (path: string): boolean => request.nested.some((one) => path.startsWith(`${one}/`))
  for (const path of request.ignored.filter((one) => !isNested(one))) await visit(path)
  return survey
}

/** Copies a whole directory: bytes, modes, links as links. Names stay bytes. `path` '' is the directory itself. */
export const copyTree = async (from: string, to: string, path: string, leftOut: LeftOut[]): Promise<void> => {
  const source = path === '' ? Buffer.from(from) : bytesBelow(from, path)
  const target = path === '' ? Buffer.from(to) : bytesBelow(to, path)
  const found = await lstat(source)
  if (!found.isDirectory()) {
    await copyEntry(from, to, path, leftOut)
    return
  }
  await mkdir(target, { recursive: true, mode: 0o700 })
  for (const name of await readdir(source, { encoding: 'buffer' })) {
    await copyTree(from, to, path === '' ? toRaw(name) : `${path}/${toRaw(name)}`, leftOut)
  }
  await chmod(target, (found.mode & 0o777) | 0o700)
  await syncPath(target)
}

/** One file or link, with its mode; copy-on-write where supported. Synced. */
const copyEntry = async (from: string, to: string, path: string, leftOut: LeftOut[]): Promise<void> => {
  const source = bytesBelow(from, path)
  const target = bytesBelow(to, path)
  await makeParents(to, path)
  const found = await lstat(source)
  if (found.isSymbolicLink()) {
    await symlink(await readlink(source, { encoding: 'buffer' }), target)
  } else if (found.isFile()) {
    if (!(await copyUntrusted(source, target))) throw new AppError('not-found', `${shownPath(path)} went away`)
    await syncPath(target)
  } else {
    leftOut.push({ path: shownPath(path), reason: kindOf(found) })
  }
}

const makeParents = async (to: string, path: string): Promise<void> => {
  const slash = path.lastIndexOf('/')
  await mkdir(slash < 0 ? Buffer.from(to) : bytesBelow(to, path.slice(0, slash)), { recursive: true, mode: 0o700 })
}

/** Syncs names too: every directory below, and the one that holds the archive. */
const syncDirectories = async (directory: string): Promise<void> => {
  const visit = async (path: Buffer): Promise<void> => {
    for (const entry of await readdir(path, { withFileTypes: true, encoding: 'buffer' })) {
      if (entry.isDirectory()) await visit(Buffer.concat([path, Buffer.from('/'), entry.name]))
    }
    await syncPath(path)
  }
  await visit(Buffer.from(directory))
  await syncDirectory(join(directory, '..'))
}

const strip = (path: string): string => trimEndOf(path, '/')
const lastPart = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
/** As counted by `cleanup.restoreIgnoredMegabytes`. */
const megabytes = (bytes: number): number => Math.round(bytes / 1024 / 1024)
