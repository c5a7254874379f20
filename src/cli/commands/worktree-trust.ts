import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { counted, sentence } from '../../domain/words.ts'
import { findEnvironment } from '../../isolation/find.ts'
import { providerOf } from '../../isolation/served-by.ts'
import type { Vouched } from '../../isolation/provider.ts'
import { type Call, command, standsIn } from '../../commands/command.ts'
import { resolveTargetForWrite } from '../../commands/target.ts'
import { environmentJson } from '../../commands/views/json.ts'
import type { View } from '../../commands/views/view.ts'

export type TrustResult = {
  readonly environment: IsolatedEnvironment
  readonly codebase: string
} & Omit<Vouched, 'notices'>

const run = async (call: Call): Promise<TrustResult> => {
  const { context, codebase } = await resolveTargetForWrite(call)
  const environment = await findEnvironment(context, codebase, call.words[0] ?? '', standsIn(call))
  const { notices, ...vouched } = await (
    await providerOf(context, environment)
  ).vouch(context, codebase, environment, { signal: call.signal })
  for (const notice of notices) call.notice(notice)
  return { environment, codebase: codebase.name, ...vouched }
}

export const trustText = (
  { environment: { branch }, wasTrusted, copied, linked, ranSetup }: TrustResult,
  { paint }: View,
): string => {
  if (wasTrusted) return `${branch} is already trusted.`
  const done = [
    ...(copied > 0 ? [`copied ${counted(copied, 'file')}`] : []),
    ...(linked > 0 ? [`created ${counted(linked, 'link')}`] : []),
    ...(ranSetup ? ['ran setup'] : []),
  ]
  const also = done.length === 0 ? '' : ` ${sentence(done.join(', '))}`
  return `${paint('green', 'Trusted')} ${paint('bold', branch)}: agents there now use its settings.${also}`
}

export const worktreeTrust = command<TrustResult>({
  run,
  toText: trustText,
  toJson: ({ environment, codebase }) => environmentJson(environment, () => codebase),
})
