import { isAppError } from '../domain/errors.ts'
import type { Sha } from '../domain/names.ts'
import type { Rejection } from '../domain/forge/publishing.ts'
import type { CallOptions, Git, Repo } from './door.ts'
import { meaningfulLine } from './failure.ts'
import type { Setting } from './neutral.ts'
import type { Address } from './remote.ts'

export type Push = {
  /** The one that was checked. Asking for it again could give another: the configuration can change at any time. */
  readonly address: Address
  /** Its name, for messages. */
  readonly remote: string
  readonly commit: Sha
  readonly branch: string
}

export type Pushed =
  | { readonly outcome: 'pushed'; readonly change: 'new' | 'updated' | 'none' }
  /** `said`: the remote's own words. */
  | { readonly outcome: 'rejected'; readonly why: Rejection; readonly said: string }
  | { readonly outcome: 'no-access' | 'unreachable'; readonly said: string }

/** The repository's configuration can add tags, options for the server, submodules, a signature. */
const plain = [
  '--no-verify',
  '--no-signed',
  '--no-follow-tags',
  '--recurse-submodules=no',
  '--receive-pack=git-receive-pack',
]
const settings: readonly Setting[] = [
  // An empty value clears the list.
  ['push.pushOption', ''],
  ['push.negotiate', 'false'],
]

/** Pushes one commit to one branch. Never forces: whatever the branch has on the remote stays in its history. */
export const pushCommit = async (
  git: Git,
  repo: Repo,
  { address, remote, commit, branch }: Push,
  { signal }: CallOptions = {},
): Promise<Pushed> => {
  const refspec = `${commit}:refs/heads/${branch}`
  try {
    const { exitCode, stdout, stderr } = await git.run({
      operation: 'push',
      at: { commonDir: repo.commonDir },
      args: ['push', '--porcelain', ...plain, '--end-of-options', address.name, refspec],
      settings: [...address.settings, ...settings],
      ok: [0, 1, 128],
      network: { url: address.url },
      ...(signal && { signal }),
    })
    return judge(exitCode, stdout, stderr.replaceAll(address.name, remote))
  } catch (error) {
    if (!isAppError(error, 'timeout')) throw error
    return { outcome: 'unreachable', said: error.message }
  }
}

const judge = (exitCode: number, stdout: string, stderr: string): Pushed => {
  // One ref, so one line: `*⇥from:to⇥[new branch]`.
  const [, flag, summary = ''] = /^([ *=!+-])\t[^\t\n]*\t(.*)$/m.exec(stdout) ?? []
  if (exitCode === 0 && flag !== undefined && flag in changes) {
    return { outcome: 'pushed', change: changes[flag as keyof typeof changes] }
  }
  const said = [summary.replace(/^\[[^\]]*\] /, ''), ...remoteLines(stderr)].filter((line) => line !== '').join('\n')
  if (flag === '!') return { outcome: 'rejected', why: rejectionOf(said), said }
  const line = [meaningfulLine(stderr), ...remoteLines(stderr)].join('\n')
  return { outcome: noAccess.test(line) ? 'no-access' : 'unreachable', said: line }
}

const changes = { '*': 'new', ' ': 'updated', '=': 'none' } as const

const noAccess =
  /returned error: 40[134]|Authentication failed|could not read (?:Username|Password)|[Pp]ermission.* denied|Write access|not found|couldn't log in/

/** What the server printed, without the frame that GitHub draws around it. */
const remoteLines = (stderr: string): string[] =>
  stderr
    .split(/[\r\n]+/)
    .flatMap((line) =>
      line.startsWith('remote:')
        ? [
            line
              .slice(7)
              .replace(/^\s*(?:error:)?/, '')
              .trim(),
          ]
        : [],
    )
    .filter((line) => /\w/.test(line))
    .slice(0, mostLines)

const mostLines = 12

/** As GitHub words it; other servers' words are shown as they are. */
const rejections: readonly (readonly [Rejection, RegExp])[] = [
  ['behind', /^\((?:fetch first|non-fast-forward|stale info|needs force)\)/],
  ['workflows', /refusing to allow .* workflow/],
  ['secrets', /push protection|cannot contain secrets/i],
  ['large-files', /GH001|exceeds GitHub's file size limit/],
  ['lfs', /GH008|LFS objects/],
  ['protected', /GH006|GH013|protected branch|rule violations/i],
]

const rejectionOf = (said: string): Rejection => rejections.find(([, pattern]) => pattern.test(said))?.[0] ?? 'other'
