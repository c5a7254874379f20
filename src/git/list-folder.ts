import { type Sha, toSha } from '../domain/names.ts'
import type { CallOptions, Git, Repo } from './door.ts'
import { splitNul } from './tree-path.ts'

export type FolderEntry = {
  /** Relative to the folder. */
  readonly name: string
  readonly mode: string
  readonly sha: Sha
  /** Undefined for anything but a file. */
  readonly size: number | undefined
}

/** The direct entries of a folder in a commit; empty when the folder doesn't exist. */
export const listFolder = async (
  git: Git,
  repo: Repo,
  commit: Sha,
  folder: string,
  { signal }: CallOptions = {},
): Promise<FolderEntry[]> => {
  const args = ['ls-tree', '-z', '-l', '--full-tree', commit, '--', `${folder}/`]
  const { stdoutBytes } = await git.run({ operation: 'ls-tree', at: repo, args, ...(signal && { signal }) })
  return splitNul(stdoutBytes).flatMap((record) => {
    const tab = record.indexOf(0x09)
    // `mode type id size`, the size padded with spaces.
    const [mode = '', , id = '', size = ''] = record.subarray(0, tab).toString('utf8').split(/ +/)
    const path = record.subarray(tab + 1).toString('utf8')
    const name = path.slice(folder.length + 1)
    return path.startsWith(`${folder}/`) && name !== ''
      ? [{ name, mode, sha: toSha(id), size: size === '-' ? undefined : Number(size) }]
      : []
  })
}
