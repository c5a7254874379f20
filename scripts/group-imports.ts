import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Plugin } from 'esbuild'

export type Groups = {
  readonly root: string
  /** Whatever has a group is read with its group; one that is alone keeps a file of its own. */
  readonly groupOf: (path: string) => string
  /** The files with `import()` in them. */
  readonly importers: readonly string[]
  /** What is read before any group is: the one with the first line of the program. */
  readonly entry: string
}

/**
 * Makes one chunk out of many `import()`s. Left to itself the bundler cuts the code wherever two commands share
 * something, and `worktree list` reads 41 files: 20 ms more than it takes to read the same code from a few.
 */
export const groupImports = ({ root, groupOf, importers, entry }: Groups): Plugin => ({
  name: 'group-imports',
  setup: async (build) => {
    const groups = Map.groupBy(await importedBy(root, importers), groupOf)
    await assertDistinctNames(groups)
    const before = await startsWith(root, entry)
    build.onResolve({ filter: /^\.{1,2}\// }, ({ kind, resolveDir, path }) =>
      kind === 'dynamic-import' ? { path: groupOf(join(resolveDir, path)), namespace: 'group' } : undefined,
    )
    build.onLoad({ filter: /.*/, namespace: 'group' }, ({ path: group }) => ({
      contents: [...before, ...(groups.get(group) ?? []).map((file) => `export * from ${JSON.stringify(file)}`)].join(
        '\n',
      ),
      resolveDir: root,
    }))
  },
})

/**
 * The bundler makes a file of every set of modules that the same groups need. What the entry needs is there already
 * whoever asks for it, so every group is said to need all of it: one file, not one for each way in which they overlap.
 */
const startsWith = async (root: string, entry: string): Promise<string[]> => {
  const text = await readFile(join(root, entry), 'utf8')
  const paths = [...text.matchAll(/^import (?!type )[^;]*? from '(\.[^']+)'$/gm)].map(([, path = '']) => path)
  return paths.map((path) => `import ${JSON.stringify(join(root, dirname(entry), path))}`)
}

const importedBy = async (root: string, importers: readonly string[]): Promise<string[]> => {
  const found = new Set<string>()
  for (const importer of importers) {
    const file = join(root, importer)
    const text = await readFile(file, 'utf8')
    for (const [, path = ''] of text.matchAll(/\bimport\('(\.[^']+)'\)/g)) found.add(join(dirname(file), path))
  }
  return [...found]
}

/** Two modules of a group with one name would leave both out without a word. */
const assertDistinctNames = async (groups: ReadonlyMap<string, readonly string[]>): Promise<void> => {
  for (const [group, files] of groups) {
    const seen = new Map<string, string>()
    for (const file of files) {
      const text = await readFile(file, 'utf8')
      for (const [, name = ''] of text.matchAll(/^export (?:async )?(?:const|function|class) (\w+)/gm)) {
        const other = seen.get(name)
        if (other !== undefined) throw new Error(`${name} is exported by ${other} and ${file}, both in ${group}`)
        seen.set(name, file)
      }
    }
  }
}
