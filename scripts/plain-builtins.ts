import type { Plugin } from 'esbuild'

/**
 * Imports each name of a Node module separately. `import { statSync } from 'node:fs'` makes Node build the whole module
 * and call every getter: streams, promises, for `node:util` the diff and for `node:crypto` all of WebCrypto, about 8 ms
 * of a short command.
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
  if (builtin === undefined) throw new Error(`this version of Node has no ${path}`)
  const whole = `process.getBuiltinModule(${JSON.stringify(path)})`
  const names = Object.keys(builtin).filter((name) => /^[A-Za-z_$][\w$]*$/.test(name) && name !== 'default')
  return names
    .map((name) => `export const ${name} = ${path === 'node:crypto' ? lazyCall(whole, name) : pureAccess(whole, name)}`)
    .join('\n')
}

/** Pure, so names that nobody imports aren't even read. */
const pureAccess = (whole: string, name: string): string => `/* @__PURE__ */ (() => ${whole}.${name})()`

/** We import only functions from it, and most commands call none. */
const lazyCall = (whole: string, name: string): string => `(...args) => ${whole}.${name}(...args)`
