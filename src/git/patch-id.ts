import { PassThrough } from 'node:stream'
import { isSha, type Sha } from '../domain/names.ts'
import type { CallOptions, Git, Repo } from './door.ts'

/** Plumbing, so that no setting for people (prefixes, context, renames, colours) has a say in what a patch looks like. */
const patch = ['-p', '--full-index', '--binary', '--no-renames', '--no-ext-diff', '--no-textconv', '--no-color']
const exact = ['--ignore-submodules=none', '--submodule=short', '--unified=3', '--src-prefix=a/', '--dst-prefix=b/']

/** The id of the whole difference between two commits; undefined when there is none. */
export const patchIdBetween = async (
  git: Git,
  repo: Repo,
  from: Sha,
  to: Sha,
  options: CallOptions = {},
): Promise<string | undefined> => {
  const ids = await throughPatchId(git, repo, ['diff-tree', '-r', ...patch, ...exact, from, to], undefined, options)
  return ids[0]?.id
}

export type PatchId = { readonly id: string; readonly commit: Sha | undefined }

/** The patch of each of these commits against its first parent. Two processes for all; a commit without a patch is left out. */
export const patchIds = (
  git: Git,
  repo: Repo,
  commits: readonly Sha[],
  options: CallOptions = {},
): Promise<PatchId[]> => {
  const args = ['diff-tree', '-r', '--stdin', '--root', '--first-parent', '-m', ...patch, ...exact]
  return throughPatchId(git, repo, args, `${commits.join('\n')}\n`, options)
}

/**
 * `--verbatim`: by default patch-id ignores white space, and two indentations of one Python line are two patches.
 * The patches flow from one process to the other and are never in memory as a whole.
 */
const throughPatchId = async (
  git: Git,
  repo: Repo,
  args: readonly string[],
  stdin: string | undefined,
  { signal }: CallOptions,
): Promise<PatchId[]> => {
  const pipe = new PassThrough()
  const call = { at: repo, ...(signal && { signal }) }
  const written = (async () => {
    try {
      await git.run({
        ...call,
        operation: 'diff-tree',
        args,
        ...(stdin !== undefined && { stdin }),
        onStdout: async (chunk) => {
          if (!pipe.write(chunk)) await new Promise((resolve) => pipe.once('drain', resolve).once('close', resolve))
        },
      })
    } finally {
      pipe.end()
    }
  })()
  const read = git
    .run({ ...call, operation: 'patch-id', args: ['patch-id', '--verbatim'], stdin: pipe })
    .finally(() => pipe.destroy())
  const [{ stdout }] = await Promise.all([read, written])
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [id = '', commit = ''] = line.split(' ')
      return { id, commit: isSha(commit) && !/^0+$/.test(commit) ? commit : undefined }
    })
}
