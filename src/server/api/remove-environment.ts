import { environmentJson } from '../../commands/json.ts'
import { pushCommand } from '../../commands/push-command.ts'
import { refusalJson } from '../../commands/refusal.ts'
import { plain, type View } from '../../commands/view.ts'
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { toEnvironmentId } from '../../domain/names.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import type { Refused } from '../../isolation/provider.ts'
import { settleInterrupted } from '../../isolation/reconcile.ts'
import type { ServerDeps } from '../deps.ts'
import type { ErrorBody } from '../errors.ts'

export type RemovalAnswer = {
  readonly environment: ReturnType<typeof environmentJson>
  readonly restorePoint: string | null
  readonly branchDeleted: boolean
  readonly leftOut: { path: string; reason: string }[]
}

/** Through the one removal function and its gates. */
export const removeEnvironment = async (
  { context, wake, redact }: ServerDeps,
  id: string,
  force: boolean,
): Promise<
  { readonly removed: true; readonly answer: RemovalAnswer } | { readonly removed: false; readonly refusal: ErrorBody }
> => {
  const { isolation, changes } = context
  const { environment, codebase } = await environmentAndCodebase(isolation, id)
  await settleInterrupted(isolation, codebase)
  const outcome = await (await context.provider()).destroy(environment, { trigger: 'command', force })
  if (outcome.outcome === 'would-remove')
    throw new AppError('unexpected', 'a removal answered as if it had been a dry run')
  if (outcome.outcome === 'refused') {
    return { removed: false, refusal: await refusalOf(isolation, codebase, outcome, force, redact) }
  }
  changes.emit({ type: 'environment', id, codebaseId: codebase.id, status: outcome.environment.status })
  wake()
  const removed = outcome.outcome === 'removed' ? outcome : undefined
  return {
    removed: true,
    answer: {
      environment: environmentJson(outcome.environment, () => codebase.name),
      restorePoint: removed?.restorePoint?.id ?? null,
      branchDeleted: removed?.branchDeleted ?? false,
      leftOut: removed?.leftOut.map(({ path, reason }) => ({ path, reason })) ?? [],
    },
  }
}

export const environmentAndCodebase = async (
  { store }: IsolationContext,
  id: string,
): Promise<{ environment: IsolatedEnvironment; codebase: Codebase }> => {
  const environment = await store.environments.get(toEnvironmentId(id))
  const codebase = environment && (await store.codebases.get(environment.codebaseId))
  if (environment !== undefined && codebase !== undefined) return { environment, codebase }
  throw new AppError('not-found', `there is no environment ${JSON.stringify(id)}`, {
    remedy: 'GET /api/environments shows those that are there',
  })
}

const refusalOf = async (
  isolation: IsolationContext,
  codebase: Codebase,
  refused: Refused,
  forced: boolean,
  redact: (text: string) => string,
): Promise<ErrorBody> => {
  const { error } = refusalJson(
    {
      ...refused,
      forced,
      restoreDays: isolation.settings.restoreDays,
      codebase: codebase.name,
      checkoutPath: codebase.checkoutPath,
      repoPath: codebase.repoPath,
      hold: { days: isolation.settings.holdDays, mergedHours: isolation.settings.holdMergedHours },
      push: await pushCommand(isolation, codebase, refused.environment),
    },
    viewOf(isolation),
  )
  return {
    error: {
      code: error.code,
      message: redact(error.message),
      reasons: error.reasons.map(({ gate, answer, detail }) => ({ gate, answer, detail: redact(detail) })),
      remedies: error.remedies.map(redact),
    },
  }
}

/** As programs read it: plain, whole paths, the words of the command line. */
const viewOf = ({ clock }: IsolationContext): View => ({
  paint: plain,
  now: clock(),
  userHome: undefined,
  say: (command) => `coppice ${command}`,
  columns: undefined,
})
