import { findEnvironment } from '../../isolation/find.ts'
import type { Released, Removed } from '../../isolation/provider.ts'
import { AppError } from '../../domain/errors.ts'
import { type Call, command, isSet } from '../command.ts'
import { exitCodes } from '../failure.ts'
import { hereToChange } from '../here.ts'
import { environmentJson } from '../json.ts'
import { type Refusal, refusalJson, refusalText } from '../refusal.ts'
import { count, printable, tilde, type View } from '../view.ts'

export type RemoveResult = ((Removed & { readonly restoreDays: number }) | Released | Refusal) & {
  readonly codebase: string
}

const run = async (call: Call): Promise<RemoveResult> => {
  const { context, provider, codebase } = await hereToChange(call)
  const environment = await findEnvironment(context, codebase, call.words[0] ?? '', call.cwd)
  const forced = isSet(call.values, 'force')
  const outcome = await (
    await provider()
  ).destroy(environment, { trigger: 'command', force: forced, signal: call.signal })
  const more = { codebase: codebase.name, restoreDays: context.settings.restoreDays }
  switch (outcome.outcome) {
    case 'removed':
      for (const notice of outcome.notices) call.notice(notice)
      return { ...outcome, ...more }
    case 'released':
      return { ...outcome, codebase: codebase.name }
    case 'refused':
      return { ...outcome, ...more, forced }
    case 'would-remove':
      throw new AppError('unexpected', 'a removal answered as if it had been a dry run')
  }
}

const toText = (result: RemoveResult, view: View): string => {
  const { paint, say } = view
  const { branch, path } = result.environment
  switch (result.outcome) {
    case 'refused':
      return refusalText(result, view)
    case 'released':
      return `${paint('green', 'Let go of')} ${paint('bold', branch)}: it was adopted, so ${tilde(path, view)} stays as it is.`
    case 'removed':
      return [
        `${paint('green', 'Removed')} ${paint('bold', branch)}${result.restorePoint === undefined ? '' : ` (kept for ${result.restoreDays} days: ${say(`worktree restore ${branch}`)})`}`,
        `  ${result.branchDeleted ? 'branch deleted' : 'branch kept'}: ${printable(result.branchNote)}`,
        ...result.leftOut.map(({ path, reason }) => `  not kept: ${printable(path)} (${printable(reason)})`),
        ...(result.letGo.length === 0 ? [] : [`  ${count(result.letGo.length, 'conversation')} let go of it`]),
      ].join('\n')
  }
}

const toJson = (result: RemoveResult): unknown => {
  if (result.outcome === 'refused') return refusalJson(result, (text) => `coppice ${text}`)
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
