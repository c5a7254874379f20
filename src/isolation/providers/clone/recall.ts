import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { AppError } from '../../../domain/errors.ts'
import { toEnvironmentId } from '../../../domain/names.ts'
import { readHead, readToken } from '../../../git/admin-dir.ts'
import { cloneAt, lenderOf } from '../../../git/borrowing-clone.ts'
import { lstatIfThere } from '../../../process/files/lstat-if-there.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { IsolationContext } from '../../context.ts'
import { locked } from '../../lock/locked.ts'
import { isInternal, managedRoot } from '../../paths.ts'
import type { Identified, RecallRequest } from '../../provider.ts'
import { insertRecalled, recalledRow } from '../../lost/recalled-row.ts'
import { importTips } from './import-commits.ts'
import { madeOn, pinsOf } from './refs.ts'

/** By our token in its own git directory, and by the repository that it borrows from. */
export const identifyClone = async (
  { host }: Pick<IsolationContext, 'host'>,
  path: string,
): Promise<Identified | undefined> => {
  const tree = cloneAt(path)
  if (isInternal(path) || lstatIfThere(tree.gitDir)?.isDirectory() !== true) return undefined
  const token = await readToken(tree.gitDir)
  const repoPath = lenderOf(tree)
  if (token === undefined || !/^[\w-]+$/.test(token) || repoPath === undefined) return undefined
  if ((await managedRoot(path, host)) === undefined) return undefined
  return { id: toEnvironmentId(token), tree, repoPath }
}

/** An agent can write the clone's token, but not the refs that the repository keeps for it. */
export const recallClone = (
  context: IsolationContext,
  codebase: Codebase,
  { tree }: Identified,
  request: RecallRequest,
): Promise<IsolatedEnvironment> =>
  locked(context, codebase, 'recalling a clone', async () => {
    const found = await identifyClone(context, tree.path)
    if (found === undefined || found.repoPath !== codebase.repoPath) {
      throw new AppError('not-adoptable', `${tree.path} is no longer a clone of ${codebase.name}`)
    }
    const began = madeOn(found.id, await pinsOf(context, repoOf(codebase), found.id))
    if (began?.startsWith(`${request.work.type}/`) !== true) {
      throw new AppError('not-adoptable', `${tree.path} wasn't made for ${request.work.type} ${request.work.id}`)
    }
    const head = await readHead(tree.gitDir)
    const branch = head !== undefined && 'branch' in head ? head.branch : undefined
    const row = recalledRow(context, codebase, found, request, { provider: 'clone', adminName: undefined, branch })
    const environment = await insertRecalled(context, row, request)
    for (const why of (await importTips(context, codebase, [environment])).values()) {
      context.log.warn("a recalled clone's commits could not be imported yet", { path: tree.path, why })
    }
    return environment
  })
