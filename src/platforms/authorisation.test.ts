import { expect, test } from 'vitest'
import { createLogger } from '../process/log.ts'
import { type Author, authorise, type Authorised, isAuthorised } from './authorisation.ts'
import { createLocalPlatform } from './local.ts'
import type { PlatformInbox } from './platform.ts'
import { startPlatforms } from './start.ts'

const listed = (userId: string | undefined, ...allowed: string[]): Author => ({ kind: 'listed', userId, allowed })

test.each<[string, Author, boolean]>([
  ['somebody on the list', listed('U1', 'U1', 'U2'), true],
  ['somebody who is not on it', listed('U3', 'U1', 'U2'), false],
  ['anybody while the list is empty', listed('U1'), false],
  ['anybody with *', listed('U3', '*'), true],
  ['nobody in particular', listed(undefined, 'U1'), false],
  ['an empty id, even if the list has one', listed('', ''), false],
  ['part of an id', listed('U', 'U1'), false],
  ['somebody with write access', { kind: 'collaborator', userId: '5', canWrite: 'yes' }, true],
  ['somebody without', { kind: 'collaborator', userId: '5', canWrite: 'no' }, false],
  ['somebody whose access is unknown', { kind: 'collaborator', userId: '5', canWrite: 'unknown' }, false],
  ['a caller with the token', { kind: 'api-caller', authenticated: { by: 'bearer' } }, true],
  ['a caller without', { kind: 'api-caller', authenticated: undefined }, false],
])('%s: may give orders? %#', (_who, author, allowed) => {
  expect(isAuthorised(authorise(author))).toBe(allowed)
})

const order = { conversationId: 'c', deliveryId: 'd', kind: 'message', text: 'go', details: { userId: 'U9' } } as const

const startedInbox = async (): Promise<{ inbox: PlatformInbox; accepted: unknown[] }> => {
  const accepted: unknown[] = []
  let inbox: PlatformInbox | undefined
  const platform = { ...createLocalPlatform('web'), start: async (given: PlatformInbox) => void (inbox = given) }
  const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })
  const accept = async (message: unknown) => {
    accepted.push(message)
    return { outcome: 'accepted', id: 'id' } as const
  }
  await startPlatforms([platform], accept, { log, clock: Date.now })
  if (inbox === undefined) throw new Error('not started')
  return { inbox, accepted }
}

test('an order needs the proof that only the deciding function makes', async () => {
  const { inbox, accepted } = await startedInbox()
  const real = authorise(listed('U1', 'U1'))
  if (real === undefined) throw new Error('U1 is on the list')
  // @ts-expect-error -- a platform that did not ask
  await expect(inbox.accept(order)).rejects.toThrow('unauthorised')
  // @ts-expect-error -- an answer that may be no
  await expect(inbox.accept(order, authorise(listed('U9', 'U1')))).rejects.toThrow('unauthorised')
  // @ts-expect-error -- something that only looks like a proof
  await expect(inbox.accept(order, { userId: 'U1' })).rejects.toThrow('unauthorised')
  await expect(inbox.accept(order, Object.assign({}, real))).rejects.toThrow('unauthorised')
  await expect(inbox.accept(order, Object.create(real) as Authorised)).rejects.toThrow('unauthorised')
  expect(accepted).toEqual([])
})

test('the author that is recorded is the one who was authorised', async () => {
  const { inbox, accepted } = await startedInbox()
  const by = authorise(listed('U1', 'U1'))
  if (by === undefined) throw new Error('U1 is on the list')
  await inbox.accept(order, by)
  expect(accepted).toEqual([{ ...order, platform: 'web', details: { userId: 'U1' } }])
})

test('a closed thread has no words, whatever is handed over with it', async () => {
  const { inbox, accepted } = await startedInbox()
  await inbox.close(order)
  expect(accepted).toEqual([{ ...order, platform: 'web', kind: 'closed', text: '' }])
})
