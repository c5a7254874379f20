import { copyFileSync, mkdtempSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { buildSync } from 'esbuild'
import { runDirectory } from './run-directory.ts'

const root = resolve(import.meta.dirname, '../..')

/** Programs that tests start hundreds of times. */
const programs = {
  'src/main.ts': 'main',
  'test/conformance/store-child.ts': 'store-child',
  'test/crash/child.ts': 'crash-child',
  'test/crash/messages-child.ts': 'messages-child',
  'test/isolation/inside-child.ts': 'inside-child',
  'test/isolation/schedule-child.ts': 'schedule-child',
  'test/model/child.ts': 'model-child',
} as const

const shared = 'COPPICE_TEST_PROGRAMS'

/** Bundles the programs as they are published: from source, half of a short program's time goes into loading it. */
const buildAll = (): string => {
  const directory = mkdtempSync(join(runDirectory(), 'built-'))
  buildSync({
    absWorkingDir: root,
    entryPoints: Object.entries(programs).map(([source, out]) => ({ in: source, out })),
    outdir: join(directory, 'dist'),
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module';const require = __createRequire(import.meta.url);",
    },
    external: ['pg-native'],
    logLevel: 'error',
  })
  copyFileSync(join(root, 'package.json'), join(directory, 'package.json'))
  return directory
}

/** Before a whole run, so that its test files share one build. */
export const shareBuild = (): void => {
  process.env[shared] = buildAll()
}

let own: string | undefined

/** The bundle of one of the programs. */
export const built = (source: keyof typeof programs): string =>
  join(process.env[shared] ?? (own ??= buildAll()), 'dist', `${programs[source]}.js`)
