import { AppError, isAppError } from '../domain/errors.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { CallOptions, Git, Repo } from './door.ts'
import { meaningfulLine } from './failure.ts'
import type { Setting } from './neutral.ts'
import { type Progress, progressReader } from './progress.ts'
import { addressOf } from './remote.ts'

export type Fetch = {
  readonly remote: string
  readonly refspecs: readonly string[]
  /** Where to fetch from, if not from the repository's configuration. */
  readonly url?: string | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
  readonly onSpawn?: (identity: ProcessIdentity) => void
  readonly timeoutMs?: number
  readonly settings?: readonly Setting[] | undefined
}

export type Fetched =
  /** `problem`: some refs couldn't be updated (a branch `a` that became `a/b`); the others were. */
  | { readonly outcome: 'fetched'; readonly problem: string | undefined }
  | { readonly outcome: 'unreachable'; readonly detail: string }

/** Never prunes: a tracking ref deleted on the remote may be the last to hold a commit. */
const quiet = [
  '--no-prune',
  '--no-write-fetch-head',
  '--no-auto-maintenance',
  '--no-tags',
  '--no-recurse-submodules',
  '--no-write-commit-graph',
  '--upload-pack=git-upload-pack',
]

export const fetchRemote = async (
  git: Git,
  repo: Repo,
  { remote, refspecs, url, onProgress, onSpawn, timeoutMs, settings = [] }: Fetch,
  { signal }: CallOptions = {},
): Promise<Fetched> => {
  const address = await addressOf(git, repo, url === undefined ? { name: remote } : { url })
  try {
    const { exitCode, stderr } = await git.run({
      operation: 'fetch',
      at: { commonDir: repo.commonDir },
      args: ['fetch', ...quiet, onProgress ? '--progress' : '--quiet', '--end-of-options', address.name, ...refspecs],
      settings: [...address.settings, ...settings],
      ok: [0, 1, 128],
      network: { url: address.url },
      locks: true,
      ...(onProgress && { onStderr: progressReader(onProgress) }),
      ...(onSpawn && { onSpawn }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(signal && { signal }),
    })
    return judge(exitCode, withoutAlias(stderr, address.name, remote))
  } catch (error) {
    if (!isAppError(error, 'timeout')) throw error
    return { outcome: 'unreachable', detail: error.message }
  }
}

const judge = (exitCode: number, stderr: string): Fetched => {
  if (exitCode === 0) return { outcome: 'fetched', problem: undefined }
  if (/No space left on device/.test(stderr)) throw new AppError('disk-full', 'git fetch failed: the disk is full')
  const detail = meaningfulLine(stderr)
  return exitCode === 1 ? { outcome: 'fetched', problem: detail } : { outcome: 'unreachable', detail }
}

const withoutAlias = (text: string, alias: string, remote: string): string => text.replaceAll(alias, remote)

/**
 * Asks the remote for its default branch; undefined if it has none. Throws `remote-unreachable` if it doesn't respond.
 */
export const askRemoteHead = async (
  git: Git,
  repo: Repo,
  remote: string,
  { url, signal, settings = [] }: CallOptions & { url?: string; settings?: readonly Setting[] | undefined } = {},
): Promise<string | undefined> => {
  const address = await addressOf(git, repo, url === undefined ? { name: remote } : { url })
  const { exitCode, stdout, stderr } = await git.run({
    operation: 'ls-remote',
    at: { commonDir: repo.commonDir },
    args: ['ls-remote', '--symref', '--upload-pack=git-upload-pack', '--end-of-options', address.name, 'HEAD'],
    settings: [...address.settings, ...settings],
    ok: [0, 128],
    network: { url: address.url },
    timeoutMs: 60_000,
    ...(signal && { signal }),
  })
  if (exitCode === 0) return /^ref: refs\/heads\/(.+)\tHEAD$/m.exec(stdout)?.[1]
  throw new AppError(
    'remote-unreachable',
    `${remote} did not answer: ${meaningfulLine(withoutAlias(stderr, address.name, remote))}`,
  )
}
