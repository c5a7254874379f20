import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, relative, resolve } from 'node:path'
import { providerNames } from '../src/domain/provider-name.ts'
import { providers } from '../src/isolation/providers/registry.ts'
import { describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '..')

/** Rooms from the ground up. A file may import from its own room and from lower ones. */
const floors = [
  ['domain'],
  ['git', 'process', 'store'],
  ['isolation'],
  ['agents'],
  ['runs'],
  ['cleanup', 'fleet'],
  ['commands'],
  ['conversations'],
  ['platforms', 'server', 'cli'],
  // main.ts and the parts of it that are loaded only when a message is to be worked on
  ['main', 'main.ts'],
]

/** The only doors between rooms on one floor. */
const doors: Record<string, readonly string[]> = {
  git: ['process'], // the door to git starts and ends its children as process/ does all others
  fleet: ['cleanup'], // fleet down --clean
  server: ['platforms'], // their webhooks
  cli: ['server', 'platforms'], // coppice chat, through the server or as one
  'main.ts': ['main'],
}

/** The outside world comes in as arguments; here is who may reach for it all the same, and why. */
const reachOutside: readonly { file: string; what: string; why: string }[] = [
  { file: 'src/store/sqlite/driver.ts', what: 'Math.random()', why: 'jitter between tries; no answer depends on it' },
]

/** Files that do a door's dangerous part. Nobody but the door opens them. */
const behind: Record<string, string> = {
  'src/git/child.ts': 'src/git/door.ts',
  'src/isolation/lock/lock-file.ts': 'src/isolation/lock/lock.ts',
}

const domainMayUse = new Set(['node:path', 'node:crypto', 'yaml'])

/**
 * Opening a file can wait for ever: a FIFO waits for its other end. Everything that an agent or a repository can write is
 * opened in process/; here is who opens files all the same, and why that cannot wait.
 */
const opensFiles: Record<string, string> = {
  'src/process/files/read-untrusted.ts': 'is the reader',
  'src/process/files/replace-file.ts': 'is the writer',
  'src/process/files/sync-path.ts': 'syncs, with the flags of the reader',
  'src/process/files/delete-tree.ts': 'opens directories with O_PATH, and reads /proc',
  'src/process/git-processes.ts': 'reads /proc',
  'src/process/identity-linux.ts': 'reads /proc',
  'src/process/inside/linux.ts': 'reads /proc',
  'src/process/run-processes.ts': 'reads /proc',
  'src/process/cgroup.ts': 'reads /proc and writes into a cgroup, which is no place for files',
  'src/process/files/mounts.ts': 'reads /proc',
  'src/process/table.ts': 'reads /proc',
  'src/process/arguments.ts': 'reads /proc',
  'src/process/files/fifo.ts': 'writes to a FIFO with O_NONBLOCK and O_NOFOLLOW',
  'src/process/files/log-tail.ts': 'opens logs with O_NONBLOCK and O_NOFOLLOW',
  'src/isolation/durable.ts': 'writes with O_NONBLOCK and O_NOFOLLOW',
  'src/isolation/lock/lock-file.ts': 'writes with O_NONBLOCK and O_NOFOLLOW, or with O_EXCL',
  'src/isolation/paths.ts': 'makes a new file (O_EXCL)',
  'src/agents/acp/confined-files.ts': 'writes, and opens directories, with O_NONBLOCK and O_NOFOLLOW',
  'src/server/connections.ts': 'reads /proc',
  'src/server/token-file.ts': 'opens with O_NONBLOCK and O_NOFOLLOW: it also corrects the mode',
  'src/store/sqlite/open.ts': 'makes a new file (O_EXCL)',
  'src/store/archon/sqlite.ts': "reads another program's database, which a person named",
  'src/main.ts': 'reads package.json of this installation',
  'src/main/take-environment.ts': 'reads /proc, and a file that this very process wrote',
  'src/main/old-code-caches.ts': 'gets node:fs from src/main/cached-script.ts: reads and deletes our own cache',
  'src/main/cached-script.ts':
    'loads the program, so it can import none of it: reads the installation and our own cache',
}

const opening = new Set([
  'readFile',
  'readFileSync',
  'open',
  'openSync',
  'openAsBlob',
  'createReadStream',
  'createWriteStream',
  'copyFile',
  'copyFileSync',
  'cp',
  'cpSync',
  'appendFile',
  'appendFileSync',
  'truncate',
  'truncateSync',
])

