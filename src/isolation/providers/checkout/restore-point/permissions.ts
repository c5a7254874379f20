import { chmodSync, lstatSync, mkdirSync } from 'node:fs'
import { bytesBelow, shownPath } from '../../../../domain/text/raw-path.ts'
import type { Permissions } from '../../../../domain/removal/restore-point.ts'
import { unlessMissing } from '../../../../domain/missing.ts'
import { listDirectory } from '../../../../process/files/list-directory.ts'
import { trimEndOf } from '../../../../domain/text/trim-end.ts'
import { createTimeSlice } from '../../../../process/time-slice.ts'
import { lstatIfThere } from '../../../../process/files/lstat-if-there.ts'

export type Skip = {
  /** Raw paths that a checkout makes executable. Undefined: git itself shows files that differ. */
  readonly executable: ReadonlySet<string> | undefined
  /** Raw paths kept whole, with their modes. */
  readonly whole: readonly string[]
  /** Raw paths that git ignores; a directory ends with `/`. */
  readonly ignored: readonly string[]
  /** Names of ignored directories that no restore point holds. */
  readonly regenerable: readonly string[]
}

/** Git records one bit of a mode, and no empty directories. */
export const readPermissions = async (root: string, skip: Skip): Promise<Permissions> => {
  const umask = process.umask()
  const modes: Record<string, number> = {}
  const emptyDirectories: string[] = []
  const isSkipped = skipper(skip)
  const slice = createTimeSlice()
  const visit = async (path: string): Promise<void> => {
    const names = await unlessMissing(listDirectory(at(root, path), { slice }))
    if (names?.length === 0 && path !== '') emptyDirectories.push(path)
    for (const entry of names ?? []) {
      const inner = path === '' ? entry.name : `${path}/${entry.name}`
      if (inner === '.git' || entry.isSymbolicLink()) continue
      if (slice.isOver()) await slice.next()
      const found = lstatIfThere(at(root, inner))
      if (found?.isFile() === true) {
        const isExecutable = (found.mode & 0o100) !== 0
        const differs = skip.executable !== undefined && skip.executable.has(inner) !== isExecutable
        if (differs || (found.mode & 0o7777) !== usualMode(found.mode, umask)) modes[inner] = found.mode & 0o7777
      } else if (found?.isDirectory() === true && !isSkipped(inner)) {
        if ((found.mode & 0o7777) !== (0o777 & ~umask)) modes[`${inner}/`] = found.mode & 0o7777
        await visit(inner)
      }
    }
  }
  await visit('')
  return { umask, modes, emptyDirectories }
}

/** The default mode of a file created by any program, including git's checkout. */
const usualMode = (mode: number, umask: number): number => ((mode & 0o100) === 0 ? 0o666 : 0o777) & ~umask

const skipper = ({ whole, ignored, regenerable }: Skip): ((path: string) => boolean) => {
  const kept = new Set(whole.map(withoutSlash))
  const names = new Set(regenerable)
  const entries = new Set(ignored.map(withoutSlash))
  return (path) =>
    kept.has(path) || (names.has(shownPath(path.slice(path.lastIndexOf('/') + 1))) && isAtOrBelow(path, entries))
}

const isAtOrBelow = (path: string, entries: ReadonlySet<string>): boolean => {
  for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
    if (entries.has(path.slice(0, end))) return true
  }
  return false
}

/** For newly written files: those not in `modes` have this process's default mode. */
export const applyPermissions = async (
  root: string,
  { umask, modes, emptyDirectories }: Permissions,
): Promise<void> => {
  const slice = createTimeSlice()
  for (const path of emptyDirectories) {
    if (slice.isOver()) await slice.next()
    mkdirSync(at(root, path), { recursive: true })
  }
  if (umask !== process.umask()) await applyUmask(root, umask)
  // Inner ones first: a restored directory may not be enterable.
  for (const path of Object.keys(modes).sort().toReversed()) {
    if (slice.isOver()) await slice.next()
    const found = lstatIfThere(at(root, withoutSlash(path)))
    const isSameKind = path.endsWith('/') ? found?.isDirectory() : found?.isFile()
    if (isSameKind === true) chmodSync(at(root, withoutSlash(path)), modes[path] ?? 0o600)
  }
}

/** The whole environment was private to its user, or shared with a group. */
const applyUmask = async (root: string, umask: number): Promise<void> => {
  const slice = createTimeSlice()
  const visit = async (path: string): Promise<void> => {
    for (const entry of await listDirectory(at(root, path), { slice })) {
      const inner = path === '' ? entry.name : `${path}/${entry.name}`
      if (inner === '.git' || !(entry.isFile() || entry.isDirectory())) continue
      if (slice.isOver()) await slice.next()
      if (entry.isDirectory()) await visit(inner)
      const { mode } = lstatSync(at(root, inner))
      chmodSync(at(root, inner), entry.isDirectory() ? 0o777 & ~umask : usualMode(mode, umask))
    }
  }
  await visit('')
}

const at = (root: string, path: string): Buffer => (path === '' ? Buffer.from(root) : bytesBelow(root, path))

const withoutSlash = (path: string): string => trimEndOf(path, '/')
