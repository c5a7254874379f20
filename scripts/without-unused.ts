import { join, relative } from 'node:path'
import type { Plugin } from 'esbuild'

/**
 * Parts of Kysely that we never call but that its main classes import, each with the class that it exports. They would be
 * a ninth of the code that every command loads: table definitions (our migrations are plain SQL), schemas, `merge into`.
 */
const unused: Readonly<Record<string, string>> = {
  'schema/schema-module.js': 'SchemaModule',
  'plugin/with-schema/with-schema-plugin.js': 'WithSchemaPlugin',
  'query-builder/merge-query-builder.js': 'MergeQueryBuilder',
}

/** Replaces them with classes that refuse to be created. */
export const withoutUnused = (root: string): Plugin => ({
  name: 'without-unused',
  setup: (build) => {
    const found = new Set<string>()
    build.onLoad({ filter: /[\\/]kysely[\\/]dist[\\/]/ }, ({ path }) => {
      const part = relative(join(root, 'node_modules/kysely/dist'), path)
      const name = unused[part]
      if (name === undefined) return undefined
      found.add(part)
      return { contents: refusing(name) }
    })
    build.onEnd(() => {
      const missing = Object.keys(unused).filter((part) => !found.has(part))
      if (missing.length > 0) throw new Error(`this version of Kysely has no ${missing.join(' or ')}`)
    })
  },
})

const refusing = (name: string): string =>
  `export class ${name} { constructor() { throw new Error('the build leaves out ${name}') } }`
