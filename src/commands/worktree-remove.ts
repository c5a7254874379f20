import type { IsolatedEnvironment } from '../domain/environment.ts'
import { findEnvironment } from '../isolation/find.ts'
import type { Released, Removed } from '../isolation/remove-outcome.ts'
import { AppError } from '../domain/errors.ts'
import { type Call, command, isSet, cwdOf } from './command.ts'
import { exitCodes } from './views/failure.ts'
import { currentEnvironment, followTarget, type Target, resolveTargetForWrite } from './target.ts'
import { environmentJson } from './views/json.ts'
import { askerOf } from './asker.ts'
import { type Refusal, refusalJson, refusalText } from './views/refusal.ts'
import { describeBranchOutcome } from './views/merged.ts'
import { pushCommand } from './views/push-command.ts'
import { shellWord } from '../domain/text/shell-word.ts'
import { code, printable, tilde, type View } from './views/view.ts'
import { counted } from '../domain/text/words.ts'
import { coppice, remedy } from '../domain/remedy.ts'

export type RemoveResult = ((Removed & { readonly restoreDays: number }) | Released | Refusal) & {
  readonly codebase: string
}

const run = async (call: Call): Promise<RemoveResult> => {
  const place = await resolveTargetForWrite(call)
  const environment = await followTarget(call, place, await meant(call, place))
  const result = await removeWorktree(place, environment, {
    forced: isSet(call.values, 'force'),
    by: askerOf(call),
    askedBy: call.chat?.conversation.id,
    signal: call.signal,
  })
  if (result.outcome === 'removed') for (const notice of result.notices) call.notice(notice)
  return result
}

export type RemoveOptions = {
  readonly forced: boolean
  /** Who asked; shown to notified conversations. */
  readonly by: string
  /** The asking conversation; it doesn't block its own removal. */
  readonly askedBy?: string | undefined
  readonly signal?: AbortSignal
}

/** For chat, command line and API alike: through the one removal function and its gates. */
export const removeWorktree = async (
  { context, environments, codebase }: Pick<Target, 'context' | 'environments' | 'codebase'>,
  environment: IsolatedEnvironment,
  { forced, by, askedBy, signal }: RemoveOptions,
): Promise<RemoveResult> => {
  const own = await environments()
  const outcome = await own.destroy(environment, {
    trigger: 'command',
    force: forced,
    why: { kind: 'on-request', by },
    ...(signal !== undefined && { signal }),
    ...(askedBy !== undefined && { askedBy }),
  })
  const more = { codebase: codebase.name, restoreDays: context.settings.restoreDays }
  switch (outcome.outcome) {
    case 'removed':
      return { ...outcome, ...more }
    case 'released':
      return { ...outcome, codebase: codebase.name }
    case 'refused':
      return {
        ...outcome,
        ...more,
        forced,
        checkoutPath: codebase.checkoutPath,
        repoPath: codebase.repoPath,
        hold: { days: context.settings.staleDays, mergedHours: context.settings.holdMergedHours },
        push: await pushCommand(context, codebase, environment),
        isCurrent: askedBy !== undefined && (await isIn(context, askedBy, environment)),
      }
    case 'would-remove':
      throw new AppError('unexpected', 'a removal answered as if it had been a dry run')
  }
}

const isIn = async (
  { store }: Pick<Target['context'], 'store'>,
  conversationId: string,
  { id }: IsolatedEnvironment,
): Promise<boolean> => (await store.conversations.ofEnvironments([id])).some((one) => one.id === conversationId)

/** Without a name: the conversation's own. */
const meant = async (call: Call, place: Target): Promise<IsolatedEnvironment> => {
  const [ref] = call.words
  if (ref !== undefined) return findEnvironment(place.context, place.codebase, ref, cwdOf(call))
  const own = await currentEnvironment(call, place)
  if (own !== undefined) return own
  throw new AppError('not-found', 'this conversation has no worktree', {
    remedy: remedy`specify one: ${coppice('worktree remove <name>')}. Run ${coppice('worktree list')} for a list`,
  })
}

const toText = (result: RemoveResult, view: View): string => {
  const { paint } = view
  const { branch, path } = result.environment
  switch (result.outcome) {
    case 'refused':
      return refusalText(result, view)
    case 'released':
      return `${paint('green', 'Stopped tracking')} ${code(branch, view)}. Its files are still at ${tilde(path, view)}.`
    case 'removed':
      return [
        ...headline(result, view),
        `  ${printable(describeBranchOutcome({ deleted: result.branchDeleted, note: result.branchNote }))}`,
        ...result.leftOut
          .filter((left) => left.path !== path)
          .map(({ path, reason }) => `  not kept: ${printable(path)} (${printable(reason)})`),
        ...(result.detachedConversations.length === 0
          ? []
          : [`  detached ${counted(result.detachedConversations.length, 'conversation')} from it`]),
      ].join('\n')
  }
}

type RemovedResult = Extract<RemoveResult, { outcome: 'removed' }>

/** If the directory was missing, only git's data could be kept. Don't claim more than that. */
const headline = ({ environment, restorePoint, restoreDays, leftOut }: RemovedResult, view: View): string[] => {
  const { paint, commandText } = view
  const { branch, path } = environment
  const restore = `kept for ${restoreDays} days: ${commandText(`worktree restore ${shellWord(branch)}`)}`
  if (!leftOut.some((left) => left.path === path)) {
    return [`${paint('green', 'Removed')} ${code(branch, view)}${restorePoint === undefined ? '' : ` (${restore})`}`]
  }
  return [
    `${paint('green', 'Stopped tracking')} ${code(branch, view)}: ${tilde(path, view)} was missing, so its files couldn't be saved`,
    ...(restorePoint === undefined ? [] : [`  its branch and commits are ${restore}`]),
  ]
}

const toJson = (result: RemoveResult, view: View): unknown =>
  result.outcome === 'refused' ? refusalJson(result, view) : removalJson(result)

export type RemovalJson = {
  readonly environment: ReturnType<typeof environmentJson>
  readonly restorePoint: string | null
  readonly branchDeleted: boolean
  readonly leftOut: { path: string; reason: string }[]
}

export const removalJson = (result: Exclude<RemoveResult, { outcome: 'refused' }>): RemovalJson => {
  const removed = result.outcome === 'removed' ? result : undefined
  return {
    environment: environmentJson(result.environment, () => result.codebase),
    restorePoint: removed?.restorePoint?.id ?? null,
    branchDeleted: removed?.branchDeleted ?? false,
    leftOut: removed?.leftOut.map(({ path, reason }) => ({ path, reason })) ?? [],
  }
}

export const worktreeRemove = command<RemoveResult>({
  run,
  toText,
  toJson,
  exitCode: ({ outcome }) => (outcome === 'refused' ? exitCodes.refused : exitCodes.done),
})
