import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { trimEndOf } from '../domain/trim-end.ts'
import type { ConfigEntry } from './config-entries.ts'
import type { Git, Tree } from './door.ts'
import { mayMention } from './index-scan.ts'
import { splitNul, treePath, type TreePath } from './tree-path.ts'

/**
 * Tracked files that git calls clean although their bytes need not be those that a checkout writes: a filter (nbstripout),
 * a line-end or encoding conversion or `$Id$` stands between. What the repository's own configuration says counts, too:
 * we do not act on it, but whoever ran `git add` did. Asked only where attributes or the configuration can convert;
 * `others` are the files that git does not track.
 */
export const convertedFiles = async (git: Git, tree: Tree, others: readonly TreePath[] = []): Promise<TreePath[]> => {
  const entries = await git.config(tree)
  const converts = entries.some(({ key }) => /^core\.(?:autocrlf|eol|attributesfile)$|^filter\.(?!lfs\.)/.test(key))
  if (!converts && !hasAttributes(tree, others)) return []
  const found = new Map<string, TreePath>()
  for (const path of await differentLineEnds(git, tree)) found.set(path.bytes.toString('latin1'), path)
  for (const path of await convertedByAttribute(git, tree, entries)) found.set(path.bytes.toString('latin1'), path)
  return [...found.values()]
}

const attributesFile = '.gitattributes'

/** At any depth, tracked or not. Git reads one that is missing on disk from the index. */
const hasAttributes = (tree: Tree, others: readonly TreePath[]): boolean =>
  [join(tree.path, attributesFile), join(tree.commonDir, 'info/attributes')].some(existsSync) ||
  others.some(({ path }) => path.endsWith(attributesFile)) ||
  mayMention(join(tree.gitDir, 'index'), attributesFile)

/** `i/<eol> w/<eol> attr/<attr> TAB path`: `i` is what the index has, `w` what lies on disk. */
const differentLineEnds = async (git: Git, tree: Tree): Promise<TreePath[]> => {
  const { stdoutBytes } = await git.run({
    operation: 'ls-files',
    at: tree,
    args: ['ls-files', '--eol', '-z', '--full-name'],
  })
  return splitNul(stdoutBytes).flatMap((record) => {
    const tab = record.indexOf(0x09)
    const [, index = '', work = '', attribute = ''] =
      /^i\/(\S*) +w\/(\S*) +attr\/(.*)$/.exec(record.toString('latin1', 0, tab)) ?? []
    return work === '' || isAsIs(index, work, trimEndOf(attribute, ' ')) ? [] : [treePath(record.subarray(tab + 1))]
  })
}

/** Do these bytes come back from a checkout, as far as line ends tell? */
const isAsIs = (index: string, work: string, attribute: string): boolean => {
  if (index !== work) return false
  const isText = /eol=|text/.test(attribute) && !attribute.startsWith('-text')
  // `text` converts what looks binary, `text=auto` does not.
  if (work === '-text') return !isText || attribute.startsWith('text=auto')
  // The same line ends may still not be what a checkout writes: `text eol=crlf` over a file with LF.
  return work === 'none' || work === 'crlf' || (work === 'lf' && !isText)
}

const convertedByAttribute = async (git: Git, tree: Tree, entries: readonly ConfigEntry[]): Promise<TreePath[]> => {
  const listed = await git.run({ operation: 'ls-files', at: tree, args: ['ls-files', '-z', '--full-name'] })
  const { stdoutBytes } = await git.run({
    operation: 'check-attr',
    at: tree,
    args: ['check-attr', '-z', '--stdin', 'filter', 'ident', 'working-tree-encoding'],
    stdin: listed.stdoutBytes,
  })
  // What LFS cleans it also keeps.
  const keeps = entries.some(({ key, value }) => key === 'filter.lfs.clean' && value?.startsWith('git-lfs ') === true)
  const harmless = new Set(['unspecified', 'unset', ...(keeps ? ['lfs'] : [])])
  const fields = splitNul(stdoutBytes)
  const found: TreePath[] = []
  for (let i = 0; i + 2 < fields.length; i += 3) {
    const [path, , value] = fields.slice(i, i + 3)
    if (path !== undefined && !harmless.has(value?.toString('utf8') ?? '')) found.push(treePath(path))
  }
  return found
}
