import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import {
  createLauncher,
  type Launch,
  type Launched,
  type Launcher,
  type LauncherOptions,
} from '../../src/process/launcher/launcher.ts'

/** Used for every program, from the first one. */
export const alwaysLaunched: LauncherOptions = {
  script: fileURLToPath(new URL('../../src/process/launcher/child.ts', import.meta.url)),
  fromRssBytes: 0,
  afterStarts: 0,
}

/** Until its small process is ready, whoever asks starts programs itself. */
export const launchedBy = (launcher: Launcher, what: Launch): Promise<Launched> =>
  vi.waitFor(
    () => {
      const launched = launcher.launch(what)
      if (launched === undefined) throw new Error('not ready')
      return launched
    },
    { timeout: 10_000, interval: 5 },
  )

export const openLauncher = async (options: LauncherOptions = alwaysLaunched): Promise<Launcher> => {
  const launcher = createLauncher(options)
  const nothing = { program: '/bin/true', args: [], cwd: '/', env: {}, stdin: undefined, stderrLimit: 100 }
  await (
    await launchedBy(launcher, nothing)
  ).ended
  return launcher
}
