import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** A newer one is tried by changing it here. */
const GEMINI = '@google/gemini-cli@0.61.0'

/**
 * The real Gemini CLI (95 MB), installed once per version outside of the package's own dependencies. Throws when that
 * cannot be done: a test that did not run must not look like one that passed.
 */
export const installGemini = (env: Readonly<Record<string, string | undefined>>): string => {
  const cache = join(env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache'), 'coppice-test-agents')
  const directory = join(cache, GEMINI.replaceAll('/', '+'))
  const program = join(directory, 'node_modules/@google/gemini-cli/bundle/gemini.js')
  if (existsSync(program)) return program
  // Under a name of its own, then renamed: a second one who installs at the same time, or a stop half-way, does no harm.
  const building = join(cache, `installing-gemini-${process.pid}`)
  mkdirSync(building, { recursive: true })
  writeFileSync(join(building, 'package.json'), JSON.stringify({ private: true }))
  try {
    const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--omit=optional']
    execFileSync('npm', ['install', '--prefix', building, ...options, GEMINI], { cwd: building, stdio: 'pipe' })
    rmSync(directory, { recursive: true, force: true })
    renameSync(building, directory)
  } catch (cause) {
    if (!existsSync(program)) {
      throw new Error(`${GEMINI} could not be installed, so nothing was shown about it`, { cause })
    }
  } finally {
    rmSync(building, { recursive: true, force: true })
  }
  return program
}
