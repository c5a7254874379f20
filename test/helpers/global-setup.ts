import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import type { TestProject } from 'vitest/node'
import { findProgram } from '../../src/process/find-program.ts'
import { shareBuild } from './built.ts'
import { sharePostgres } from './postgres.ts'
import { makeRunDirectory } from './run-directory.ts'

/** `vitest run` without names of files: whoever names some waits for nothing that those do not need. */
const isWholeRun =
  parseArgs({
    args: process.argv.slice(2),
    options: { config: { type: 'string' }, reporter: { type: 'string' }, outputFile: { type: 'string' } },
    strict: false,
    allowPositionals: true,
  }).positionals.join(' ') === 'run'

/** Runs once before all tests. What many test files need is made once for a whole run; otherwise each makes its own. */
export const setup = async ({ config }: TestProject): Promise<() => void | Promise<void>> => {
  process.env['GIT_CONFIG_NOSYSTEM'] = '1'
  // Spread: a configuration that sets no variables has no `env`, whatever its type says.
  process.env['TMPDIR'] = { ...config.env }['TMPDIR'] ?? tmpdir()
  const removeDirectory = makeRunDirectory()
  if (!isWholeRun) return removeDirectory
  if (findProgram('tmux', process.env['PATH']) === undefined)
    console.warn("tmux isn't installed: the tests of sessions in tmux are left out")
  const [stopPostgres] = await Promise.all([sharePostgres(), shareBuild()])
  return async () => {
    await stopPostgres()
    removeDirectory()
  }
}
