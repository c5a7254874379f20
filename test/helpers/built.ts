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

type Program = keyof typeof programs

const shared = 'COPPICE_TEST_PROGRAMS'

/**
 * Bundles a program as it is published: from source, half of a short program's time goes into loading it. Each by
 * itself: bundled together they are cut into a hundred small files, and loading those takes twice as long.
 */
const build = (source: Program, directory: string): void => {
  buildSync({
    absWorkingDir: root,
    entryPoints: [{ in: source, out: programs[source] }],
    outdir: join(directory, programs[source], 'dist'),
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
  copyFileSync(join(root, 'package.json'), join(directory, programs[source], 'package.json'))
}

const newDirectory = (): string => mkdtempSync(join(runDirectory(), 'built-'))

/** Before a whole run, so that its test files share one build. */
export const shareBuild = (): void => {
  const directory = newDirectory()
  for (const source of Object.keys(programs)) build(source as Program, directory)
  process.env[shared] = directory
}

const own = new Map<Program, string>()

const ownDirectory = (source: Program): string => {
  const directory = own.get(source) ?? newDirectory()
  if (!own.has(source)) build(source, directory)
  own.set(source, directory)
  return directory
}

/** The bundle of one of the programs. */
export const built = (source: Program): string =>
  join(process.env[shared] ?? ownDirectory(source), programs[source], 'dist', `${programs[source]}.js`)
