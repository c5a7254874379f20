import type { Clock } from '../domain/clock.ts'
import { AppError, toAppError } from '../domain/errors.ts'
import { type IncomingMessage, isTooOld } from '../domain/message.ts'
import type { Logger } from '../process/log.ts'
import { isAuthorised } from './authorisation.ts'
import type { Accepted, Platform, PlatformInbox, TooOld } from './platform.ts'
import type { FailedPlatform } from './remote.ts'

/** A platform that can't start is reported and skipped; the others run. */
export const startPlatforms = async (
  platforms: Iterable<Platform>,
  accept: (message: IncomingMessage) => Promise<Accepted>,
  { log, clock }: { readonly log: Logger; readonly clock: Clock },
): Promise<{ readonly failed: readonly FailedPlatform[] }> => {
  const failed: FailedPlatform[] = []
  for (const one of platforms) {
    const { platform } = one
    const acceptRecent = async (message: Omit<IncomingMessage, 'platform'>): Promise<Accepted | TooOld> => {
      if (!isTooOld(message, clock())) return accept({ ...message, platform })
      log.warn('a delivery was refused: it is older than the stored delivery ids', {
        platform,
        deliveryId: message.deliveryId,
        writtenAt: message.writtenAt,
      })
      return { outcome: 'too-old' }
    }
    const inbox: PlatformInbox = {
      accept: async (order, by) => {
        if (!isAuthorised(by)) throw new AppError('unexpected', `${platform} handed over an unauthorised message`)
        const author = by.userId === undefined ? {} : { userId: by.userId }
        return acceptRecent({ ...order, details: { ...order.details, ...author } })
      },
      close: (thread) => acceptRecent({ ...thread, kind: 'closed', text: '' }),
    }
    try {
      await one.start(inbox)
    } catch (error) {
      log.error('a platform could not be started', { platform, error })
      const { message, remedy } = toAppError(error)
      failed.push({ platform, problem: message, remedy })
    }
  }
  return { failed }
}

export const stopPlatforms = async (platforms: Iterable<Platform>, log: Logger): Promise<void> => {
  for (const one of platforms) {
    await one.stop().catch((error: unknown) => {
      log.warn('a platform did not stop cleanly', { platform: one.platform, error })
    })
  }
}
