import { rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Codebase } from '../../domain/environment.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { AppError } from '../../domain/errors.ts'
import { freshen } from './base.ts'
import { checkCommands, checksDigest, repositoryFormulas } from './formulas.ts'
import { deleted, reposDirectory } from './clone-repository.ts'
import { givenUpName } from '../trash/given-up.ts'
import { type KeptDirectory, releaseCodebase } from './release.ts'
import type { Notice } from '../../domain/notice.ts'
import type { IsolationContext } from '../context.ts'
import { locked } from '../lock/locked.ts'
import { followLink } from './recognise.ts'
import { onlyHere } from './only-here.ts'
import { recoverInterrupted } from '../reconcile.ts'
import { restorePointsOf } from '../restore-points.ts'
import { repositoryGone, repositoryState } from './repository-place.ts'
import { scriptsDigest } from '../trust.ts'
import { allProviders } from '../provider-of.ts'
import { coppice, remedy } from '../../domain/remedy.ts'

export type Trusted = {
  readonly codebase: Codebase
  readonly setup: readonly string[]
  readonly teardown: readonly string[]
  readonly allowForks: boolean
  /** Of its formulas. */
  readonly checks: readonly string[]
}

/** Approves the repository's own commands as they are in the base commit; any change asks again. */
export const trustCodebase = async (context: IsolationContext, codebase: Codebase): Promise<Trusted> => {
  await freshen(context, codebase, { maxAgeMs: context.settings.fetchFreshSeconds * 1000 })
  const found = await repositoryFormulas(context, codebase)
  const { setup, teardown, allowForks } = found.config
  const checks = checkCommands(found)
  const trusted = { trustedConfig: scriptsDigest(found.config), trustedChecks: checksDigest(checks) }
  await context.store.codebases.update(codebase.id, trusted)
  return { codebase, setup, teardown, allowForks, checks }
}

export type CodebaseRemoved = {
  readonly codebase: Codebase
  /** Our clone was deleted too. */
  readonly cloneDeleted: boolean
  /** Why our clone stays on disk: what only it has, or that this is unknown. */
  readonly cloneKept: readonly string[]
  readonly restorePoints: number
  /** Set if the repository was gone: its worktrees' directories, which stay. */
  readonly released?: readonly KeptDirectory[]
  /** What was recovered first. */
  readonly notices?: readonly Notice[]
}

/**
 * Stops tracking a repository. Refused while it has environments. The user's repository isn't touched; our clone is
 * deleted unless it has the only copy of something, and then registering it again finds it intact. If the
 * repository is gone, its environments are released; `force` treats an unreadable one as gone.
 */
export const removeCodebase = async (
  context: IsolationContext,
  known: Codebase,
  { force = false }: { readonly force?: boolean } = {},
): Promise<CodebaseRemoved> => {
  const found = repositoryState(known)
  const codebase = found.state === 'there' ? await followLink(context, known) : known
  if (found.state === 'unknown' && !force) throw repositoryGone(codebase, found)
  if (found.state !== 'there') {
    const restorePoints = (await context.store.restorePoints.list(codebase.id)).length
    const released = await releaseCodebase(context, codebase)
    return { codebase, cloneDeleted: false, cloneKept: [], restorePoints, released }
  }
  const live = await context.store.environments.live(codebase.id)
  if (live.length > 0)
    throw inUse(
      codebase,
      live.map(({ branch }) => branch),
    )
  const restorePoints = (await restorePointsOf(context, codebase)).length
  const recovery = await recoverInterrupted(context, codebase)
  const notices = [...recovery.settled, ...recovery.left]
  return locked(context, codebase, `unregistering ${codebase.name}`, async () => {
    for (const provider of await allProviders(context)) await provider.dropSpares(context, codebase)
    const cloneKept = codebase.cloned ? await onlyHere(context, codebase) : []
    // The row first: this fails if an environment has appeared, and then nothing has been deleted.
    await context.store.codebases.remove(codebase.id)
    const cloneDeleted = codebase.cloned && cloneKept.length === 0
    if (cloneDeleted) await deleteClone(context, codebase)
    return { codebase, cloneDeleted, cloneKept, restorePoints, notices }
  })
}

const inUse = ({ name }: Codebase, branches: readonly string[]): AppError => {
  const shown = branches.slice(0, 3).join(', ')
  const more = branches.length > 3 ? ` and ${branches.length - 3} more` : ''
  return new AppError('codebase-in-use', `${name} still has worktrees: ${shown}${more}`, {
    remedy: remedy`remove each first: ${coppice(`worktree remove ${branches[0] === undefined ? '<branch>' : shellWord(branches[0])} --codebase ${shellWord(name)}`)}`,
  })
}

/** Renamed away first, so that a crash never leaves half a repository there. */
const deleteClone = async (
  context: Pick<IsolationContext, 'ids' | 'home' | 'deleteInBackground'>,
  codebase: Codebase,
): Promise<void> => {
  if (dirname(codebase.repoPath) !== reposDirectory(context)) return
  const gone = join(reposDirectory(context), await givenUpName(deleted, context.ids(), codebase.repoPath))
  await rename(codebase.repoPath, gone)
  context.deleteInBackground([gone])
}
