import type { Clock } from '../../../domain/clock.ts'
import type { Logger } from '../../../process/log.ts'
import { failureOf } from '../failure.ts'
import { isRead } from '../parse.ts'
import type { Attempt, CatchUpClient, Hook } from './client.ts'

export type RedeliverParts = {
  readonly client: Pick<CatchUpClient, 'attempts' | 'redeliver'>
  /** True if this event may be redelivered once more. */
  readonly mayRetry: (guid: string) => Promise<boolean>
  readonly clock: Clock
  readonly log: Logger
}

export type Redelivered = {
  readonly redelivered: number
  /** False: the oldest attempts couldn't be listed. */
  readonly complete: boolean
  /** What failed from this time on is left for the next look; undefined: nothing. */
  readonly upTo: number | undefined
}

/**
 * Asks GitHub to post again what our server didn't take since then. GitHub never does that by itself ("Handling failed
 * webhook deliveries"). A redelivery has the `X-GitHub-Delivery` of the original, and the same content, by which we
 * recognize it.
 */
export const redeliverFailed = async (parts: RedeliverParts, hook: Hook, since: number): Promise<Redelivered> => {
  const { client, mayRetry } = parts
  const { attempts, complete } = await attemptsSince(client, hook, since)
  let redelivered = 0
  for (const attempt of failedEvents(attempts)) {
    if (redelivered === MAX_REDELIVERIES) return { redelivered, complete, upTo: attempt.at }
    if ((await mayRetry(attempt.guid)) && (await isRedelivered(parts, hook, attempt))) redelivered += 1
  }
  return { redelivered, complete, upTo: undefined }
}

/** One that GitHub refuses, because it has forgotten it, holds up no other. */
const isRedelivered = async (
  { client, clock, log }: RedeliverParts,
  hook: Hook,
  { id, guid }: Attempt,
): Promise<boolean> => {
  try {
    await client.redeliver(hook, id)
    return true
  } catch (error) {
    const { kind, message } = failureOf(error, clock)
    if (kind !== 'missing' && kind !== 'refused') throw error
    log.warn("GitHub didn't redeliver a failed delivery", { guid, message })
    return false
  }
}

const MAX_PAGES = 100
const MAX_REDELIVERIES = 100

const attemptsSince = async (
  client: Pick<CatchUpClient, 'attempts'>,
  hook: Hook,
  since: number,
): Promise<{ attempts: Attempt[]; complete: boolean }> => {
  const found: Attempt[] = []
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { attempts, next } = await client.attempts(hook, cursor)
    found.push(...attempts.filter(({ at }) => at >= since))
    const last = attempts.at(-1)
    if (next === undefined || last === undefined || last.at < since) return { attempts: found, complete: true }
    cursor = next
  }
  return { attempts: found, complete: false }
}

/** The newest attempt of each event that matters to us and that no attempt delivered, oldest event first. */
const failedEvents = (attempts: readonly Attempt[]): Attempt[] =>
  [...Map.groupBy(attempts, ({ guid }) => guid).values()]
    .filter((all) => !all.some(({ succeeded }) => succeeded))
    .flatMap((all) => all.toSorted((a, b) => b.at - a.at).slice(0, 1))
    .filter(({ event, action }) => isRead(event, action))
    .toSorted((a, b) => a.at - b.at)
