import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { workLabel } from '../../domain/work.ts'
import { type Call, command } from '../command.ts'
import { hereToChange } from '../here.ts'
import { environmentJson } from '../json.ts'
import { tilde } from '../view.ts'

export type AdoptResult = { readonly environment: IsolatedEnvironment; readonly codebase: string }

const run = async (call: Call): Promise<AdoptResult> => {
  const path = resolve(call.cwd, call.words[0] ?? '')
  if (!existsSync(path)) {
    throw new AppError('not-adoptable', `there is nothing at ${path}`, {
      remedy: '`git worktree list` shows what there is',
    })
  }
  // The worktree says which repository it belongs to, wherever the user stands.
  const { provider, codebase } = await hereToChange(call, path)
  const environment = await (await provider()).adopt(codebase, path, { createdBy: 'cli', aliases: [] })
  return { environment, codebase: codebase.name }
}

export const worktreeAdopt = command<AdoptResult>({
  run,
  toText: ({ environment }, view) =>
    [
      `${view.paint('green', 'Adopted')} ${view.paint('bold', environment.branch)} for ${workLabel(environment.work)}`,
      `  ${tilde(environment.path, view)} stays yours: removing it only lets go of it`,
    ].join('\n'),
  toJson: ({ environment, codebase }) => environmentJson(environment, () => codebase),
})
