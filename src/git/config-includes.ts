import { statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { AppError } from '../domain/errors.ts'
import { readUntrustedTextSync } from '../process/files/read-untrusted.ts'
import { createTimeSlice } from '../process/time-slice.ts'
import { maxConfigBytes, maxIncludedFiles } from './file-limits.ts'
import { assertNotBlocking, assertSize, tryStat } from './inspect.ts'
import { toRaw } from '../domain/text/raw-path.ts'

export type Includes = {
  /** `key LF value NUL` for each include of one file, as printed by git without following any. */
  readonly list: (file: string) => Promise<string>
  /** What `~/` expands to. */
  readonly home: string | undefined
}

/** Arguments that print the includes of a file. */
export const includeArgs = (file: string): string[] => [
  'config',
  '--file',
  file,
  '--no-includes',
  '-z',
  '--get-regexp',
  String.raw`^include(if\..*)?\.path$`,
]

/**
 * A repository's configuration can include any file, and every git command opens it, even a FIFO. So check each include
 * before git follows it. Most repositories have none; then this reads one file.
 */
export const assertIncludes = async (files: readonly string[], includes: Includes): Promise<void> => {
  const seen = new Set<string>()
  const pending = [...files]
  const slice = createTimeSlice()
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    if (slice.isOver()) await slice.next()
    if (seen.has(file)) continue
    seen.add(file)
    if (seen.size > maxIncludedFiles) throw tooManyIncludes(files)
    const raw = toRaw(Buffer.from(file))
    const stat = tryStat(raw, statSync)
    if (stat === undefined) continue
    assertNotBlocking(raw, stat)
    if (stat.isFile()) assertSize(raw, stat.size, maxConfigBytes)
    if (!stat.isFile() || !mentionsInclude(file)) continue
    const listed = await includes.list(file)
    pending.push(...listed.split('\0').flatMap((entry) => targetOf(entry, file, includes.home)))
  }
}

const tooManyIncludes = (files: readonly string[]): AppError =>
  new AppError('unusable-file', `${files[0] ?? ''} includes more than ${maxIncludedFiles} files`, {
    remedy: "remove the includes that don't belong there and try again",
  })

const mentionsInclude = (file: string): boolean =>
  /\[[ \t]*include/i.test(readUntrustedTextSync(file, { maxBytes: maxConfigBytes, followLink: true }) ?? '')

const targetOf = (entry: string, file: string, home: string | undefined): string[] => {
  const newline = entry.indexOf('\n')
  const path = newline < 0 ? '' : entry.slice(newline + 1)
  // `%(prefix)/` is where git is installed, which agents can't write to.
  if (path === '' || path.startsWith('%(prefix)/')) return []
  if (path.startsWith('~/')) return home === undefined ? [] : [join(home, path.slice(2))]
  if (!path.startsWith('~')) return [resolve(dirname(file), path)]
  throw new AppError('config-invalid', `${file} includes ${path}, which Coppice can't resolve`, {
    remedy: 'use an absolute path for the include',
  })
}
