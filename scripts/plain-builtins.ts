import type { Plugin } from 'esbuild'

/**
 * Node's own modules, each name taken by itself. `import { statSync } from 'node:fs'` makes Node build a module with
 * everything that `node:fs` has, and calls every getter for it: streams, promises, for `node:util` the diff and for
 * `node:crypto` all of WebCrypto, about 8 ms of a short command.
 */
export const plainBuiltins: Plugin = {
  name: 'plain-builtins',
  setup: (build) => {
    build.onResolve({ filter: /^node:/ }, ({ kind, path }) =>
      kind === 'require-call' ? { path, external: true } : { path, namespace: 'builtin', sideEffects: false },
    )
    build.onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => ({ contents: moduleOf(path) }))
  },
}

const moduleOf = (path: string): string => {
  const builtin: object | undefined = process.getBuiltinModule(path)
  if (builtin === undefined) throw new Error(`this Node has no ${path}`)
  const whole = `process.getBuiltinModule(${JSON.stringify(path)})`
  const names = Object.keys(builtin).filter((name) => /^[A-Za-z_$][\w$]*$/.test(name) && name !== 'default')
  return names
    .map((name) => `export const ${name} = ${path === 'node:crypto' ? whenCalled(whole, name) : taken(whole, name)}`)
    .join('\n')
}

/** Marked as pure, so that a name nobody imports is not even looked at. */
const taken = (whole: string, name: string): string => `/* @__PURE__ */ (() => ${whole}.${name})()`

/** We take nothing but functions from it, and looking at environments calls none of them. */
const whenCalled = (whole: string, name: string): string => `(...args) => ${whole}.${name}(...args)`
