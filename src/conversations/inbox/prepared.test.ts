import { expect, test } from 'vitest'
import type { InboxMessage } from '../../store/store.ts'
import type { Delivery } from '../outbox/delivery.ts'
import { prepared } from './prepared.ts'

const message = { platform: 'forge', conversationId: 'c', text: 'go', details: { userId: '5' } } as InboxMessage
const asking = (prepare?: Delivery['prepare']) => {
  const delivery = { platform: 'forge', limit: undefined, send: async () => undefined }
  return {
    deliveries: new Map<string, Delivery>([['forge', prepare === undefined ? delivery : { ...delivery, prepare }]]),
  }
}

test('a platform that has nothing to ask leaves the message as it is', async () => {
  expect(await prepared(asking(), message, new AbortController().signal)).toBe(message)
})

test('what the platform finds out is the message’s', async () => {
  const context = asking(async ({ details }) => ({ ...details, context: 'earlier' }))
  const { details } = await prepared(context, message, new AbortController().signal)
  expect(details).toEqual({ userId: '5', context: 'earlier' })
})

test('a platform that does not answer is not waited for when the run is broken off', async () => {
  const stop = new AbortController()
  const never = Promise.withResolvers<never>()
  const asked = prepared(
    asking(() => never.promise),
    message,
    stop.signal,
  )
  stop.abort('stop')
  await expect(asked).rejects.toThrow('broken off')
  never.reject(new Error('too late'))
})

test('a run that was broken off before asks nothing', async () => {
  let asked = 0
  const context = asking(async () => {
    asked += 1
    throw new Error('nobody hears this')
  })
  await expect(prepared(context, message, AbortSignal.abort('stop'))).rejects.toBe('stop')
  expect(asked).toBe(0)
})
