import { shareBuild } from './built.ts'
import { sharePostgres } from './postgres.ts'

/** `vitest run` and nothing else: whoever names files waits for nothing that those do not need. */
const isWholeRun = process.argv.slice(2).join(' ') === 'run'

/** Runs once before all tests. What many test files need is made once for a whole run; otherwise each makes its own. */
export const setup = async (): Promise<(() => Promise<void>) | undefined> => {
  process.env['GIT_CONFIG_NOSYSTEM'] = '1'
  if (!isWholeRun) return undefined
  const removeBuild = shareBuild()
  const stopPostgres = await sharePostgres()
  return async () => {
    removeBuild()
    await stopPostgres()
  }
}
