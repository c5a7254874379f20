import { describe, expect, test } from 'vitest'
import { acpAgents } from '../../src/domain/config/agents.ts'
import { AppError } from '../../src/domain/errors.ts'
import { createStoreQueue } from '../../src/conversations/inbox/store-queue.ts'
import { DeliveryError, type OutgoingMessage } from '../../src/conversations/outbox/delivery.ts'
import type { LocalPlatform } from '../../src/platforms/local.ts'
import type { Accepted, Platform, PlatformInbox } from '../../src/platforms/platform.ts'
import { anyDescriptor, remoteNames } from '../../src/platforms/remote.ts'
import { startPlatforms } from '../../src/platforms/start.ts'
import { type LocalPlatformName, localPlatforms } from '../../src/platforms/registry.ts'
import { inboxOf, type Received } from '../helpers/inbox.ts'
import { makeWorld } from '../helpers/world.ts'
import { discordCandidate } from '../helpers/discord-double/candidate.ts'
import { githubCandidate } from '../platforms/github-candidate.ts'
import { slackCandidate } from '../platforms/slack-candidate.ts'
import { telegramCandidate } from '../platforms/telegram-candidate.ts'

/*
 * One suite over all platforms. A platform joins with a line in `candidates`: how it is made, how its service delivers
 * a message to it, and, where it reaches out, what its service received and how that service is made to fail.
 */

type Delivered = { readonly conversationId: string; readonly deliveryId: string; readonly text: string }

type Candidate = {
  readonly platform: Platform
  /** As the service does it. Settles when the service has its acknowledgement; rejects when it got none. */
  readonly deliver: (message: Delivered) => Promise<unknown>
  /** The same from somebody who is not allowed, perhaps in a thread of their own. */
  readonly deliverFromStranger: (text: string) => Promise<void>
  /** What arrived at the service; undefined where replies are read from our own records. */
  readonly arrived?: () => readonly { readonly conversationId: string; readonly text: string }[]
  /** It can tell that it has sent a message before. */
  readonly sendsOnce?: boolean
  /** From now on the service refuses, or cannot be reached. */
  readonly breakService?: (how: 'refused' | 'unreachable') => void
  readonly close?: () => Promise<void>
}

const local = (name: LocalPlatformName) => async (): Promise<Candidate> => {
  const platform: LocalPlatform = localPlatforms[name]()
  return {
    platform,
    deliver: ({ conversationId, deliveryId, text }) =>
      platform.receive({ conversationId, deliveryId, kind: 'message', text, details: {} }, { by: 'bearer' }),
    deliverFromStranger: async (text) => {
      const order = { conversationId: 'theirs', deliveryId: 'their-1', kind: 'message', text, details: {} } as const
      await expect(platform.receive(order, undefined)).rejects.toThrow('token')
      await expect(platform.close(order, undefined)).rejects.toThrow('token')
    },
  }
}

const candidates: Record<string, () => Promise<Candidate>> = {
  web: local('web'),
  cli: local('cli'),
  test: local('test'),
  discord: discordCandidate,
  slack: slackCandidate,
  github: githubCandidate,
  telegram: telegramCandidate,
}

test('every platform of the registry is tried', () => {
  expect(Object.keys(candidates)).toEqual(expect.arrayContaining([...Object.keys(localPlatforms), ...remoteNames]))
})

test('no agent can be granted a variable of a platform', () => {
  const granted = remoteNames
    .flatMap((name) => Object.values(anyDescriptor(name).settings).map(({ variable }) => variable))
    .filter((variable) => acpAgents.read({ own: { command: ['x'], variables: [variable] } }) !== undefined)
  expect(granted).toEqual([])
})

const recordingInbox = (
  answer: (message: Received, nth: number) => Promise<Accepted> = async (_message, nth) => ({
    outcome: 'accepted',
    id: `id-${nth}`,
  }),
): PlatformInbox & { readonly received: Received[] } => {
  const received: Received[] = []
  return {
    received,
    ...inboxOf((message) => {
      received.push(message)
      return answer(message, received.length)
    }),
  }
}

const hello = { conversationId: 'conversation-1', deliveryId: 'delivery-1', text: 'fix the login bug' }

