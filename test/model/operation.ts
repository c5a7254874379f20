import { holder } from '../isolation/scene.ts'
import { onConversationClosed } from '../../src/cleanup/closed.ts'
import { runScheduledCleanup } from '../../src/cleanup/sweep.ts'
import { AppError, isAppError } from '../../src/domain/errors.ts'
import type { GateName } from '../../src/domain/removal/gates.ts'
import type { IsolationHints } from '../../src/domain/hints.ts'
import { toBranchName, toCodebaseId, toEnvironmentId } from '../../src/domain/names.ts'
import type { Work } from '../../src/domain/work.ts'
import type { IsolationContext } from '../../src/isolation/context.ts'
import type { RemoveOptions, RemoveOutcome } from '../../src/isolation/remove-outcome.ts'
import { reconcile } from '../../src/isolation/reconcile.ts'
import { resolveIsolation } from '../../src/isolation/resolve/resolve.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { keepSpares } from '../../src/isolation/providers/worktree/spare.ts'
import { said } from '../helpers/words.ts'
import { describeReason } from '../../src/commands/views/reasons.ts'

/** One thing that Coppice is asked to do, as plain JSON: the same in this process and in one that gets killed. */
export type Operation =
  | {
      readonly kind: 'resolve'
      readonly work: Work
      readonly hints: IsolationHints
      readonly branch?: string
      readonly conversation?: string
    }
  | {
      readonly kind: 'remove'
      readonly id: string
      readonly force: boolean
      readonly trigger: RemoveOptions['trigger']
    }
  | { readonly kind: 'restore'; readonly point: string }
  | { readonly kind: 'close'; readonly conversation: string }
  | { readonly kind: 'adopt'; readonly path: string }
  | { readonly kind: 'sweep' | 'spare' | 'reconcile' }

export type Outcome = {
  readonly said: string
  readonly id?: string
  readonly gates?: readonly GateName[]
  /** For messages. */
  readonly detail?: string
}

/** An expected fault (AppError) is an answer; anything else is thrown. */
export const perform = async (context: IsolationContext, operation: Operation): Promise<Outcome> => {
  try {
    return await run(context, operation)
  } catch (error) {
    if (isAppError(error) && error.code !== 'unexpected') return { said: error.code, detail: error.message }
    throw error
  }
}

const run = async (context: IsolationContext, operation: Operation): Promise<Outcome> => {
  const { store } = context
  const provider = createEnvironments(context)
  const codebase = await store.codebases.get(toCodebaseId('project-id'))
  if (codebase === undefined) throw new Error('no codebase')
  switch (operation.kind) {
    case 'resolve': {
      const { work, hints, branch, conversation } = operation
      const resolved = await resolveIsolation(context, provider, {
        codebase,
        work,
        hints,
        createdBy: 'model',
        ...(branch === undefined ? {} : { branch: toBranchName(branch) }),
        ...(conversation === undefined ? {} : { holder: holder(await conversationOf(context, conversation)) }),
      })
      return resolved.outcome === 'limit' ? { said: 'limit' } : { said: resolved.how, id: resolved.environment.id }
    }
    case 'remove': {
      const environment = await store.environments.get(toEnvironmentId(operation.id))
      if (environment === undefined) throw new Error('no such environment')
      return removal(await provider.destroy(environment, { force: operation.force, trigger: operation.trigger }))
    }
    case 'restore': {
      const point = await store.restorePoints.get(operation.point)
      if (point === undefined) throw new AppError('not-found', 'no such restore point')
      return { said: 'restored', id: (await provider.restore(point)).environment.id }
    }
    case 'close': {
      const closed = await onConversationClosed(
        context,
        provider,
        await conversationOf(context, operation.conversation),
      )
      return closed.outcome === 'asked' ? removal(closed.removal) : { said: closed.outcome }
    }
    case 'adopt':
      return {
        said: 'adopted',
        id: (await provider.adopt(codebase, operation.path, { createdBy: 'model', aliases: [] })).id,
      }
    case 'sweep': {
      const { errors } = await runScheduledCleanup(context, provider, codebase)
      if (errors.length > 0) throw new Error(`the sweep failed: ${errors.map(({ error }) => error).join('; ')}`)
      return { said: 'swept' }
    }
    case 'spare':
      await keepSpares(context, codebase)
      return { said: 'spared' }
    case 'reconcile': {
      const { settled, left } = await reconcile(context, codebase)
      if (left.length > 0) throw new Error(said(left).join('; '))
      return { said: settled.length === 0 ? 'nothing' : 'settled', detail: said(settled).join(', ') }
    }
  }
}

const conversationOf = async ({ store }: IsolationContext, name: string) => {
  const found = await store.conversations.find('model', name)
  if (found === undefined) throw new Error(`no conversation ${name}`)
  return found
}

const removal = (outcome: RemoveOutcome): Outcome =>
  outcome.outcome === 'refused'
    ? {
        said: 'refused',
        gates: outcome.reasons.map(({ gate }) => gate),
        detail: outcome.reasons.map((reason) => `${reason.gate}: ${describeReason(reason)}`).join('; '),
      }
    : { said: outcome.outcome }
