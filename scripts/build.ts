import { rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))

// A chunk of an earlier build that nothing imports any more must not be published.
await rm(`${root}/dist`, { recursive: true, force: true })

const result = await build({
  absWorkingDir: root,
  entryPoints: ['src/main.ts'],
  outdir: 'dist',
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  // What is imported with import() stays a chunk of its own, so that `worktree list` never reads pg or yaml.
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  minifySyntax: true,
  minifyWhitespace: true,
  keepNames: true,
  sourcemap: 'linked',
  sourcesContent: false,
  // Bundled CommonJS (pg, yaml) calls require for Node's own modules, which an ES module does not have.
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module';const require = __createRequire(import.meta.url);",
  },
  // pg tries the native binding and does without it.
  external: ['pg-native'],
  metafile: true,
  logLevel: 'warning',
})

const total = Object.values(result.metafile.outputs).reduce((sum, output) => sum + output.bytes, 0)
const entry = result.metafile.outputs['dist/main.js']?.bytes ?? 0
console.log(`dist/main.js ${kilobytes(entry)}, dist/ ${kilobytes(total)}`)

function kilobytes(bytes: number): string {
  return `${Math.ceil(bytes / 1024)} kB`
}
