import { existsSync } from 'node:fs'
import { lstat, readdir, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, isAppError, toAppError } from '../../../../domain/errors.ts'
import { unlessMissing } from '../../../../domain/missing.ts'
import type { Notice, SubmoduleNotFetched } from '../../../../domain/notice.ts'
import { bytesBelow, toRaw } from '../../../../domain/text/raw-path.ts'
import type { Privileges } from '../../../../domain/trust.ts'
import { readHead } from '../../../../git/admin-dir.ts'
import type { Tree } from '../../../../git/door.ts'
import { resolveCommit } from '../../../../git/refs.ts'
import { remoteInfo } from '../../../../git/remote.ts'
import { resolveRelativeUrl } from '../../../../git/remote-url.ts'
import {
  initSubmodules,
  listSubmodules,
  type SubmoduleAddress,
  submoduleAddresses,
  worktreeSubmoduleAddresses,
  updateSubmoduleAnonymously,
} from '../../../../git/submodule.ts'
import { deleteTree } from '../../../../process/files/delete-tree.ts'
import { baseAndConfig } from '../../../codebases/base-and-config.ts'
import type { IsolationContext } from '../../../context.ts'
import { isDirectoryBelow } from '../look/directory-below.ts'
import { isInside } from '../../../paths.ts'
import { repoOf } from '../../../codebases/repo-of.ts'
import { submoduleDirs } from '../look/submodule-dirs.ts'
import { submoduleTree } from '../look/submodules.ts'
import { rememberTags } from '../look/fetched-tags.ts'
import type { Provisioning } from './provisioning.ts'

/**
 * Fetches only the missing submodules: in a worktree that is in use, `git submodule update` would move the others away
 * from what someone has checked out in them.
 */
export const fetchSubmodules = async (
  context: IsolationContext,
  provisioning: Provisioning,
  which: Privileges['submodules'],
): Promise<Notice[]> => {
  const { config, tree } = provisioning
  if (!config.submodules) return []
  const wanted = await unfetched(context, provisioning, tree)
  if (wanted.paths.length > 0) context.progress('fetching submodules')
  const before = new Set((await submoduleDirs(tree.gitDir)).map(({ dir }) => dir))
  try {
    return which === 'base'
      ? [...wanted.notices, ...(await bringBaseSubmodules(context, provisioning, wanted.paths))]
      : await bringAll(context, provisioning, tree, wanted)
  } finally {
    // Including those fetched before one that failed.
    for (const { dir } of await submoduleDirs(tree.gitDir)) if (!before.has(dir)) await rememberTags(context, dir)
  }
}

type Unfetched = {
  readonly paths: readonly string[]
  /** None is left out: git may decide which of them are active. */
  readonly isAll: boolean
  /** Already there, with its git directory in the record. It may lack submodules of its own. */
  readonly fetched: readonly Tree[]
  readonly notices: readonly Notice[]
}

const bringAll = async (
  context: Pick<IsolationContext, 'git'>,
  provisioning: Provisioning,
  tree: Tree,
  { paths, isAll, fetched, notices }: Unfetched,
): Promise<Notice[]> => {
  const { signal, onSpawn } = provisioning
  const only = isAll ? {} : { paths }
  try {
    const { remoteUrl } = provisioning.codebase
    const options = { signal, remoteUrl, ...only, ...(onSpawn && { onSpawn }) }
    if (paths.length > 0) await initSubmodules(context.git, tree, options)
  } catch (error) {
    if (!isAppError(error, 'git-failed') && !isAppError(error, 'timeout')) throw error
    throw new AppError('submodules-failed', `couldn't fetch the submodules: ${error.message}`, {
      cause: error,
      remedy: 'check that they can be fetched, or set worktree.submodules to false on the base branch',
    })
  }
  const all = [...notices]
  for (const inner of fetched) {
    all.push(...(await bringAll(context, provisioning, inner, await unfetched(context, provisioning, inner))))
  }
  return all
}

/** Even git can't resolve a gitlink without `.gitmodules`: leave such trees as they are. */
const unfetched = async (
  context: Pick<IsolationContext, 'git'>,
  { signal, tree: top }: Provisioning,
  tree: Tree,
): Promise<Unfetched> => {
  const paths: string[] = []
  const fetched: Tree[] = []
  const notices: Notice[] = []
  const hasNames = (await unlessMissing(lstat(join(tree.path, '.gitmodules')))) !== undefined
  const listed = hasNames ? await listSubmodules(context.git, tree, { signal }) : []
  const named = listed.length === 0 ? new Map() : await worktreeSubmoduleAddresses(context.git, tree, { signal })
  for (const { path, bytes } of listed) {
    const raw = toRaw(bytes)
    if ((await unlessMissing(lstat(bytesBelow(tree.path, `${raw}/.git`)))) !== undefined) {
      // Nothing can be fetched into one whose `.git` leads nowhere.
      const inner = await submoduleTree(tree, raw).catch(() => undefined)
      if (inner === undefined || !isInside(await realpath(top.gitDir), inner.gitDir)) continue
      if (!(await isHalfFetched(inner))) {
        fetched.push(inner)
        continue
      }
      await rm(bytesBelow(tree.path, `${raw}/.git`), { force: true })
      await deleteTree(inner.gitDir)
    }
    const problem = await whyNotFetch(tree, raw, named.get(path)?.name)
    if (problem === undefined) paths.push(path)
    else notices.push({ kind: 'submodule-not-fetched', path, why: problem })
  }
  return { paths, isAll: paths.length === listed.length, fetched, notices }
}

