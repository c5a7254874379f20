import { readdir, rm } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { groupImports } from './group-imports.ts'
import { plainBuiltins } from './plain-builtins.ts'
import { makeScriptChunk } from './script-chunk.ts'
import { withoutUnused } from './without-unused.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const outdir = resolve(root, process.argv[2] ?? 'dist')

/** What commands need goes into one chunk. Anything else behind an `import()` has its own. */
const commandFolders = ['cli', 'isolation', 'process', 'store']
/** They pull in what no short command needs: the server, and a parser for YAML. */
const ownChunk = [
  'cli/commands/chat.ts',
  'cli/commands/doctor.ts',
  'cli/commands/import-archon.ts',
  'cli/commands/serve.ts',
  'isolation/providers/clone/provider.ts',
]
const groupOf = (file: string): string => {
  const path = relative(join(root, 'src'), file)
  return commandFolders.some((folder) => path.startsWith(`${folder}/`)) && !ownChunk.includes(path) ? 'commands' : path
}

// Chunks of an earlier build must not be published.
await rm(outdir, { recursive: true, force: true })

const result = await build({
  absWorkingDir: root,
  entryPoints: { main: 'src/main.ts' },
  outdir,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  // Node 24 has it, and what the bundler replaces it with would be a file of its own.
  supported: { using: true },
  // Keeps `import()`s out of the first file, so that `worktree list` never reads pg or yaml.
  splitting: true,
  plugins: [
    plainBuiltins,
    withoutUnused(root),
    groupImports({ root, groupOf, importers: await importers(), entry: 'src/main.ts' }),
  ],
  chunkNames: 'chunks/[name]-[hash]',
  minifySyntax: true,
  minifyWhitespace: true,
  sourcemap: 'linked',
  sourcesContent: false,
  // Bundled CommonJS (pg, yaml) calls require for Node's modules, which ES modules don't have. `globalThis`: grammy
  // declares its own `process`, which the bundler can't rename in a banner.
  banner: {
    js: "const require = globalThis.process.getBuiltinModule('node:module').createRequire(import.meta.url);",
  },
  // pg tries the native binding and works without it.
  external: ['pg-native'],
  metafile: true,
  logLevel: 'warning',
})

// By themselves, so that they share no chunk with the program. The launcher must be small: what it starts copies its memory.
await build({
  absWorkingDir: root,
  entryPoints: { launcher: 'src/process/launcher/child.ts', 'cached-script': 'src/main/cached-script.ts' },
  outdir,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  minifySyntax: true,
  minifyWhitespace: true,
  logLevel: 'warning',
})

await makeScriptChunk(root, result.metafile.outputs, relative(root, join(outdir, 'main.js')))

const total = Object.values(result.metafile.outputs).reduce((sum, output) => sum + output.bytes, 0)
const outputs = Object.keys(result.metafile.outputs).filter((name) => name.endsWith('.js'))
console.log(`${outputs.length} files, ${kilobytes(total)} with their maps`)

async function importers(): Promise<string[]> {
  const sources = await readdir(join(root, 'src'), { recursive: true })
  return sources.filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts')).map((path) => join('src', path))
}

function kilobytes(bytes: number): string {
  return `${Math.ceil(bytes / 1024)} kB`
}
