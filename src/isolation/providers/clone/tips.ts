import { join } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { AppError } from '../../../domain/errors.ts'
import { unlessMissing } from '../../../domain/missing.ts'
import type { Sha } from '../../../domain/names.ts'
import { remedy, shell } from '../../../domain/remedy.ts'
import { bytesBelow } from '../../../domain/text/raw-path.ts'
import { shellWord } from '../../../domain/text/shell-word.ts'
import type { Repo, Tree } from '../../../domain/tree.ts'
import { hasShorterHistory } from '../../../git/borrowing-clone.ts'
import { objectTypes } from '../../../git/named-objects.ts'
import type { Git } from '../../../git/door.ts'
import { listRefs, type Ref } from '../../../git/refs.ts'
import { listDirectory } from '../../../process/files/list-directory.ts'
import { tooLarge } from '../../../process/files/read-untrusted.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { IsolationContext } from '../../context.ts'
import type { RestorePointSource } from '../checkout/kind.ts'
import { lstatIfThere } from '../../../process/files/lstat-if-there.ts'

/**
 * Every ref of a clone. An agent can write millions of them to one file in a second, and every listing would read them
 * all: such a clone is left alone until someone has checked it.
 */
export const refsOfClone = async (git: Git, tree: Tree): Promise<Ref[]> => {
  await assertFewRefs(tree)
  return listRefs(git, tree, ['refs/'])
}

export const assertFewRefs = async ({ commonDir }: Repo): Promise<void> => {
  const file = join(commonDir, 'packed-refs')
  const size = lstatIfThere(file)?.size ?? 0
  if (size > maxPackedBytes) throw tooLarge(file, size, maxPackedBytes)
  const pending = ['refs']
  for (let count = 0, dir = pending.pop(); dir !== undefined; dir = pending.pop()) {
    const path = bytesBelow(commonDir, dir)
    const entries = (await unlessMissing(listDirectory(path, { maxEntries: maxLooseRefs }))) ?? []
    count += entries.length
    if (count > maxLooseRefs) throw tooMany(commonDir)
    for (const entry of entries) if (entry.isDirectory()) pending.push(`${dir}/${entry.name}`)
  }
}

/** ~200,000 refs. */
const maxPackedBytes = 16 * 1024 * 1024

/** Each is a file: git reads 20,000 in a second or two, and a fetch rarely writes more at once. */
const maxLooseRefs = 20_000

const tooMany = (commonDir: string): AppError =>
  new AppError('unusable-file', `${join(commonDir, 'refs')} has more than ${maxLooseRefs} entries`, {
    remedy: remedy`pack them: ${shell(`git --git-dir=${shellWord(commonDir)} pack-refs --all`)}`,
  })

/** The commits that the clone's own refs lead to. */
export const tipsToKeep: RestorePointSource['tipsToKeep'] = async (context, codebase, tree) =>
  (await namedTips(context, codebase, tree)).commits

export type NamedTips = {
  readonly commits: readonly Sha[]
  /** The refs that point straight at those. */
  readonly refs: readonly Ref[]
}

export const namedTips = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  tree: Tree,
): Promise<NamedTips> => {
  // After `git fetch --depth=1`, fetched commits have no history here; the remote does.
  const isFetched = hasShorterHistory(tree, repoOf(codebase)) ? /^refs\/remotes\// : undefined
  const all = (await refsOfClone(git, tree)).filter(({ name }) => isFetched?.test(name) !== true)
  const refs = all.filter(({ committerDate }) => committerDate !== undefined)
  const others = all.filter(({ committerDate }) => committerDate === undefined).map(({ sha }) => `${sha}^{commit}`)
  const commits = new Set([...refs.map(({ sha }) => sha), ...(await objectTypes(git, tree, others)).keys()])
  return { commits: [...commits], refs: refs.filter(({ target }) => target === undefined) }
}
