import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { workLabel } from '../../domain/work.ts'
import { findRestorePoint } from '../../isolation/find.ts'
import { type Call, command } from '../command.ts'
import { recogniseFullDisk } from '../disk-full.ts'
import { hereToChange } from '../here.ts'
import { environmentJson } from '../json.ts'
import { tilde } from '../view.ts'

export type RestoreResult = { readonly environment: IsolatedEnvironment; readonly codebase: string }

const run = async (call: Call): Promise<RestoreResult> => {
  const { context, provider, codebase } = await hereToChange(call)
  const point = await findRestorePoint(context, codebase, call.words[0], call.cwd)
  const own = await provider()
  const { environment, notices } = await recogniseFullDisk(context.worktreesBase, () => own.restore(point))
  for (const notice of notices) call.notice(notice)
  return { environment, codebase: codebase.name }
}

export const worktreeRestore = command<RestoreResult>({
  run,
  toText: ({ environment }, view) =>
    [
      `${view.paint('green', 'Restored')} ${view.paint('bold', environment.branch)} for ${workLabel(environment.work)}`,
      `  cd ${tilde(environment.path, view)}`,
    ].join('\n'),
  toJson: ({ environment, codebase }) => environmentJson(environment, () => codebase),
})
