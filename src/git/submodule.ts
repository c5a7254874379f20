import { join } from 'node:path'
import type { Sha } from '../domain/names.ts'
import { toSha } from '../domain/names.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { splitKey } from './config-entries.ts'
import type { CallOptions, Git, Repo, Tree } from './door.ts'
import { withoutLargeFiles } from './large-files.ts'
import { splitNul, treePath, type TreePath } from './tree-path.ts'

/** A submodule's path, and the commit it should be at. */
export type Submodule = TreePath & { readonly sha: Sha }

/** The submodules of a worktree, from its index. */
export const listSubmodules = async (git: Git, tree: Tree, { signal }: CallOptions = {}): Promise<Submodule[]> => {
  const args = ['ls-files', '--stage', '-z', '--full-name']
  const { stdoutBytes } = await git.run({ operation: 'ls-files', at: tree, args, ...(signal && { signal }) })
  return gitlinks(stdoutBytes)
}

/** The submodules of a commit. */
export const submodulesOf = async (
  git: Git,
  repo: Repo,
  commit: Sha,
  { signal }: CallOptions = {},
): Promise<Submodule[]> => {
  const args = ['ls-tree', '-r', '-z', '--full-tree', commit]
  const { stdoutBytes } = await git.run({ operation: 'ls-tree', at: repo, args, ...(signal && { signal }) })
  return gitlinks(stdoutBytes)
}

/** `160000 <sha> 0 TAB path` in the index, `160000 commit <sha> TAB path` in a tree. */
const gitlinks = (output: Buffer): Submodule[] =>
  splitNul(output).flatMap((record) => {
    if (!record.subarray(0, 7).equals(gitlinkMode)) return []
    const tab = record.indexOf(0x09)
    const sha = record.subarray(7, tab).toString('utf8').replace('commit ', '').split(' ')[0] ?? ''
    return [{ ...treePath(record.subarray(tab + 1)), sha: toSha(sha) }]
  })

const gitlinkMode = Buffer.from('160000 ')

/** All of them, or those at `paths`. `--checkout`: `submodule.<name>.update` may be `!any command`. */
export const initSubmodules = async (
  git: Git,
  tree: Tree,
  {
    signal,
    onSpawn,
    paths = [],
    remoteUrl,
  }: CallOptions & {
    onSpawn?: (identity: ProcessIdentity) => void
    paths?: readonly string[]
    /** The repository's own remote: submodules beside it get the same credentials. */
    remoteUrl?: string | undefined
  } = {},
): Promise<void> => {
  const only = paths.length === 0 ? [] : ['--', ...paths.map((path) => `:(literal)${path}`)]
  await git.run({
    operation: 'submodule update',
    at: tree,
    args: ['submodule', '--quiet', 'update', '--init', '--recursive', '--checkout', ...only],
    network: { url: remoteUrl, others: true },
    locks: true,
    // On SIGTERM its `git clone` would delete everything in the submodule's directory.
    killAtOnce: true,
    ...(onSpawn && { onSpawn }),
    ...(signal && { signal }),
  })
}

/** A submodule's URL in `.gitmodules`. */
export type SubmoduleAddress = { readonly name: string; readonly path: string; readonly url: string }

/** The addresses in a commit's `.gitmodules`, by path. Skips a path that two names claim. */
export const submoduleAddresses = (
  git: Git,
  repo: Repo,
  commit: Sha,
  options: CallOptions = {},
): Promise<ReadonlyMap<string, SubmoduleAddress>> =>
  readAddresses(git, repo, ['--blob', `${commit}:.gitmodules`], options)

/** The addresses in a worktree's current `.gitmodules`, which git itself uses. */
export const worktreeSubmoduleAddresses = (
  git: Git,
  tree: Tree,
  options: CallOptions = {},
): Promise<ReadonlyMap<string, SubmoduleAddress>> =>
  readAddresses(git, tree, ['--file', join(tree.path, '.gitmodules')], options)

const readAddresses = async (
  git: Git,
  at: Repo | Tree,
  source: readonly string[],
  { signal }: CallOptions,
): Promise<ReadonlyMap<string, SubmoduleAddress>> => {
  const { stdout } = await git.run({
    operation: 'config',
    at,
    args: ['config', '-z', '--no-includes', ...source, '--list'],
    // A missing or unreadable file has no addresses.
    ok: [0, 1, 128],
    ...(signal && { signal }),
  })
  const found = new Map<string, { path?: string; url?: string }>()
  for (const entry of stdout.split('\0')) {
    const [key, value] = splitOnce(entry)
    const { section, subsection, variable } = splitKey(key)
    if (section !== 'submodule' || subsection === undefined || (variable !== 'path' && variable !== 'url')) continue
    found.set(subsection, { ...found.get(subsection), [variable]: value })
  }
  const addresses = [...found].flatMap(([name, { path, url }]) =>
    path === undefined || url === undefined ? [] : [{ name, path, url }],
  )
  const byPath = Map.groupBy(addresses, ({ path }) => path)
  return new Map([...byPath].flatMap(([path, [only, ...more]]) => (only && more.length === 0 ? [[path, only]] : [])))
}

const splitOnce = (entry: string): [string, string] => {
  const newline = entry.indexOf('\n')
  return newline < 0 ? [entry, ''] : [entry.slice(0, newline), entry.slice(newline + 1)]
}

/** Updates one submodule from exactly this address: https, no credentials, no redirects, no nested submodules. */
export const updateSubmoduleAnonymously = async (
  git: Git,
  tree: Tree,
  { name, path, url }: SubmoduleAddress,
  { signal, onSpawn }: CallOptions & { onSpawn?: (identity: ProcessIdentity) => void } = {},
): Promise<void> => {
  await git.run({
    operation: 'submodule update',
    at: tree,
    args: ['submodule', '--quiet', 'update', '--init', '--checkout', '--', path],
    settings: [
      [`submodule.${name}.url`, url],
      // The longest match wins, so no other rule rewrites it, perhaps to an address with a password.
      [`url.${url}.insteadOf`, url],
      ['protocol.allow', 'never'],
      ['protocol.https.allow', 'always'],
      ['http.followRedirects', 'false'],
      ...withoutLargeFiles,
    ],
    network: { url },
    anonymous: true,
    locks: true,
    killAtOnce: true,
    ...(onSpawn && { onSpawn }),
    ...(signal && { signal }),
  })
}
