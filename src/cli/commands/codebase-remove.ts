import { AppError } from '../../domain/errors.ts'
import { counted } from '../../domain/text/words.ts'
import type { KeptDirectory } from '../../isolation/codebases/release.ts'
import { type CodebaseRemoved, removeCodebase } from '../../isolation/codebases/remove.ts'
import { type Call, command, isSet } from '../../commands/command.ts'
import { codebaseJson } from '../../commands/views/json.ts'
import { tilde, type View } from '../../commands/views/view.ts'
import { coppice, remedy } from '../../domain/remedy.ts'

const run = async (call: Call): Promise<CodebaseRemoved> => {
  const { context } = await call.open()
  const [name = ''] = call.words
  // By name only: a path would register it first.
  const codebase = await context.store.codebases.byName(context.host, name)
  if (codebase === undefined) {
    throw new AppError('not-found', `unknown codebase ${JSON.stringify(name)}`, {
      remedy: remedy`run ${coppice('codebase list')} for a list`,
    })
  }
  const removed = await removeCodebase(context, codebase, { force: isSet(call.values, 'force') })
  for (const notice of removed.notices ?? []) call.notice(notice)
  return removed
}

const toText = (result: CodebaseRemoved, view: View): string => {
  const { codebase, cloneDeleted, cloneKept, restorePoints, released } = result
  const place = tilde(codebase.checkoutPath ?? codebase.repoPath, view)
  return [
    `${view.paint('green', 'Stopped tracking')} ${view.paint('bold', codebase.name)}`,
    ...(released === undefined
      ? [cloneDeleted ? `  deleted the clone at ${place}` : `  ${place} is unchanged`]
      : [`  ${place} no longer exists`, ...released.map((kept) => `  kept: ${keptText(kept, view)}`)]),
    ...cloneKept.map((what) => `  kept the clone: ${what}`),
    ...(restorePoints > 0 && !cloneDeleted
      ? [`  kept ${counted(restorePoints, 'restore point')}: available when you register the repository again`]
      : []),
  ].join('\n')
}

const keptText = ({ branch, path }: KeptDirectory, view: View): string =>
  `${tilde(path, view)} (${branch ?? 'a spare worktree'})`

export const codebaseRemove = command<CodebaseRemoved>({
  run,
  toText,
  toJson: ({ codebase, cloneDeleted, cloneKept, restorePoints, released = [] }) => ({
    codebase: codebaseJson(codebase),
    cloneDeleted,
    cloneKept,
    restorePoints,
    released: released.map(({ branch, path }) => ({ branch: branch ?? null, path })),
  }),
})
