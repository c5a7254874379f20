import type { Codebase } from '../domain/environment.ts'
import { type Call, command } from './command.ts'
import { visibleCodebases } from './target.ts'
import { codebaseJson } from './views/json.ts'
import { lastCommand, table, tilde, type View } from './views/view.ts'

type Row = { readonly codebase: Codebase; readonly environments: number }

const run = async (call: Call): Promise<Row[]> => {
  const { context } = await call.open()
  const codebases = await visibleCodebases(context, call.chat)
  return Promise.all(
    codebases.map(async (codebase) => ({
      codebase,
      environments: (await context.store.environments.live(codebase.id)).length,
    })),
  )
}

const toText = (rows: readonly Row[], view: View): string => {
  if (rows.length === 0)
    return `No repositories registered yet.\nRegister one: ${lastCommand(view.commandText('codebase add <path or URL>'), view)}`
  return table(
    ['NAME', 'WORKTREES', 'PATH', 'REMOTE'],
    rows.map(({ codebase, environments }) => [
      { text: codebase.name, style: 'bold' },
      { text: String(environments) },
      { text: tilde(codebase.checkoutPath ?? codebase.repoPath, view) },
      { text: codebase.remoteUrl ?? '', style: 'dim' },
    ]),
    view,
  )
}

export const codebaseList = command<Row[]>({
  run,
  toText,
  toJson: (rows) => rows.map(({ codebase, environments }) => ({ ...codebaseJson(codebase), environments })),
})
