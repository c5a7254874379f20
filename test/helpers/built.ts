import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { buildSync } from 'esbuild'

const root = resolve(import.meta.dirname, '../..')
/** Some suites set another one and look at what is left in it. */
const temporary = tmpdir()

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
  const directory = mkdtempSync(join(temporary, 'coppice-built-'))
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
export const shareBuild = (): (() => void) => {
  const directory = buildAll()
  process.env[shared] = directory
  return () => rmSync(directory, { recursive: true, force: true })
}

let own: string | undefined

const ownBuild = (): string => {
  const directory = buildAll()
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** The bundle of one of the programs. */
export const built = (source: keyof typeof programs): string =>
  join(process.env[shared] ?? (own ??= ownBuild()), 'dist', `${programs[source]}.js`)
