import { type Sha, toSha } from '../domain/names.ts'
import type { CallOptions, Git, Repo } from './door.ts'

export type CommitLine = { readonly sha: Sha; readonly subject: string }

/** The commits in the history of `to` but not of `from`, newest first. */
export const commitsBetween = async (
  git: Git,
  repo: Repo,
  { from, to, limit }: { readonly from: Sha; readonly to: Sha; readonly limit: number },
  { signal }: CallOptions = {},
): Promise<CommitLine[]> => {
  const { stdout } = await git.run({
    operation: 'log',
    at: repo,
    args: [
      ...`log -z --max-count=${limit} --format=%H%x20%s --no-show-signature --no-color`.split(' '),
      '--end-of-options',
      to,
      `^${from}`,
      '--',
    ],
    ...(signal && { signal }),
  })
  return stdout
    .split('\0')
    .filter((line) => line !== '')
    .map((line) => {
      const space = line.indexOf(' ')
      return { sha: toSha(line.slice(0, space).trim()), subject: line.slice(space + 1, space + 301) }
    })
}
