import { type Sha, toSha } from '../domain/names.ts'
import type { CallOptions, Git, Repo } from './door.ts'
import { runCapped } from './capped.ts'
import type { Signature } from './objects.ts'

/** A commit with everything that is needed to make it again elsewhere. */
export type OwnCommit = {
  readonly sha: Sha
  readonly tree: Sha
  readonly parents: readonly Sha[]
  readonly author: Signature
  readonly message: string
}

/**
 * The commits in the history of `to` but not of `from`, parents first. Undefined if there are more than `limit`, or
 * their messages are megabytes.
 */
export const ownCommits = async (
  git: Git,
  repo: Repo,
  { from, to, limit }: { readonly from: Sha; readonly to: Sha; readonly limit: number },
  { signal }: CallOptions = {},
): Promise<readonly OwnCommit[] | undefined> => {
  const args = [
    ...`log -z --reverse --topo-order --max-count=${limit + 1} --no-show-signature --no-color`.split(' '),
    // Names and messages may contain anything but NUL.
    '--format=%H%n%T%n%P%n%at%n%an%n%ae%n%B',
    '--end-of-options',
    to,
    `^${from}`,
    '--',
  ]
  const found = await runCapped(git, { operation: 'log', at: repo, args, ...(signal && { signal }) }, maxBytes)
  const commits = found
    ?.toString('utf8')
    .split('\0')
    .filter((record) => record !== '')
    .map(parse)
  return commits === undefined || commits.length > limit ? undefined : commits
}

const maxBytes = 4_000_000

const parse = (record: string): OwnCommit => {
  const [sha = '', tree = '', parents = '', at = '', name = '', email = '', ...message] = record.split('\n')
  return {
    sha: toSha(sha),
    tree: toSha(tree),
    parents: parents === '' ? [] : parents.split(' ').map(toSha),
    author: { name, email, at: Number(at) * 1000 },
    message: message.join('\n').trimEnd(),
  }
}
