import { lstat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { CheckoutChange } from '../../domain/checkout-change.ts'
import type { Codebase } from '../../domain/environment.ts'
import { toAppError } from '../../domain/errors.ts'
import { toRepoPath } from '../../domain/names.ts'
import { mainHead } from '../../git/admin-dir.ts'
import type { Tree } from '../../git/door.ts'
import { readRefFile } from '../../git/ref-file.ts'
import { readStatus } from '../../git/status.ts'
import { trackedFiles } from '../../git/tracked-files.ts'
import { joinTreePath, type TreePath } from '../../git/tree-path.ts'
import type { IsolationContext } from '../../isolation/context.ts'

/** Plain values: a watch outlives the process that started it. */
export type ArmedTripwire = { readonly since: number; readonly head: string }

type Context = Pick<IsolationContext, 'git' | 'clock' | 'log'>

/**
 * Arms the tripwire. Only reads HEAD: the kernel stamps every file change (ctime, which no program can set), so one
 * check afterwards finds what was touched. That way a run starts without git.
 */
export const armTripwire = async (context: Context, codebase: Codebase): Promise<ArmedTripwire> => {
  // The kernel's stamps lag up to one tick behind the clock.
  const since = context.clock() - 20
  const tree = checkoutOf(codebase)
  return { since, head: tree === undefined ? '' : await headOf(tree) }
}

/** Changes in the shared checkout since it was armed. */
export const tripped = async (
  context: Context,
  codebase: Codebase,
  armed: ArmedTripwire,
): Promise<readonly CheckoutChange[]> => {
  const tree = checkoutOf(codebase)
  if (tree === undefined) return []
  try {
    const head = await headOf(tree)
    const moved: CheckoutChange[] = armed.head === head ? [] : [{ kind: 'head-moved', from: armed.head, to: head }]
    return [...moved, ...(await touchedFiles(context, tree, armed.since))]
  } catch (error) {
    // Unknown doesn't mean unharmed.
    context.log.warn('the shared checkout could not be looked at', { error: toAppError(error).message })
    return [{ kind: 'unknown', message: toAppError(error).message }]
  }
}

const checkoutOf = ({ repoPath, checkoutPath }: Codebase): Tree | undefined =>
  checkoutPath === undefined ? undefined : { commonDir: toRepoPath(repoPath), gitDir: repoPath, path: checkoutPath }

const headOf = async ({ commonDir }: Tree): Promise<string> => {
  const head = await mainHead(commonDir)
  if (head === undefined) return 'nowhere'
  if ('sha' in head) return `\`${head.sha.slice(0, 10)}\``
  const sha = await readRefFile(commonDir, `refs/heads/${head.branch}`)
  return `\`${head.branch}\`${sha === undefined ? '' : ` (${sha.slice(0, 10)})`}`
}

const touchedFiles = async (
  { git }: Pick<IsolationContext, 'git'>,
  tree: Tree,
  since: number,
): Promise<CheckoutChange[]> => {
  const status = await readStatus(git, tree)
  const changes: CheckoutChange[] = []
  const seen = new Set<string>()
  for (const one of [...status.changed, ...status.unmerged]) {
    seen.add(one.path)
    if (await isYounger(tree.path, one, since)) changes.push({ kind: 'changed', path: one.path })
  }
  for (const one of status.untracked) {
    if (await isYounger(tree.path, one, since)) changes.push({ kind: 'new', path: one.path })
  }
  let looked = 0
  for (const path of await trackedFiles(git, tree)) {
    // Clean but written to: an uncommitted change may have been reverted.
    if (!seen.has(path) && ((await ctimeOf(Buffer.from(join(tree.path, path)))) ?? 0) >= since) {
      changes.push({ kind: 'reset', path })
    }
    if (++looked % LOOKS_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  return changes
}

const LOOKS_PER_TURN = 500

/** A missing file was deleted when its directory changed. */
const isYounger = async (root: string, file: TreePath, since: number): Promise<boolean> => {
  const changed =
    (await ctimeOf(joinTreePath(root, file))) ?? (await ctimeOf(Buffer.from(dirname(join(root, file.path)))))
  return changed === undefined || changed >= since
}

const ctimeOf = async (path: Buffer): Promise<number | undefined> => {
  try {
    return (await lstat(path)).ctimeMs
  } catch {
    return undefined
  }
}
