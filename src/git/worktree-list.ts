import { isSha, type Sha } from '../domain/names.ts'
import type { CallOptions, Git, Repo } from './door.ts'

export type ListedWorktree = {
  readonly path: string
  readonly head: Sha | undefined
  /** The short name of the branch; undefined when HEAD is detached or the repository bare. */
  readonly branch: string | undefined
  readonly bare: boolean
  readonly lockReason: string | undefined
  readonly prunable: string | undefined
}

/** Git's own list, the main working tree first. */
export const listWorktrees = async (git: Git, repo: Repo, { signal }: CallOptions = {}): Promise<ListedWorktree[]> => {
  const args = ['worktree', 'list', '--porcelain', '-z']
  const at = { commonDir: repo.commonDir }
  const { stdout } = await git.run({ operation: 'worktree list', at, args, ...(signal && { signal }) })
  return stdout
    .split('\0\0')
    .filter((record) => record !== '')
    .map(parseRecord)
}

/** Lines `key value` ended by NUL; `locked` and `prunable` may stand without a reason. */
const parseRecord = (record: string): ListedWorktree => {
  const fields = new Map(
    record.split('\0').map((line): [string, string] => {
      const space = line.indexOf(' ')
      return space < 0 ? [line, ''] : [line.slice(0, space), line.slice(space + 1)]
    }),
  )
  const head = fields.get('HEAD')
  return {
    path: fields.get('worktree') ?? '',
    // All zeros for a branch without commits.
    head: head !== undefined && isSha(head) && !/^0+$/.test(head) ? head : undefined,
    branch: fields.get('branch')?.replace(/^refs\/heads\//, ''),
    bare: fields.has('bare'),
    lockReason: fields.get('locked'),
    prunable: fields.get('prunable'),
  }
}
