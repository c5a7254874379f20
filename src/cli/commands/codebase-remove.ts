import { AppError } from '../../domain/errors.ts'
import { type CodebaseRemoved, removeCodebase } from '../../isolation/codebase-remove.ts'
import { type Call, command } from '../../conversations/commands/command.ts'
import { codebaseJson } from '../../conversations/commands/json.ts'
import { count, tilde, type View } from '../../conversations/commands/view.ts'

const run = async (call: Call): Promise<CodebaseRemoved> => {
  const { context } = await call.open()
  const [name = ''] = call.words
  // By its name only: a path would register what is to be let go of.
  const codebase = await context.store.codebases.byName(context.host, name)
  if (codebase === undefined) {
    throw new AppError('not-found', `there is no codebase ${JSON.stringify(name)}`, {
      remedy: '`coppice codebase list` shows what there is',
    })
  }
  return removeCodebase(context, codebase)
}

const toText = (result: CodebaseRemoved, view: View): string => {
  const { codebase, cloneDeleted, cloneKept, restorePoints } = result
  const place = tilde(codebase.checkoutPath ?? codebase.repoPath, view)
  return [
    `${view.paint('green', 'Let go of')} ${view.paint('bold', codebase.name)}`,
    cloneDeleted ? `  the clone at ${place} is deleted` : `  ${place} is not touched`,
    ...cloneKept.map((what) => `  the clone stays: ${what}`),
    ...(restorePoints > 0 && !cloneDeleted
      ? [`  ${count(restorePoints, 'restore point')}: there again when it is registered again`]
      : []),
  ].join('\n')
}

export const codebaseRemove = command<CodebaseRemoved>({
  run,
  toText,
  toJson: ({ codebase, cloneDeleted, cloneKept, restorePoints }) => ({
    codebase: codebaseJson(codebase),
    cloneDeleted,
    cloneKept,
    restorePoints,
  }),
})
