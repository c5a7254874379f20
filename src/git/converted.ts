import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isUserScope } from './config-entries.ts'
import type { Git, Tree } from './door.ts'
import { splitNul, treePath, type TreePath } from './tree-path.ts'

/**
 * Tracked files that git calls clean although their bytes need not be those that a checkout writes: a filter (nbstripout)
 * or a line-end conversion stands between. Asked only where attributes or the user's configuration can make one.
 */
export const convertedFiles = async (git: Git, tree: Tree): Promise<TreePath[]> => {
  const entries = (await git.config(tree)).filter(isUserScope)
  const filters = new Set(entries.flatMap(({ key }) => /^filter\.(.+)\.(?:clean|process)$/s.exec(key)?.[1] ?? []))
  // What LFS cleans it also keeps.
  filters.delete('lfs')
  const converts = entries.some(
    ({ key }) => key === 'core.autocrlf' || key === 'core.eol' || key === 'core.attributesfile',
  )
  const attributes = [join(tree.path, '.gitattributes'), join(tree.commonDir, 'info/attributes')].some(existsSync)
  if (!converts && !attributes && filters.size === 0) return []
  const found = new Map<string, TreePath>()
  for (const path of await differentLineEnds(git, tree)) found.set(path.bytes.toString('latin1'), path)
  if (filters.size > 0)
    for (const path of await filtered(git, tree, filters)) found.set(path.bytes.toString('latin1'), path)
  return [...found.values()]
}

/** `i/<eol> w/<eol> attr/<attr> TAB path`: `i` is what the index has, `w` what lies on disk. */
const differentLineEnds = async (git: Git, tree: Tree): Promise<TreePath[]> => {
  const { stdoutBytes } = await git.run({
    operation: 'ls-files',
    at: tree,
    args: ['ls-files', '--eol', '-z', '--full-name'],
  })
  return splitNul(stdoutBytes).flatMap((record) => {
    const tab = record.indexOf(0x09)
    const [, index, work, attribute = ''] =
      /^i\/(\S*) +w\/(\S*) +attr\/(.*?) *$/.exec(record.toString('latin1', 0, tab)) ?? []
    const plain = index === '-text' || work === '' || work === 'none' || attribute.startsWith('-text')
    // The same line ends may still not be what a checkout writes: `text eol=crlf` over a file with LF.
    const asIs = index === work && (work === 'crlf' || !/eol=crlf|text/.test(attribute))
    return plain || asIs ? [] : [treePath(record.subarray(tab + 1))]
  })
}

const filtered = async (git: Git, tree: Tree, filters: ReadonlySet<string>): Promise<TreePath[]> => {
  const listed = await git.run({ operation: 'ls-files', at: tree, args: ['ls-files', '-z', '--full-name'] })
  const { stdoutBytes } = await git.run({
    operation: 'check-attr',
    at: tree,
    args: ['check-attr', '-z', '--stdin', 'filter'],
    stdin: listed.stdoutBytes,
  })
  const fields = splitNul(stdoutBytes)
  const found: TreePath[] = []
  for (let i = 0; i + 2 < fields.length; i += 3) {
    const [path, , value] = fields.slice(i, i + 3)
    if (path !== undefined && filters.has(value?.toString('utf8') ?? '')) found.push(treePath(path))
  }
  return found
}
