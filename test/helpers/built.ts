import { execFile, execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { runDirectory } from './run-directory.ts'

const root = resolve(import.meta.dirname, '../..')

/** Programs that tests start hundreds of times. */
const programs = {
  'src/main.ts': 'main',
  'test/conformance/store-child.ts': 'store-child',
  'test/crash/child.ts': 'crash-child',
  'test/crash/fleet-child.ts': 'fleet-child',
  'test/crash/messages-child.ts': 'messages-child',
  'test/isolation/inside-child.ts': 'inside-child',
  'test/isolation/schedule-child.ts': 'schedule-child',
  'test/model/child.ts': 'model-child',
} as const

type Program = keyof typeof programs

const shared = 'COPPICE_TEST_PROGRAMS'

const directoryOf = (source: Program, directory: string): string => join(directory, programs[source])

/**
 * The arguments of Node that bundle it: from source, half of a short program's time goes into loading it. Coppice itself
 * is bundled as it is published.
 */
const bundling = (source: Program, directory: string): string[] => {
  const outdir = join(directoryOf(source, directory), 'dist')
  const bundler =
    source === 'src/main.ts' ? ['scripts/build.ts', outdir] : [buildProgram, source, programs[source], outdir]
  mkdirSync(outdir, { recursive: true })
  copyFileSync(join(root, 'package.json'), join(directoryOf(source, directory), 'package.json'))
  return bundler
}

const buildProgram = 'test/helpers/build-program.ts'

const newDirectory = (): string => mkdtempSync(join(runDirectory(), 'built-'))

/** Before a whole run, so that its test files share one build. */
export const shareBuild = async (): Promise<void> => {
  const directory = newDirectory()
  const sources = Object.keys(programs) as Program[]
  const run = promisify(execFile)
  await Promise.all(sources.map((source) => run(process.execPath, bundling(source, directory), { cwd: root })))
  process.env[shared] = directory
}

const own = new Map<Program, string>()

const ownDirectory = (source: Program): string => {
  const known = own.get(source)
  if (known !== undefined) return known
  const directory = newDirectory()
  execFileSync(process.execPath, bundling(source, directory), { cwd: root })
  own.set(source, directory)
  return directory
}

/** The bundle of one of the programs. */
export const built = (source: Program): string =>
  join(directoryOf(source, process.env[shared] ?? ownDirectory(source)), 'dist', `${programs[source]}.js`)