const reply = (id: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage => ({
  id,
  conversationId: 'conversation-1',
  role: 'agent',
  text: 'Done.',
  part: 1,
  parts: 1,
  ...more,
})

describe.each(Object.entries(candidates))('the platform %s', (name, make) => {
  const using = async (use: (candidate: Candidate) => Promise<void>): Promise<void> => {
    const candidate = await make()
    try {
      await use(candidate)
    } finally {
      await candidate.platform.stop()
      await candidate.close?.()
    }
  }

  test('goes by its name and has a sensible limit', () =>
    using(async ({ platform }) => {
      expect(platform.platform).toBe(name)
      expect(platform.limit ?? Infinity).toBeGreaterThan(100)
    }))

  test('hands a message over exactly once, in the words that were said', () =>
    using(async ({ platform, deliver }) => {
      const inbox = recordingInbox()
      await platform.start(inbox)
      await deliver(hello)
      expect(inbox.received).toHaveLength(1)
      expect(inbox.received[0]).toMatchObject({ ...hello, kind: 'message' })
    }))

  test('a stranger is ignored: no message is recorded, nothing is said, nothing is created', () =>
    using(async ({ platform, deliver, deliverFromStranger, arrived }) => {
      await using world = await makeWorld()
      const { context, codebase } = world
      const { inbox, outbox, environments } = context.store
      const queue = createStoreQueue({ ...context, endRun: async () => true })
      await startPlatforms([platform], (message) => queue.accept({ ...message, lane: 'turn' }), context)
      await deliverFromStranger('delete everything')
      await deliver(hello)
      expect((await inbox.waiting(Infinity, 10)).map(({ text }) => text)).toEqual([hello.text])
      expect(await outbox.counts()).toEqual({ waiting: 0, failed: 0 })
      expect(await environments.live(codebase.id)).toEqual([])
      expect(arrived?.() ?? []).toEqual([])
    }))

  test('acknowledges only after the message is durable', () =>
    using(async ({ platform, deliver }) => {
      const durable = Promise.withResolvers<Accepted>()
      const handedOver = Promise.withResolvers<void>()
      const inbox = recordingInbox(() => {
        handedOver.resolve()
        return durable.promise
      })
      await platform.start(inbox)
      let acknowledged = false
      const delivery = deliver(hello).finally(() => {
        acknowledged = true
      })
      await handedOver.promise
      await new Promise((resolve) => setImmediate(resolve))
      expect(acknowledged).toBe(false)
      durable.resolve({ outcome: 'accepted', id: 'id' })
      await delivery
      expect(acknowledged).toBe(true)
    }))

  test('does not acknowledge what could not be made durable: the service shall try again', () =>
    using(async ({ platform, deliver }) => {
      // For good: what may pass is tried for 13 seconds by a platform that delivers nothing twice.
      await platform.start(recordingInbox(() => Promise.reject(new AppError('store-lost', 'the database is gone'))))
      await expect(deliver(hello)).rejects.toThrow(Error)
    }))

  test('acknowledges a delivery that is known already', () =>
    using(async ({ platform, deliver }) => {
      const inbox = recordingInbox(async (_message, nth) => ({
        outcome: nth === 1 ? 'accepted' : 'duplicate',
        id: 'id',
      }))
      await platform.start(inbox)
      await deliver(hello)
      await expect(deliver(hello)).resolves.not.toThrow()
      expect(new Set(inbox.received.map(({ deliveryId }) => deliveryId)).size).toBe(1)
    }))

  test('accepts nothing before it is started and after it is stopped, and replies still go out', () =>
    using(async ({ platform, deliver, arrived }) => {
      await expect(deliver(hello)).rejects.toThrow(Error)
      const inbox = recordingInbox()
      await platform.start(inbox)
      await platform.stop()
      await expect(deliver(hello)).rejects.toThrow(Error)
      expect(inbox.received).toEqual([])
      await platform.send(reply('r-1.0'))
      expect(arrived?.().map(({ text }) => text) ?? ['Done.']).toEqual(['Done.'])
    }))

  test('stops twice as well as once, and starts again', () =>
    using(async ({ platform, deliver }) => {
      await platform.start(recordingInbox())
      await platform.stop()
      await platform.stop()
      const inbox = recordingInbox()
      await platform.start(inbox)
      await deliver(hello)
      expect(inbox.received).toHaveLength(1)
    }))

  test('sends the same message again as the same message, where it says that it can tell', () =>
    using(async ({ platform, arrived, sendsOnce }) => {
      await platform.start(recordingInbox())
      await platform.send(reply('r-1.0'))
      await platform.send(reply('r-1.0'))
      await platform.send(reply('r-1.1', { part: 2, parts: 2, text: 'And more.' }))
      const texts = arrived?.().map(({ text }) => text) ?? ['Done.', 'And more.']
      expect(sendsOnce === true ? texts : [...new Set(texts)]).toEqual(['Done.', 'And more.'])
    }))

  test.each(['refused', 'unreachable'] as const)('says so when its service is %s', (how) =>
    using(async ({ platform, breakService }) => {
      await platform.start(recordingInbox())
      breakService?.(how)
      const failure: unknown = await platform.send(reply('r-1.0')).catch((error: unknown) => error)
      // Where there is no service, none can fail.
      const wanted = breakService === undefined ? undefined : how
      expect(failure instanceof DeliveryError ? failure.kind : failure).toBe(wanted)
    }),
  )
})
