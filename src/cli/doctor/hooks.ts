import type { Workplace } from '../../commands/command.ts'
import { ago } from '../../commands/views/view.ts'
import { hookKey, hookLabel } from '../../domain/config/hooks.ts'
import { coppice, remedy } from '../../domain/remedy.ts'
import { type Finding, look, ok, problem } from './finding.ts'

/** The hooks of `config.yaml`: whether they can work, and their last failures. */
export const examineHooks = ({ context, platforms }: Pick<Workplace, 'context' | 'platforms'>): Promise<Finding[]> =>
  look('hooks', async () => {
    const { store, host, settings, clock } = context
    if (settings.hooks.length === 0) return []
    const states = new Map((await store.hooks.list(host)).map((state) => [state.key, state]))
    const known = await platforms()
    const findings = settings.hooks.map((hook, at): Finding => {
      const label = hookLabel(hook, at)
      if (hook.action.kind === 'conversation' && !known.has(hook.action.platform)) {
        return problem('hooks', `${label}: unknown platform`, `use one of ${[...known.keys()].join(', ')}`)
      }
      const failure = states.get(hookKey(hook))?.failure
      if (failure === undefined) return ok('hooks', label)
      const how = remedy`fix it in config.yaml; ${coppice('events --kind hook-failed')} lists what it never got`
      return problem('hooks', `${label} failed ${ago(failure.at, clock())}: ${failure.error}`, how)
    })
    return findings
  })
