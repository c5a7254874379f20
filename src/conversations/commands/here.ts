import type { Codebase } from '../../domain/environment.ts'
import { resolveCodebase } from '../../isolation/codebases.ts'
import type { Call, Workplace } from './command.ts'

export type Here = Workplace & { readonly codebase: Codebase; readonly nameOf: (codebaseId: string) => string }

/** The workplace and the codebase that the command is about. */
export const here = async (call: Call, cwd = call.cwd): Promise<Here> => {
  const workplace = await call.open()
  const codebase = await resolveCodebase(workplace.context, { name: call.codebase, cwd, signal: call.signal })
  return { ...workplace, codebase, nameOf: () => codebase.name }
}

/** The same for commands that change something: what was interrupted is finished or undone first. */
export const hereToChange = async (call: Call, cwd?: string): Promise<Here> => {
  const found = await here(call, cwd)
  const { settleInterrupted } = await import('../../isolation/reconcile.ts')
  const { settled, left } = await settleInterrupted(found.context, found.codebase)
  for (const what of settled) call.notice(`settled an interrupted ${what}`)
  for (const what of left) call.notice(`left alone: ${what}`)
  return found
}