/** Git was killed while fetching it: it has no file, no index and no ref, and git can't update it. */
const isHalfFetched = async ({ path, gitDir }: Tree): Promise<boolean> =>
  (await readdir(path)).every((name) => name === '.git') && (await isUnborn(gitDir))

/** HEAD names a branch that doesn't exist, and nothing else can lead to a commit. */
const isUnborn = async (gitDir: string): Promise<boolean> => {
  const head = await readHead(gitDir)
  if (head === undefined || !('branch' in head)) return false
  const traces = ['index', 'packed-refs', 'logs', 'modules', 'worktrees']
  if (traces.some((name) => existsSync(join(gitDir, name)))) return false
  const refs = await unlessMissing(readdir(join(gitDir, 'refs'), { recursive: true, withFileTypes: true }))
  return refs !== undefined && refs.every((entry) => entry.isDirectory())
}

const whyNotFetch = async (
  tree: Tree,
  path: string,
  name: string | undefined,
): Promise<SubmoduleNotFetched | undefined> => {
  const there = await unlessMissing(readdir(bytesBelow(tree.path, path)))
  if (there !== undefined && there.length > 0) return { kind: 'has-files' }
  const isPlain = await isDirectoryBelow(tree.path, path)
  if (!isPlain && (await unlessMissing(lstat(bytesBelow(tree.path, path)))) !== undefined) {
    return { kind: 'something-else' }
  }
  const gitDir = name === undefined ? undefined : join(tree.gitDir, 'modules', name)
  if (gitDir === undefined || (await readHead(gitDir)) === undefined) return undefined
  if (await isUnborn(gitDir)) {
    await deleteTree(gitDir)
    return undefined
  }
  // Git would check out another commit in it, leaving commits that only its HEAD has to the reflog.
  return { kind: 'repository-there' }
}

/**
 * A stranger's `.gitmodules` may name any address, even on our network or one our credentials open. So fetch only what
 * base has at the same path, with the same name and address: over https, without credentials, redirects or nested
 * submodules. The rest stays empty and is named.
 */
const bringBaseSubmodules = async (
  context: IsolationContext,
  { codebase, tree, signal, onSpawn }: Provisioning,
  paths: readonly string[],
): Promise<Notice[]> => {
  if (paths.length === 0) return []
  const { base } = await baseAndConfig(context, codebase)
  const head = await resolveCommit(context.git, tree, 'HEAD')
  const repo = repoOf(codebase)
  const trusted = await submoduleAddresses(context.git, repo, base.sha, { signal })
  const here = head === undefined ? new Map() : await submoduleAddresses(context.git, repo, head, { signal })
  const remote = (await remoteInfo(context.git, repo))?.url
  const notices: Notice[] = []
  for (const path of paths) {
    const allowed = allowedAddress(trusted.get(path), here.get(path), remote)
    const problem: SubmoduleNotFetched | undefined =
      'kind' in allowed
        ? allowed
        : await updateSubmoduleAnonymously(context.git, tree, allowed, { signal, ...(onSpawn && { onSpawn }) }).then(
            () => undefined,
            (error: unknown) => {
              if (isAppError(error, 'cancelled')) throw error
              return { kind: 'needs-credentials', message: toAppError(error).message } as const
            },
          )
    if (problem !== undefined) notices.push({ kind: 'submodule-not-fetched', path, why: problem })
  }
  return notices
}

const allowedAddress = (
  trusted: SubmoduleAddress | undefined,
  here: SubmoduleAddress | undefined,
  remote: string | undefined,
): SubmoduleAddress | SubmoduleNotFetched => {
  if (trusted === undefined) return { kind: 'not-in-base' }
  if (here?.url !== trusted.url || here.name !== trusted.name) return { kind: 'other-address' }
  const url = /^\.\.?\//.test(trusted.url) ? resolveRelativeUrl(remote, trusted.url) : trusted.url
  if (url === undefined || !/^https:\/\/[^/@]+\//i.test(url)) {
    return { kind: 'not-plain-https' }
  }
  return { ...trusted, url }
}
