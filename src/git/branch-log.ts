import { join } from 'node:path'
import { type BranchName, isSha, type Sha } from '../domain/names.ts'
import { readUntrustedText } from '../process/read-untrusted.ts'
import type { Repo } from './door.ts'
import { maxLogBytes } from './file-limits.ts'

/** One move of a branch. `from` is undefined where the branch was made. */
export type BranchMove = { readonly from: Sha | undefined; readonly to: Sha | undefined; readonly message: string }

/** The branch's reflog, oldest first, read from its file; empty when git kept none. Starts no program. */
export const branchMoves = async (repo: Repo, branch: BranchName): Promise<BranchMove[]> => {
  const file = join(repo.commonDir, 'logs', 'refs', 'heads', branch)
  const lines = ((await readUntrustedText(file, { maxBytes: maxLogBytes })) ?? '').split('\n')
  return lines.filter((line) => line !== '').map(parse)
}

const parse = (line: string): BranchMove => {
  const [from = '', to = ''] = line.split(' ', 2)
  const tab = line.indexOf('\t')
  return { from: commit(from), to: commit(to), message: tab < 0 ? '' : line.slice(tab + 1) }
}

const commit = (text: string): Sha | undefined => (isSha(text) && !/^0+$/.test(text) ? text : undefined)
