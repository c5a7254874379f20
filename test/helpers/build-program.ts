import { build } from 'esbuild'
import { plainBuiltins } from '../../scripts/plain-builtins.ts'

/** Bundles a program of the tests in the way in which Coppice itself is bundled, so that it starts as fast. */
const [source = '', name = '', outdir = ''] = process.argv.slice(2)
await build({
  entryPoints: [{ in: source, out: name }],
  outdir,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  plugins: [plainBuiltins],
  banner: { js: "const require = globalThis.process.getBuiltinModule('node:module').createRequire(import.meta.url);" },
  external: ['pg-native'],
  logLevel: 'error',
})