/** An agent can put a million names into a directory; here is who lists one at once all the same, and why. */
const listsAtOnce: Record<string, string> = {
  'src/process/files/list-directory.ts': 'lists small directories',
  'src/process/inside/linux.ts': 'reads /proc',
  'src/process/table.ts': 'reads /proc',
  'src/process/cgroup.ts': 'reads a cgroup',
  'src/git/clone-bare.ts': 'asks whether the directory that a person named is empty',
  'src/git/blobs.ts': "syncs git's object directories, while nothing else may happen",
  'src/main/old-code-caches.ts': 'lists our own cache, once per version and at the end of a command',
  'src/runs/wires/git-places.ts': 'answers at once, and refuses more than 500 hooks',
}

type Rule = (file: string, source: string) => string[]

const importsPointDown: Rule = (file, source) => {
  const from = room(file)
  const floor = floorOf(from)
  if (floor === -1) return [`${file}: the room ${from} has no floor in this test`]
  return imports(source).flatMap((target) => {
    if (!target.startsWith('.')) {
      return from === 'domain' && !domainMayUse.has(target) ? [`${file}: domain is pure and imports ${target}`] : []
    }
    const path = posix.join(posix.dirname(file), target)
    if (!path.startsWith('src/')) return [`${file}: imports ${path} from outside src/`]
    const to = room(path)
    const fine = to === from || (floorOf(to) !== -1 && floorOf(to) < floor) || doors[from]?.includes(to)
    return fine ? [] : [`${file}: ${from} imports ${to}`]
  })
}

/** Rooms of isolation that ask git about the repository itself; the rest asks whoever serves an environment. */
const knowsRepositories = ['codebases', 'merge-proof']

/** Who names a provider outside of the seam, and why. */
const namesProviders: Record<string, string> = {
  'src/main.ts': 'is where the members come in',
  'src/cli/doctor/records.ts': "names what git's own records say that ours do not",
  'src/cli/doctor/worktrees.ts': "names what git's own records say that ours do not",
}

/** A member of the provider seam knows its own git, and nobody else's: what two have in common is in `checkout/`. */
const providersKeepToThemselves: Rule = (file, source) => {
  const [, isolation, inner = '', member = ''] = file.split('/')
  const isInside = isolation === 'isolation'
  return imports(source).flatMap((target) => {
    const path = posix.join(posix.dirname(file), target).split('/')
    if (isInside && path[1] === 'git' && !['providers', ...knowsRepositories].includes(inner)) {
      return [`${file}: asks git; only providers, codebases and merge proofs do`]
    }
    if (path[1] !== 'isolation' || path[2] !== 'providers') return []
    if (isInside && inner === 'providers') {
      const isFine = member === 'registry.ts' || path[3] === 'checkout' || path[3] === member
      return isFine ? [] : [`${file}: a provider that imports another`]
    }
    return file in namesProviders ? [] : [`${file}: names a provider (${target})`]
  })
}

const oneDoorEach: Rule = (file, source) =>
  imports(source).flatMap((target) => {
    const door = behind[posix.join(posix.dirname(file), target)]
    if (door !== undefined && !isDoor(file, door)) return [`${file}: goes round ${door} to ${target}`]
    const name = target.replace(/^node:/, '').split('/')[0] ?? ''
    if (name === 'child_process' && !isDoor(file, 'src/git/door.ts') && room(file) !== 'process') {
      return [`${file}: starts programs; only git/door.ts and process/ do`]
    }
    if (name === 'sqlite' && isDoor(file, 'src/isolation/lock/lock.ts')) return []
    if (['sqlite', 'pg', 'kysely'].includes(name) && room(file) !== 'store') {
      return [`${file}: speaks SQL (${target}); only store/ does`]
    }
    return []
  })

const isDoor = (file: string, door: string): boolean => file === door || behind[file] === door

