import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { findEnvironment } from '../../isolation/find.ts'
import { type Vouched, vouchFor } from '../../isolation/worktree/vouch.ts'
import { type Call, command, standsIn } from '../../commands/command.ts'
import { hereToChange } from '../../commands/here.ts'
import { environmentJson } from '../../commands/json.ts'

export type TrustResult = {
  readonly environment: IsolatedEnvironment
  readonly codebase: string
} & Pick<Vouched, 'wasTrusted' | 'gained'>

const run = async (call: Call): Promise<TrustResult> => {
  const { context, codebase } = await hereToChange(call)
  const environment = await findEnvironment(context, codebase, call.words[0] ?? '', standsIn(call))
  const { wasTrusted, notices, gained } = await vouchFor(context, codebase, environment, { signal: call.signal })
  for (const notice of notices) call.notice(notice)
  return { environment, codebase: codebase.name, wasTrusted, gained }
}

export const worktreeTrust = command<TrustResult>({
  run,
  toText: ({ environment: { branch }, wasTrusted, gained }, { paint }) => {
    if (wasTrusted) return `${branch} is trusted already.`
    const done = gained.map((what) => (what === 'files' ? 'copied the configured files' : 'ran setup'))
    const also = done.length === 0 ? '' : `; ${done.join(' and ')}`
    return `${paint('green', 'Trusted')} ${paint('bold', branch)}: agents there read its settings from now on${also}.`
  },
  toJson: ({ environment, codebase }) => environmentJson(environment, () => codebase),
})
