import { isRead } from '../parse.ts'
import type { Attempt, CatchUpClient, Hook } from './client.ts'

export type RedeliverParts = {
  readonly client: Pick<CatchUpClient, 'attempts' | 'redeliver'>
  /** True if this event may be redelivered once more. */
  readonly mayRetry: (guid: string) => Promise<boolean>
}

/**
 * Asks GitHub to post again what our server didn't take since then. GitHub never does that by itself ("Handling failed
 * webhook deliveries"). A redelivery has the `X-GitHub-Delivery` of the original, and the same content, by which we
 * recognize it.
 */
export const redeliverFailed = async (
  { client, mayRetry }: RedeliverParts,
  hook: Hook,
  since: number,
): Promise<{ readonly redelivered: number; readonly complete: boolean }> => {
  const { attempts, complete } = await attemptsSince(client, hook, since)
  const failed = failedEvents(attempts)
  let redelivered = 0
  for (const { id, guid } of failed.slice(0, MAX_REDELIVERIES)) {
    if (!(await mayRetry(guid))) continue
    await client.redeliver(hook, id)
    redelivered += 1
  }
  return { redelivered, complete: complete && failed.length <= MAX_REDELIVERIES }
}

const MAX_PAGES = 20
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
export const failedEvents = (attempts: readonly Attempt[]): Attempt[] =>
  [...Map.groupBy(attempts, ({ guid }) => guid).values()]
    .filter((all) => !all.some(({ succeeded }) => succeeded))
    .flatMap((all) => all.toSorted((a, b) => b.at - a.at).slice(0, 1))
    .filter(({ event, action }) => isRead(event, action))
    .toSorted((a, b) => a.at - b.at)
