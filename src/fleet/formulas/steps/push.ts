import { AppError } from '../../../domain/errors.ts'
import { pushEnvironment } from '../../../isolation/publish/publish.ts'
import { branchTip } from '../../../runs/branch-tip.ts'
import { refusal, type Step } from '../step.ts'

/** Pushes the branch without force, and reads it back from the remote. Skipped without a remote. */
export const push: Step = async ({ isolation }, { codebase, environment, signal }) => {
  if (environment === undefined) throw new AppError('not-found', 'the worktree is gone')
  if (codebase.remote === undefined) {
    const sha = await branchTip(isolation, codebase, environment)
    const patch = { branch: environment.branch, ...(sha !== undefined && { sha }) }
    return { state: 'skipped', detail: 'the repository has no remote', patch }
  }
  const pushed = await pushEnvironment(isolation, codebase, environment, { signal })
  if (pushed.outcome === 'not-published') return refusal({ kind: 'not-published', environment, why: pushed.why })
  return { state: 'done', patch: { branch: pushed.branch, sha: pushed.commit } }
}
