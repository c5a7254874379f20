import type { HeldLease } from '../isolation/lease.ts'
import type { Logger } from '../process/log.ts'
import { withStoreRetry } from '../store/with-store-retry.ts'

/**
 * A lease that isn't released would block the environment for as long as we run, and an error would cost the reply. So
 * retry while the store is unavailable, at last without delaying the message.
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
