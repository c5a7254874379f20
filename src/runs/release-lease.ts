import type { HeldLease } from '../isolation/lease.ts'
import type { Logger } from '../process/log.ts'
import { withStoreRetry } from '../store/with-store-retry.ts'

/**
 * A lease that stays would keep the environment for as long as we live, and an error here would cost the reply: a store
 * that is away is tried again, and in the end without keeping the message waiting.
 */
export const releaseLease = async ({ log }: { readonly log: Logger }, lease: HeldLease): Promise<void> => {
  const what = `the end of lease ${lease.id}`
  try {
    await withStoreRetry(lease.release, { log, what })
  } catch (error) {
    log.error('a lease could not be given back yet', { lease: lease.id, error })
    const again = setInterval(() => {
      void lease.release().then(
        () => clearInterval(again),
        (problem: unknown) => log.warn("couldn't write to the store yet; retrying", { what, error: problem }),
      )
    }, LEASE_RETRY_MS).unref()
  }
}

const LEASE_RETRY_MS = 10_000
