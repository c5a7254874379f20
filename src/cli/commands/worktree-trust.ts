import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { findEnvironment } from '../../isolation/find.ts'
import { vouchFor } from '../../isolation/worktree/vouch.ts'
import { type Call, command, standsIn } from '../../conversations/commands/command.ts'
import { hereToChange } from '../../conversations/commands/here.ts'
import { environmentJson } from '../../conversations/commands/json.ts'

export type TrustResult = {
  readonly environment: IsolatedEnvironment
  readonly codebase: string
  readonly wasTrusted: boolean
}

const run = async (call: Call): Promise<TrustResult> => {
  const { context, codebase } = await hereToChange(call)
  const environment = await findEnvironment(context, codebase, call.words[0] ?? '', standsIn(call))
  const { wasTrusted, notices } = await vouchFor(context, codebase, environment, { signal: call.signal })
  for (const notice of notices) call.notice(notice)
  return { environment, codebase: codebase.name, wasTrusted }
}

export const worktreeTrust = command<TrustResult>({
  run,
  toText: ({ environment: { branch, owned }, wasTrusted }, { paint }) => {
    if (wasTrusted) return `${branch} is trusted already.`
    const gets = owned ? '; files were copied and setup ran as in any worktree' : ''
    return `${paint('green', 'Trusted')} ${paint('bold', branch)}: agents there read its settings from now on${gets}.`
  },
  toJson: ({ environment, codebase }) => environmentJson(environment, () => codebase),
})
