import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { unlessMissing } from '../../../domain/missing.ts'
import { inheritedConfig } from '../../../git/borrowing-clone.ts'
import { remoteInfo } from '../../../git/remote.ts'
import { existingObjects } from '../../../git/unreachable.ts'
import type { Tree } from '../../../domain/tree.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { IsolationContext } from '../../context.ts'
import type { RestorePointSource } from '../checkout/kind.ts'
import { refsOfClone } from './tips.ts'

/** What someone made in a clone's git directory besides commits: annotated tags, hooks, settings. */
export const ownWork: RestorePointSource['ownWork'] = async (context, codebase, tree) => {
  const refs = (await refsOfClone(context.git, tree)).filter(({ committerDate }) => committerDate === undefined)
  const shas = refs.map(({ sha }) => sha)
  const known = shas.length === 0 ? new Set() : await existingObjects(context.git, repoOf(codebase), shas)
  return [
    ...refs.filter(({ sha }) => !known.has(sha)).map(({ name }) => name),
    ...(await strangeFiles(tree)),
    ...(await strangeSettings(context, codebase, tree)),
  ]
}

/** Git was killed while making the clone, before it wrote a ref: anything else is someone's. */
export const hasAnything = async (tree: Tree): Promise<boolean> => {
  if ((await unlessMissing(lstat(tree.gitDir)))?.isDirectory() === false) return true
  const files = (await readdir(tree.path)).filter((name) => name !== '.git')
  const objects = ((await unlessMissing(readdir(join(tree.gitDir, 'objects')))) ?? []).filter(
    (name) => name !== 'info' && name !== 'pack',
  )
  const packs = (await unlessMissing(readdir(join(tree.gitDir, 'objects/pack')))) ?? []
  const found = [files, objects, packs, await strangeFiles(tree)].some(({ length }) => length > 0)
  return found || (await hasRefs(tree))
}

/** Starts no program: git can't read a clone without HEAD. */
export const hasRefs = async ({ gitDir }: Pick<Tree, 'gitDir'>): Promise<boolean> => {
  const refs = (await unlessMissing(readdir(join(gitDir, 'refs'), { recursive: true, withFileTypes: true }))) ?? []
  const isPacked = (await unlessMissing(lstat(join(gitDir, 'packed-refs')))) !== undefined
  return isPacked || refs.some((entry) => !entry.isDirectory() && !entry.name.endsWith('.lock'))
}

const strangeFiles = async ({ gitDir }: Tree): Promise<string[]> => {
  const names = (await unlessMissing(readdir(gitDir, { withFileTypes: true }))) ?? []
  const found: string[] = []
  for (const entry of names) {
    if (madeByGit.has(entry.name) || entry.name.endsWith('.lock')) continue
    const isEmpty = entry.isDirectory() && (await readdir(join(gitDir, entry.name))).length === 0
    if (!isEmpty) found.push(entry.name)
  }
  return found
}

/** While creating a clone. Refs, reflogs, index and submodules are checked elsewhere. */
const madeByGit: ReadonlySet<string> = new Set([
  'HEAD',
  'ORIG_HEAD',
  'FETCH_HEAD',
  'config',
  'coppice',
  'index',
  'lfs',
  'logs',
  'modules',
  'objects',
  'packed-refs',
  'refs',
  'shallow',
])

const strangeSettings = async (
  context: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  tree: Tree,
): Promise<string[]> => {
  const inherited = inheritedConfig(await context.git.config(repoOf(codebase)))
  const given = [...inherited, ...(await remoteConfig(context, codebase))]
  const known = new Set(given.map(([key, value]) => `${key}=${value}`))
  return (await context.git.config(tree))
    .filter(({ scope, key, value }) => scope === 'local' && !known.has(`${key}=${value ?? 'true'}`))
    .map(({ key }) => key)
    .filter((key) => !setByGit.test(key))
}

const setByGit =
  /^(?:core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|symlinks|precomposeunicode)|extensions\.objectformat|branch\..*|submodule\..*|lfs\.repositoryformatversion)$/s

/** Where it pushes to and fetches from: the repository's remote, never the repository itself. */
export const remoteConfig = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
): Promise<(readonly [string, string])[]> => {
  const { remote } = codebase
  const info = remote === undefined ? undefined : await remoteInfo(git, repoOf(codebase), remote)
  if (info === undefined) return []
  return [
    [`remote.${info.name}.url`, info.url],
    [`remote.${info.name}.fetch`, `+refs/heads/*:refs/remotes/${info.name}/*`],
  ]
}
