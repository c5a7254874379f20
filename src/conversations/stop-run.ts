import { killRun } from '../process/kill.ts'
import { liveness } from '../process/identity.ts'
import type { ConversationKey, InboxMessage } from '../store/store.ts'
import type { ConversationsContext } from './context.ts'
import { endProcesses, watchesOf } from './end-run.ts'
import { type Leftovers, nothingLeft, stillThere } from './leftovers.ts'

export type Stopped = {
  readonly outcome: 'stopped' | 'nothing-running'
  /** Who is still there all the same. */
  readonly left: Leftovers
}

export const nothingRunning: Stopped = { outcome: 'nothing-running', left: nothingLeft }

/** Ends a run that another process of this home works on: that process sees its agent end, and answers the message. */
export const stopElsewhere = async (
  { isolation }: Pick<ConversationsContext, 'isolation'>,
  message: InboxMessage,
): Promise<Stopped> => {
  if (message.child === undefined || message.holder?.host !== isolation.host) return nothingRunning
  const watches = await watchesOf(isolation, message)
  const killed = await endProcesses(isolation, message, watches)
  if (killed.outcome === 'dead') return { outcome: 'stopped', left: nothingLeft }
  const [watch] = watches
  return { outcome: 'stopped', left: watch === undefined ? nothingLeft : await stillThere(watch.data.mark, []) }
}

/** Ends what earlier runs of the conversation left running. */
export const stopLeftovers = async (
  { isolation }: Pick<ConversationsContext, 'isolation'>,
  { platform, conversationId }: ConversationKey,
): Promise<Stopped> => {
  const { store, host, clock } = isolation
  let stopped = nothingRunning
  for (const watch of await store.runWatches.ofHost(host)) {
    if (watch.platform !== platform || watch.conversationId !== conversationId) continue
    if (!watch.ended && liveness(watch.owner) !== 'dead') continue
    const { mark, unknown } = watch.data
    if ((await stillThere(mark, [])).own.length === 0) continue
    await killRun([mark], { graceMs: GRACE_MS, clock })
    const left = await stillThere(mark, unknown)
    stopped = {
      outcome: 'stopped',
      left: { own: [...stopped.left.own, ...left.own], unknown: [...stopped.left.unknown, ...left.unknown] },
    }
  }
  return stopped
}

const GRACE_MS = 5_000
