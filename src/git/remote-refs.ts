import { AppError } from '../domain/errors.ts'
import { isSha, type Sha } from '../domain/names.ts'
import type { CallOptions, Git, Repo } from './door.ts'
import { meaningfulLine } from './failure.ts'
import { addressOf } from './remote.ts'

/**
 * What the remote has now, by full name; `only` narrows it to these. Unlike our tracking refs this does not know of
 * branches that were deleted there. Throws `remote-unreachable` when the remote does not answer.
 */
export const askRemoteRefs = async (
  git: Git,
  repo: Repo,
  remote: string,
  { only, signal }: CallOptions & { only?: readonly string[] } = {},
): Promise<ReadonlyMap<string, Sha>> => {
  const address = await addressOf(git, repo, { name: remote })
  const { exitCode, stdout, stderr } = await git.run({
    operation: 'ls-remote',
    at: { commonDir: repo.commonDir },
    args: ['ls-remote', '--refs', '--upload-pack=git-upload-pack', '--end-of-options', address.name, ...(only ?? [])],
    settings: address.settings,
    ok: [0, 128],
    network: true,
    timeoutMs: 60_000,
    ...(signal && { signal }),
  })
  if (exitCode !== 0) {
    const why = meaningfulLine(stderr.replaceAll(address.name, remote))
    throw new AppError('remote-unreachable', `${remote} did not answer: ${why}`)
  }
  const refs = new Map<string, Sha>()
  for (const line of stdout.split('\n')) {
    const [sha = '', name = ''] = line.split('\t')
    // A pattern also fits the end of a longer name.
    if (isSha(sha) && only?.includes(name) !== false) refs.set(name, sha)
  }
  return refs
}
