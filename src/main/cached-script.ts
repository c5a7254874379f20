import type * as Files from 'node:fs'
import { readCache, removeOldCaches, withScript } from './old-code-caches.ts'

/**
 * Runs the chunk that every command needs, with the functions that an earlier command compiled. Node writes its
 * own cache before anything has run, so it lacks them, and compiling them again took a fifth of a short command's time.
 * The chunk is a script (see scripts/script-chunk.ts) because Node can't load compiled functions into a module.
 */
export const runCachedScript = (file: string, ...given: Parameters<Run>): Record<string, unknown> => {
  const fs = process.getBuiltinModule('node:fs')
  const vm = process.getBuiltinModule('node:vm')
  // Undefined if bin/coppice.js found no directory that only we can write: this is code, and we run it.
  const directory = process.getBuiltinModule('node:module').getCompileCacheDir()
  const cache = directory === undefined ? undefined : `${directory}/${file.slice(file.lastIndexOf('/') + 1)}.code`
  const cachedData = cache === undefined ? undefined : readCache(fs, cache)?.data
  const script = new vm.Script(fs.readFileSync(file, 'latin1'), {
    filename: file,
    ...(cachedData && { cachedData }),
  })
  if (cache !== undefined && (cachedData === undefined || script.cachedDataRejected === true)) {
    process.once('exit', () => {
      if (!isTypical() || directory === undefined) return
      save(fs, cache, () => withScript(script.createCachedData(), file))
      removeOldCaches(fs, directory, Date.now())
    })
  }
  return (script.runInThisContext() as Run)(...given)
}

/** `load` is the module's `import()`: Node prints a warning if a script calls its own. */
type Run = (
  require: NodeJS.Require,
  load: (path: string) => Promise<unknown>,
  modules: readonly unknown[],
) => Record<string, unknown>

/** `coppice --version` compiles hardly anything, and a server far more than other commands should have to read. */
const isTypical = (): boolean => process.argv.length > 3 && process.uptime() < 10

const save = (fs: typeof Files, path: string, content: () => Buffer): void => {
  const temporary = `${path}.${process.pid}`
  try {
    fs.writeFileSync(temporary, content(), { flag: 'wx', mode: 0o600, flush: true })
    fs.renameSync(temporary, path)
  } catch {
    // The next command tries again. In a container it may have the same process ID.
    fs.rmSync(temporary, { force: true })
  }
}
