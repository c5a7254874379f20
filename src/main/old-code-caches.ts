import type * as Files from 'node:fs'

type Fs = Pick<typeof Files, 'lstatSync' | 'existsSync' | 'readdirSync' | 'readFileSync' | 'rmdirSync' | 'unlinkSync'>

/** A cache file is V8's data, the script that it was made from, and a mark that shows that it is complete. */
const end = Buffer.from('\0complete')

export const withScript = (data: Uint8Array, script: string): Buffer =>
  Buffer.concat([data, Buffer.from(`\0${script}`), end])

/** Undefined if the file isn't complete: V8 checks version and length, but not the content. */
export const readCache = (
  fs: Pick<Fs, 'readFileSync'>,
  path: string,
): { readonly data: Buffer; readonly script: string } | undefined => {
  try {
    const bytes = fs.readFileSync(path)
    const script = bytes.lastIndexOf(0, -end.length - 1)
    if (script < 0 || !bytes.subarray(-end.length).equals(end)) return undefined
    return { data: bytes.subarray(0, script), script: bytes.toString('utf8', script + 1, bytes.length - end.length) }
  } catch {
    return undefined
  }
}

/**
 * Deletes what nothing will read again. `directory` has the caches of one version of Node, beside those of others.
 *
 * - Compiled functions of a script that is gone, because Coppice was updated or removed.
 * - What Node itself wrote for modules. Their names don't say for which, so all that is a day old goes; what is still
 *   needed is compiled and written once more.
 * - A directory of another version of Node in which nothing was written for 30 days.
 *
 * Only files, and only in a directory of our own: with NODE_COMPILE_CACHE, other programs use it too.
 */
export const removeOldCaches = (fs: Fs, directory: string, now: number): void => {
  const [, all] = /^(.*\/coppice)\/v\d[^/]*$/.exec(directory) ?? []
  if (all === undefined) return
  for (const name of namesIn(fs, directory)) {
    attempt(() => {
      if (isOld(fs, `${directory}/${name}`, now)) fs.unlinkSync(`${directory}/${name}`)
    })
  }
  for (const name of namesIn(fs, all)) {
    const other = `${all}/${name}`
    if (!/^v\d/.test(name) || other === directory || !isUnused(fs, other, now)) continue
    for (const file of namesIn(fs, other)) attempt(() => fs.unlinkSync(`${other}/${file}`))
    attempt(() => fs.rmdirSync(other))
  }
}

const isOld = (fs: Fs, path: string, now: number): boolean => {
  const found = fs.lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined || !found.isFile()) return false
  if (!path.endsWith('.code')) return now - found.mtimeMs > DAY_MS
  const cache = readCache(fs, path)
  return cache === undefined || !fs.existsSync(cache.script)
}

const isUnused = (fs: Fs, path: string, now: number): boolean => {
  const found = attempt(() => fs.lstatSync(path, { throwIfNoEntry: false }))
  return found?.isDirectory() === true && now - found.mtimeMs > 30 * DAY_MS
}

const DAY_MS = 24 * 60 * 60 * 1000

const namesIn = (fs: Fs, directory: string): readonly string[] => attempt(() => fs.readdirSync(directory)) ?? []

/** What can't be deleted stays; another process may be doing the same. */
const attempt = <Result>(action: () => Result): Result | undefined => {
  try {
    return action()
  } catch {
    return undefined
  }
}
