import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { counted, sentence } from '../../domain/text/words.ts'
import { findEnvironment } from '../../isolation/find.ts'
import type { Sha } from '../../domain/names.ts'
import { resolveCommit } from '../../git/refs.ts'
import { presenceOf, providerOf } from '../../isolation/provider-of.ts'
import type { TrustOutcome } from '../../isolation/provider.ts'
import { type Call, command, cwdOf } from '../../commands/command.ts'
import { followTarget, resolveTarget, resolveTargetForWrite } from '../../commands/target.ts'
import { environmentJson } from '../../commands/views/json.ts'
import type { View } from '../../commands/views/view.ts'

export type TrustResult = {
  readonly environment: IsolatedEnvironment
  readonly codebase: string
} & Omit<TrustOutcome, 'notices'>

const run = async (call: Call): Promise<TrustResult> => {
  const seen = await checkedOut(call)
  const { context, codebase } = await resolveTargetForWrite(call)
  const found = await findEnvironment(context, codebase, call.words[0] ?? '', cwdOf(call))
  const environment = await followTarget(call, { context, codebase }, found)
  const provider = await providerOf(context, environment)
  const { notices, ...vouched } = await provider.trust(context, codebase, environment, { seen, signal: call.signal })
  for (const notice of notices) call.notice(notice)
  return { environment, codebase: codebase.name, ...vouched }
}

/** Before waiting for a lock: its holder may be moving the worktree to an unreviewed commit. */
const checkedOut = async (call: Call): Promise<Sha | undefined> => {
  const { context, codebase } = await resolveTarget(call)
  const environment = await findEnvironment(context, codebase, call.words[0] ?? '', cwdOf(call))
  const presence = await presenceOf(context, codebase, environment)
  const tree = presence.state === 'present' || presence.state === 'moved' ? presence.tree : undefined
  return tree && resolveCommit(context.git, tree, 'HEAD', { signal: call.signal })
}

export const trustText = (
  { environment: { branch }, commit, wasTrusted, copied, linked, ranSetup }: TrustResult,
  { paint }: View,
): string => {
  if (wasTrusted) return `${branch} is already trusted.`
  const done = [
    ...(copied > 0 ? [`copied ${counted(copied, 'file')}`] : []),
    ...(linked > 0 ? [`created ${counted(linked, 'link')}`] : []),
    ...(ranSetup ? ['ran setup'] : []),
  ]
  const also = done.length === 0 ? '' : ` ${sentence(done.join(', '))}`
  const at = commit === undefined ? '' : ` at ${commit.slice(0, 7)}`
  return `${paint('green', 'Trusted')} ${paint('bold', branch)}${at}: agents there now use its settings.${also}`
}

export const worktreeTrust = command<TrustResult>({
  run,
  toText: trustText,
  toJson: ({ environment, codebase, commit }) => ({
    ...environmentJson(environment, () => codebase),
    commit: commit ?? null,
  }),
})
