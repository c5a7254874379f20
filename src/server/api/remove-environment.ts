import { describeNotices } from '../../commands/views/notices.ts'
import type { FailureJson } from '../../commands/views/failure.ts'
import { refusalJson } from '../../commands/views/refusal.ts'
import { asProgram, type View } from '../../commands/views/view.ts'
import { type RemovalJson, removalJson, removeWorktree } from '../../commands/worktree-remove.ts'
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { toEnvironmentId } from '../../domain/names.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import { recoverInterrupted } from '../../isolation/reconcile.ts'
import type { ServerDeps } from '../deps.ts'
import type { ErrorBody } from '../errors.ts'

export const removeEnvironment = async (
  { context, wake, redact }: ServerDeps,
  id: string,
  forced: boolean,
): Promise<
  | { readonly removed: true; readonly answer: RemovalJson & { readonly notices: string[] } }
  | { readonly removed: false; readonly refusal: ErrorBody }
> => {
  const { isolation, environments, changes } = context
  const { environment, codebase } = await environmentAndCodebase(isolation, id)
  const recovery = await recoverInterrupted(isolation, codebase)
  const notices = describeNotices([...recovery.settled, ...recovery.left], asProgram).map(redact)
  const place = { context: isolation, environments, codebase }
  const result = await removeWorktree(place, environment, { forced, by: 'the API' })
  if (result.outcome === 'refused') {
    return { removed: false, refusal: redacted(refusalJson(result, viewOf(isolation)), redact) }
  }
  changes.emit({ type: 'environment', id, codebaseId: codebase.id, status: result.environment.status })
  wake()
  return { removed: true, answer: { ...removalJson(result), notices } }
}

export const environmentAndCodebase = async (
  { store }: Pick<IsolationContext, 'store'>,
  id: string,
): Promise<{ environment: IsolatedEnvironment; codebase: Codebase }> => {
  const environment = await store.environments.get(toEnvironmentId(id))
  const codebase = environment && (await store.codebases.get(environment.codebaseId))
  if (environment !== undefined && codebase !== undefined) return { environment, codebase }
  throw new AppError('not-found', `unknown environment ${JSON.stringify(id)}`, {
    remedy: 'see GET /api/environments for a list',
  })
}

const redacted = ({ error }: FailureJson, redact: (text: string) => string): ErrorBody => ({
  error: {
    code: error.code,
    message: redact(error.message),
    reasons: error.reasons.map(({ gate, answer, detail }) => ({ gate, answer, detail: redact(detail) })),
    remedies: error.remedies.map(redact),
  },
})

const viewOf = ({ clock }: Pick<IsolationContext, 'clock'>): View => ({ ...asProgram, now: clock() })
