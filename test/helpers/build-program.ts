import { build, type Plugin } from 'esbuild'
import { plainBuiltins } from '../../scripts/plain-builtins.ts'

/**
 * Packages that only platforms, agents and the server import, and by far most of the code. No test program needs them,
 * and without them everything fits into one file, which loads faster than many chunks.
 */
const [source = '', name = '', outdir = ''] = process.argv.slice(2)

/** An agent of the fleet opens a pull request. */
const filter =
  name === 'fleet-child'
    ? /^(?:discord\.js|grammy|markdown-it|hono|@hono\/.+|hono\/.+|@slack\/.+|@agentclientprotocol\/.+)$/
    : /^(?:discord\.js|grammy|octokit|markdown-it|hono|@hono\/.+|hono\/.+|@slack\/.+|@octokit\/.+|@agentclientprotocol\/.+)$/

const unused: Plugin = {
  name: 'unused',
  setup: (bundle) => {
    bundle.onResolve({ filter }, ({ path }) => ({ path, namespace: 'unused' }))
    bundle.onLoad({ filter: /^/, namespace: 'unused' }, ({ path }) => ({
      contents: `module.exports = {}; throw new Error('${path} is not part of the test programs: see build-program.ts')`,
    }))
  },
}

/** Bundles a program of the tests, so that it starts fast. */
await build({
  entryPoints: [{ in: source, out: name }],
  outdir,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  plugins: [plainBuiltins, unused],
  banner: { js: "const require = globalThis.process.getBuiltinModule('node:module').createRequire(import.meta.url);" },
  external: ['pg-native'],
  logLevel: 'error',
})
