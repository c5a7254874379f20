import { AppError, isAppError } from '../domain/errors.ts'
import { isSha, type Sha } from '../domain/names.ts'
import type { CallOptions, Git, Repo } from './door.ts'
import { meaningfulLine } from './failure.ts'
import type { Setting } from './neutral.ts'
import { type Address, addressOf } from './remote.ts'

/**
 * The remote's current refs by full name. `only` limits them to these names, or to a prefix such as `refs/heads/*`.
 * Unlike our tracking refs, this has no branches deleted on the remote, and nothing people fetched into those refs.
 * Throws `remote-unreachable` when the remote doesn't answer.
 */
export const askRemoteRefs = async (
  git: Git,
  repo: Repo,
  remote: string,
  { only, signal, anonymous }: CallOptions & { only?: readonly string[]; anonymous?: boolean } = {},
): Promise<ReadonlyMap<string, Sha>> => {
  const stdout = await listRemote(git, repo, remote, { flag: '--refs', patterns: only ?? [], signal, anonymous })
  const refs = refsIn(stdout)
  // A pattern also matches the end of a longer name.
  return only === undefined ? refs : new Map([...refs].filter(([name]) => only.some((one) => matches(name, one))))
}

/** A branch's current commit on the remote, and the remote's default branch; `head` is undefined without one. */
export const askRemoteBranch = async (
  git: Git,
  repo: Repo,
  remote: string,
  branch: string,
  { signal }: CallOptions = {},
): Promise<{ readonly sha: Sha | undefined; readonly head: string | undefined }> => {
  const name = `refs/heads/${branch}`
  const stdout = await listRemote(git, repo, remote, { flag: '--symref', patterns: ['HEAD', name], signal })
  return { sha: refsIn(stdout).get(name), head: /^ref: refs\/heads\/(.+)\tHEAD$/m.exec(stdout)?.[1] }
}

/** The same for a branch at an address that was checked before: asking by name could give another. */
export const askBranchAt = async (
  git: Git,
  repo: Repo,
  address: Address,
  branch: string,
  { signal }: CallOptions = {},
): Promise<Sha | undefined> => {
  const name = `refs/heads/${branch}`
  const listing = { flag: '--refs', patterns: [name], signal } as const
  return refsIn(await listAt(git, repo, { address, remote: 'the remote' }, listing)).get(name)
}

type Listing = CallOptions & {
  readonly flag: '--refs' | '--symref'
  readonly patterns: readonly string[]
  readonly anonymous?: boolean | undefined
}

const listRemote = async (git: Git, repo: Repo, remote: string, listing: Listing): Promise<string> => {
  const address = await addressOf(git, repo, { name: remote })
  return listAt(git, repo, { address, remote }, listing)
}

const listAt = async (
  git: Git,
  repo: Repo,
  { address, remote }: { readonly address: Address; readonly remote: string },
  { flag, patterns, signal, anonymous = false }: Listing,
): Promise<string> => {
  const { exitCode, stdout, stderr } = await git
    .run({
      operation: 'ls-remote',
      at: { commonDir: repo.commonDir },
      args: ['ls-remote', flag, '--upload-pack=git-upload-pack', '--end-of-options', address.name, ...patterns],
      settings: anonymous ? [...address.settings, ...withoutIdentity] : address.settings,
      ok: [0, 128],
      network: { url: address.url },
      ...(anonymous && { anonymous }),
      timeoutMs: 60_000,
      ...(signal && { signal }),
    })
    .catch((error: unknown) => {
      throw isAppError(error, 'timeout') ? unreachable(remote, error.message) : error
    })
  if (exitCode !== 0) throw unreachable(remote, meaningfulLine(stderr.replaceAll(address.name, remote)))
  return stdout
}

/** ssh would offer the user's keys regardless of the environment. */
const withoutIdentity: readonly Setting[] = [
  ['protocol.allow', 'never'],
  ['protocol.https.allow', 'always'],
  ['protocol.file.allow', 'always'],
  ['http.followRedirects', 'false'],
]

const refsIn = (stdout: string): Map<string, Sha> => {
  const refs = new Map<string, Sha>()
  for (const line of stdout.split('\n')) {
    const [sha = '', name = ''] = line.split('\t')
    if (isSha(sha)) refs.set(name, sha)
  }
  return refs
}

const matches = (name: string, pattern: string): boolean =>
  pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern

const unreachable = (remote: string, why: string): AppError =>
  new AppError('remote-unreachable', `couldn't reach ${remote}: ${why}`)
