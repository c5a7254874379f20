import type { Workplace } from '../commands/command.ts'
import { describeRecord, eventJson } from '../commands/views/fleet-events.ts'
import { recordReplies } from '../conversations/outbox/replies.ts'
import type { FleetContext } from '../fleet/context.ts'
import type { HookContext } from '../fleet/events/hook.ts'

/** Undefined without hooks in `config.yaml`. */
export const hookContext = async ({
  context: isolation,
  fleet,
  platforms,
}: Pick<Workplace, 'context' | 'platforms'> & { readonly fleet: () => Promise<FleetContext> }): Promise<
  HookContext | undefined
> => {
  if (isolation.settings.hooks.length === 0) return undefined
  const { notify, redact } = await fleet()
  return {
    isolation,
    notify,
    redact,
    platforms,
    describe: (record) => ({ text: describeRecord(record), json: eventJson(record) }),
    post: (store, to, key, text) =>
      recordReplies({ isolation, redact, platforms }, store, { ...to, inboxId: undefined }, [
        { key, role: 'system', text },
      ]),
  }
}
