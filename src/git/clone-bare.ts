import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { hasCode } from '../domain/error-code.ts'
import { AppError } from '../domain/errors.ts'
import { toBranchName, toRepoPath } from '../domain/names.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { CallOptions, Git, Repo } from './door.ts'
import { askRemoteHead, fetchRemote } from './fetch.ts'
import type { Setting } from './neutral.ts'
import type { Progress } from './progress.ts'
import { validateRemoteUrl } from './remote-url.ts'
import { remedy, shell } from '../domain/remedy.ts'

const cloneTimeoutMs = 6 * 60 * 60_000

/**
 * A bare repository with remote-tracking refs: `git clone --bare` would create local heads and no refspec, so later
 * fetches would update nothing. If cloning fails, the caller removes what is there.
 */
export const cloneBare = async (
  git: Git,
  url: string,
  path: string,
  {
    signal,
    settings,
    onProgress,
    onSpawn,
  }: CallOptions & {
    /** More settings for calls to the remote. */
    settings?: readonly Setting[]
    onProgress?: (progress: Progress) => void
    onSpawn?: (identity: ProcessIdentity) => void
  } = {},
): Promise<Repo> => {
  validateRemoteUrl(url)
  assertFree(path)
  const repo: Repo = { commonDir: toRepoPath(path) }
  const run = (operation: string, at: Repo | { cwd: string }, args: readonly string[]): Promise<unknown> =>
    git.run({ operation, at, args, locks: true, ...(signal && { signal }) })
  await run('init', { cwd: dirname(path) }, ['init', '--quiet', '--bare', '--template=', '--end-of-options', path])
  await run('config', repo, ['config', '--local', 'remote.origin.url', url])
  await run('config', repo, ['config', '--local', 'remote.origin.fetch', branches])
  const refspecs = [branches, '+refs/tags/*:refs/tags/*']
  const spawned = onSpawn && { onSpawn }
  const fetch = { remote: 'origin', refspecs, url, timeoutMs: cloneTimeoutMs, onProgress, settings, ...spawned }
  const fetched = await fetchRemote(git, repo, fetch, { signal })
  if (fetched.outcome === 'unreachable') {
    throw new AppError('remote-unreachable', `clone failed: ${fetched.detail}`, {
      remedy: remedy`check the address, the network, and that git itself can reach it: ${shell('git ls-remote <url>')}`,
    })
  }
  await setDefaultBranch(git, repo, url, run, { signal, settings })
  return repo
}

const branches = '+refs/heads/*:refs/remotes/origin/*'

/** Sets both HEADs to the default branch, although that local branch doesn't exist until it's needed. */
const setDefaultBranch = async (
  git: Git,
  repo: Repo,
  url: string,
  run: (operation: string, at: Repo, args: readonly string[]) => Promise<unknown>,
  options: CallOptions & { settings: readonly Setting[] | undefined },
): Promise<void> => {
  const branch = await askRemoteHead(git, repo, 'origin', { url, ...options })
  if (branch === undefined) return
  const name = toBranchName(branch)
  await run('symbolic-ref', repo, ['symbolic-ref', 'refs/remotes/origin/HEAD', `refs/remotes/origin/${name}`])
  await run('symbolic-ref', repo, ['symbolic-ref', 'HEAD', `refs/heads/${name}`])
}

const assertFree = (path: string): void => {
  try {
    if (readdirSync(path).length === 0) return
  } catch (error) {
    // Not ENOTDIR: a file there is in the way.
    if (hasCode(error, 'ENOENT')) return
    throw error
  }
  throw new AppError('path-taken', `${path} already exists and is not empty`)
}