/** The clock, ids and the environment belong to whoever wires things: main, cli and server. */
const nothingFromOutside: Rule = (file, source) => {
  if (['main.ts', 'main', 'cli', 'server'].includes(room(file))) return []
  const code = withoutStrings(source)
  const reaches = {
    'process.env': /\bprocess\s*\.\s*env\b/,
    'Date.now()': /\bDate\s*\.\s*now\b/,
    'new Date()': /\bnew\s+Date\s*(?:\(\s*\)|(?!\s*\())/,
    'Math.random()': /\bMath\s*\.\s*random\b/,
    'randomUUID()': /\brandomUUID\b/,
  }
  const found = Object.entries(reaches).flatMap(([what, pattern]) =>
    pattern.test(code) && !reachOutside.some((known) => known.file === file && known.what === what)
      ? [`${file}: reads ${what}`]
      : [],
  )
  return imports(source).some((target) => /^(?:node:)?process$/.test(target))
    ? [...found, `${file}: imports process`]
    : found
}

const opensNothing: Rule = (file, source) => {
  if (file in opensFiles) return []
  const code = withoutComments(source)
  const imported = [...code.matchAll(/\bimport\s*(\{[^}]*\}|[^'"{}]+)\s*from\s*['"](?:node:)?fs(?:\/promises)?['"]/g)]
  const named = imported.flatMap(([, names = '']) => {
    if (!names.startsWith('{')) return [names.trim()]
    const words = names.slice(1, -1).split(',')
    return words.map((word) => word.trim().replace(/\s+as\s.*/, '')).filter((word) => opening.has(word))
  })
  const writes = [...code.matchAll(/\bwriteFile(?:Sync)?\(([^\n]*)/g)]
    .filter(([, rest = '']) => !rest.includes("flag: 'wx'"))
    .map(() => 'writeFile without O_EXCL')
  return [...named, ...writes].map(
    (what) => `${file}: opens files itself (${what}); process/ has a reader and a writer`,
  )
}

const listsInPieces: Rule = (file, source) =>
  !(file in listsAtOnce) && /\b(?:readdir|opendir)Sync\b/.test(withoutComments(source))
    ? [`${file}: lists directories itself; process/files/list-directory.ts does`]
    : []

/** Node's own recursive deletion crosses mounts, as `rm -rf` does. */
const deletesInOnePlace: Rule = (file, source) => {
  const recursive = /\b(?:rm|rmdir)(?:Sync)?\((?:[^(){}]|\([^()]*\))*\{[^}]*\brecursive: true|\brm -rf\b/g
  return [...withoutComments(source).matchAll(recursive)].map(
    () => `${file}: deletes directories itself; process/files/delete-tree.ts does`,
  )
}

/** Bundled, a CommonJS package that is loaded with import() has no names: whatever is taken from it is undefined. */
const namesSurviveBundling: Rule = (file, source) =>
  [...withoutComments(source).matchAll(/\bimport\(\s*['"](?!\.|node:|pg['"])([^'"]+)/g)].map(
    ([, name = '']) => `${file}: loads ${name} with import(); re-export what is needed in a file, and load that`,
  )

/** Files that import each other, on however long a way: what is left when nobody can be taken off either end. */
const circles = (over: readonly { file: string; source: string }[]): string[] => {
  const targets = ({ file, source }: { file: string; source: string }) =>
    imports(source).flatMap((target) => (target.startsWith('.') ? [posix.join(posix.dirname(file), target)] : []))
  let left = new Map(over.map((one) => [one.file, targets(one)]))
  for (let before = -1; before !== left.size;) {
    before = left.size
    const imported = new Set([...left.values()].flat())
    const stays = ([file, to]: [string, string[]]) => imported.has(file) && to.some((target) => left.has(target))
    left = new Map([...left].filter(stays).map(([file, to]) => [file, to.filter((target) => left.has(target))]))
  }
  return [...left.keys()]
}

const staysSmall: Rule = (file, source) => {
  const lines = source.replace(/\n$/, '').split('\n').length
  return lines > 350 ? [`${file}: ${lines} lines; look for the second thing in it`] : []
}

const noModuleMocks: Rule = (file, source) =>
  /\bvi\s*\.\s*(?:mock|doMock)\s*\(/.test(withoutStrings(source)) ? [`${file}: mocks a module`] : []

/** Folders whose files are of equal rank; what lists or explains them. */
const collections: Record<string, string> = {
  'src/domain': 'docs/architecture.md',
  'src/domain/text': 'docs/architecture.md',
  'src/cli/commands': 'src/cli/table.ts',
  'src/process/files': 'docs/architecture.md',
  'src/server/api': 'src/server/app.ts',
  'src/store/migrations': 'src/store/migrate.ts',
}

/** Of a folder with more than three files, one begins with what comes in and what goes out. */
const withoutEntry = (over: readonly { file: string; source: string }[]): string[] => {
  const folders = Map.groupBy(over, ({ file }) => posix.dirname(file))
  const isEntry = ({ source }: { source: string }) =>
    /^\/\*\n(?: \* [^\n]*\n)* \*\/\n/.test(source) && /\bIn\b/.test(headOf(source))
  return [...folders].filter(([, inside]) => inside.length > 3 && !inside.some(isEntry)).map(([folder]) => folder)
}

const headOf = (source: string): string => source.slice(0, source.indexOf('*/'))

const sources = files('src')
const all = [...sources, ...files('test'), ...files('bench'), ...files('scripts')]
const product = sources.filter(({ file }) => !file.endsWith('.test.ts'))
const sourceOf = (file: string) => product.find((f) => f.file === file)?.source ?? ''
const check = (rule: Rule, over: readonly { file: string; source: string }[]) =>
  over.flatMap((f) => rule(f.file, f.source))

describe('the architecture', () => {
  test('imports point down', () => {
    expect(product.length).toBeGreaterThan(0)
    expect(check(importsPointDown, product)).toEqual([])
  })

  test('a provider knows its own git, and the rest of isolation asks whoever serves an environment', () => {
    expect(check(providersKeepToThemselves, product)).toEqual([])
    expect([...providers.keys()]).toEqual(providerNames)
  })

  test('no files import each other in a circle', () => {
    expect(circles(product)).toEqual([])
    const source = (target: string) => `import type { A } from './${target}.ts'`
    const files = { top: 'a', a: 'b', b: 'c', c: 'a', d: 'e' }
    const made = Object.entries(files).map(([file, target]) => ({ file: `src/x/${file}.ts`, source: source(target) }))
    expect(circles(made)).toEqual(['src/x/a.ts', 'src/x/b.ts', 'src/x/c.ts'])
  })

  test('there is one door to programs and one to SQL', () => {
    expect(check(oneDoorEach, product)).toEqual([])
  })

  test('clock, ids and environment come in as arguments', () => {
    expect(check(nothingFromOutside, product)).toEqual([])
  })

  test('files are opened in one place, where nothing can make it wait', () => {
    expect(check(opensNothing, product)).toEqual([])
  })

  test('directories are listed in one place, a piece at a time', () => {
    expect(check(listsInPieces, product)).toEqual([])
  })

  test('directories are deleted in one place, which crosses no mount', () => {
    expect(check(deletesInOnePlace, product)).toEqual([])
  })

  test('every exception is still needed', () => {
    const other = 'src/isolation/other.ts'
    expect(Object.keys(opensFiles).filter((file) => opensNothing(other, sourceOf(file)).length === 0)).toEqual([])
    expect(Object.keys(listsAtOnce).filter((file) => listsInPieces(other, sourceOf(file)).length === 0)).toEqual([])
    // The same source under another name, which has no exception.
    const unused = reachOutside.filter(
      ({ file, what }) => !nothingFromOutside('src/store/other.ts', sourceOf(file)).join().includes(what),
    )
    expect(unused).toEqual([])
    expect(Object.keys(behind).filter((file) => sourceOf(file) === '')).toEqual([])
    const names = (file: string) => providersKeepToThemselves('src/cli/doctor/other.ts', sourceOf(file))
    const unneeded = Object.keys(namesProviders).filter((file) => file !== 'src/main.ts' && names(file).length === 0)
    expect(unneeded).toEqual([])
  })

  test('no package is loaded in a way that breaks when it is bundled', () => {
    expect(check(namesSurviveBundling, product)).toEqual([])
  })

  test('no file grows past 350 lines', () => {
    expect(check(staysSmall, product)).toEqual([])
  })

  test('every folder has a file that says what comes in and what goes out', () => {
    expect(withoutEntry(product).toSorted()).toEqual(Object.keys(collections).toSorted())
  })

  test('no test mocks a module', () => {
    expect(check(noModuleMocks, all)).toEqual([])
  })
})

describe('each rule can fail', () => {
  test.each([
    ['src/domain/x.ts', "import { a } from '../git/door.ts'", 'domain imports git'],
    ['src/domain/x.ts', "import { readFile } from 'node:fs/promises'", 'domain is pure'],
    ['src/git/x.ts', "import type { Store } from '../store/store.ts'", 'git imports store'],
    ['src/process/x.ts', "import { git } from '../git/door.ts'", 'process imports git'],
    ['src/store/x.ts', "export { a } from '../isolation/resolve/resolve.ts'", 'store imports isolation'],
    ['src/isolation/codebases/x.ts', "import { a } from '../../cleanup/sweep.ts'", 'isolation imports cleanup'],
    ['src/isolation/x.ts', "const a = await import('../cli/run.ts')", 'isolation imports cli'],
    ['src/fleet/x.ts', "import {\n  a,\n  b,\n} from '../conversations/inbox.ts'", 'fleet imports conversations'],
    ['src/runs/x.ts', "import '../conversations/queue.ts'", 'runs imports conversations'],
    ['src/cli/x.ts', "import { a } from '../main.ts'", 'cli imports main.ts'],
    ['src/cli/x.ts', "import { a } from '../../test/helpers/repo.ts'", 'from outside src/'],
    ['src/extras/x.ts', '', 'no floor'],
    ['src/cli/x.ts', "import { a } from '../extras/x.ts'", 'cli imports extras'],
  ])('direction: %s with %j', (file, source, problem) => {
    expect(importsPointDown(file, source)).toEqual([expect.stringContaining(problem)])
  })

  test.each([
    ['src/isolation/x.ts', "import { AppError } from '../domain/errors.ts'"],
    ['src/git/x.ts', "import { run } from '../process/run.ts'"],
    ['src/main.ts', "import { a } from './cli/run.ts'"],
    ['src/domain/x.ts', "// import { a } from '../git/door.ts'\nimport { join } from 'node:path'"],
  ])('direction: %s may say %j', (file, source) => {
    expect(importsPointDown(file, source)).toEqual([])
  })

  test.each([
    ['src/isolation/x.ts', "import type { Tree } from '../git/door.ts'", 'asks git'],
    ['src/isolation/x.ts', "import { a } from './providers/worktree/spare.ts'", 'names a provider'],
    ['src/isolation/codebases/x.ts', "import { a } from '../providers/checkout/plan.ts'", 'names a provider'],
    ['src/isolation/providers/clone/x.ts', "import { a } from '../worktree/spare.ts'", 'imports another'],
    ['src/isolation/providers/checkout/x.ts', "import { a } from '../clone/refs.ts'", 'imports another'],
    ['src/commands/x.ts', "import { a } from '../isolation/providers/clone/refs.ts'", 'names a provider'],
  ])('providers: %s with %j', (file, source, problem) => {
    expect(providersKeepToThemselves(file, source)).toEqual([expect.stringContaining(problem)])
  })

  test.each([
    ['src/isolation/codebases/x.ts', "import { a } from '../../git/refs.ts'"],
    ['src/isolation/providers/clone/x.ts', "import { a } from '../checkout/plan.ts'"],
    ['src/isolation/providers/checkout/look/x.ts', "import { a } from '../../../../git/refs.ts'"],
  ])('providers: %s may say %j', (file, source) => {
    expect(providersKeepToThemselves(file, source)).toEqual([])
  })

  test.each([
    ['src/isolation/x.ts', "import { spawn } from 'node:child_process'"],
    ['src/git/worktree-add.ts', "import { spawn } from 'child_process'"],
    ['src/cli/x.ts', "const { spawn } = await import('node:child_process')"],
    ['src/isolation/x.ts', "import { DatabaseSync } from 'node:sqlite'"],
    ['src/isolation/lock/lock.ts', "import { Pool } from 'pg'"],
    ['src/cli/x.ts', "import { sql } from 'kysely'"],
    ['src/git/fetch.ts', "import { runChild } from './child.ts'"],
    ['src/isolation/providers/checkout/create.ts', "import { open } from '../../lock/lock-file.ts'"],
    ['src/cli/x.ts', "import type { Migration } from 'kysely/migration'"],
  ])('doors: %s with %j', (file, source) => {
    expect(oneDoorEach(file, source)).toHaveLength(1)
  })

  test.each([
    ['src/git/door.ts', "import { spawn } from 'node:child_process'"],
    ['src/git/child.ts', "import { spawn } from 'node:child_process'"],
    ['src/git/door.ts', "import { runChild } from './child.ts'"],
    ['src/process/run.ts', "import { spawn } from 'node:child_process'"],
    ['src/isolation/lock/lock.ts', "import { DatabaseSync } from 'node:sqlite'"],
    ['src/store/sqlite/open.ts', "import { Kysely } from 'kysely'"],
  ])('doors: %s is one, with %j', (file, source) => {
    expect(oneDoorEach(file, source)).toEqual([])
  })

  test.each([
    'const home = process.env.HOME',
    "const home = process.env['HOME']",
    'const now = Date.now()',
    'const clock = Date.now',
    'const now = new Date()',
    'const text = `${Date.now()}`',
    'const n = Math.random()',
    'const id = crypto.randomUUID()',
    "import { env } from 'node:process'",
  ])('outside: %j', (source) => {
    expect(nothingFromOutside('src/isolation/x.ts', source)).toHaveLength(1)
    expect(nothingFromOutside('src/cli/x.ts', source)).toEqual([])
  })

  test.each([
    '// Date.now() comes in',
    '/* process.env */',
    "const text = 'process.env'",
    'new Date(at).toISOString()',
  ])('outside: %j is harmless', (source) => {
    expect(nothingFromOutside('src/isolation/x.ts', source)).toEqual([])
  })

  test.each(["import { readdirSync } from 'node:fs'", "const { opendirSync } = await import('node:fs')"])(
    'listing: %j',
    (source) => {
      expect(listsInPieces('src/isolation/x.ts', source)).toHaveLength(1)
      expect(listsInPieces('src/process/table.ts', source)).toEqual([])
    },
  )

  test.each([
    "import { readFile } from 'node:fs/promises'",
    "import { existsSync, readFileSync as read } from 'fs'",
    "import {\n  lstatSync,\n  openSync,\n} from 'node:fs'",
    "import fs from 'node:fs'",
    "import * as fs from 'node:fs/promises'",
    'await writeFile(path, text, { mode: 0o600 })',
  ])('opening: %j', (source) => {
    expect(opensNothing('src/isolation/x.ts', source)).toHaveLength(1)
    expect(opensNothing('src/process/files/read-untrusted.ts', source)).toEqual([])
  })

  test.each([
    "import { lstat, readdir } from 'node:fs/promises'",
    "import { readFile } from './own.ts'",
    "await writeFile(path, text, { flag: 'wx' })",
  ])('opening: %j is harmless', (source) => {
    expect(opensNothing('src/isolation/x.ts', source)).toEqual([])
  })

  test.each([
    'await rm(path, { recursive: true, force: true })',
    'rmSync(path, {\n  force: true,\n  recursive: true,\n})',
    "spawn('sh', ['-c', 'rm -rf -- \"$@\"'])",
  ])('deleting: %j', (source) => {
    expect(deletesInOnePlace('src/isolation/x.ts', source)).toHaveLength(1)
    expect(deletesInOnePlace('src/isolation/x.ts', 'await rm(path, { force: true })')).toEqual([])
  })

  test('packages loaded with import()', () => {
    expect(namesSurviveBundling('src/main/x.ts', "const { parse } = await import('yaml')")).toHaveLength(1)
    expect(namesSurviveBundling('src/main/x.ts', "await import('./a.ts'); await import('node:fs')")).toEqual([])
  })

  test('entry files', () => {
    const made = (source: string) => ['a', 'b', 'c', 'd'].map((name) => ({ file: `src/x/${name}.ts`, source }))
    expect(withoutEntry(made('import a from "a"\n'))).toEqual(['src/x'])
    expect(withoutEntry(made('/*\n * Things. In: a name. Out: a thing.\n */\nimport a from "a"\n'))).toEqual([])
  })

  test('size and mocks', () => {
    expect(staysSmall('src/cli/x.ts', 'a\n'.repeat(351))).toHaveLength(1)
    expect(staysSmall('src/cli/x.ts', 'a\n'.repeat(350))).toEqual([])
    expect(noModuleMocks('src/cli/x.test.ts', "vi.mock('../git/door.ts')".replaceAll("'", '`'))).toHaveLength(1)
  })
})

function files(folder: string): { file: string; source: string }[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ file: relative(root, path), source: readFileSync(path, 'utf8') }))
}

/** `src/git/door.ts` → `git`; `src/main.ts` → `main.ts`. */
function room(file: string): string {
  return file.split('/')[1] ?? ''
}

function floorOf(name: string): number {
  return floors.findIndex((rooms) => rooms.includes(name))
}

function imports(source: string): string[] {
  const pattern = /\bfrom\s*['"]([^'"\n]+)['"]|\bimport\s*\(\s*['"`]([^'"`\n]+)['"`]|\bimport\s*['"]([^'"\n]+)['"]/g
  return [...withoutComments(source).matchAll(pattern)].map((match) => match[1] ?? match[2] ?? match[3] ?? '')
}

// A string ends with its line, so that a quote inside a regular expression cannot swallow more than that line.
function pieces(source: string, change: (piece: string) => string): string {
  return source.replaceAll(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/g, change)
}

function withoutComments(source: string): string {
  return pieces(source, (piece) => (piece.startsWith('/') ? ' ' : piece))
}

/** Templates stay: they hold code. */
function withoutStrings(source: string): string {
  return pieces(source, (piece) => (piece.startsWith('/') ? ' ' : "''"))
}
