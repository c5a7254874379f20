import { once } from 'node:events'
import { createServer } from 'node:http'
import type { OutgoingMessage } from '../../src/conversations/outbox/delivery.ts'
import type { DoubleAddress } from './messages-workplace.ts'

/** A platform outside of the server that is killed: what it was sent, it keeps. */
export type Double = DoubleAddress & {
  /** What its users see, in order. */
  readonly shown: readonly OutgoingMessage[]
  /** How often something came that it had already. */
  readonly doubled: () => number
  [Symbol.asyncDispose](): Promise<void>
}

/** `tells`: it knows a message by its id and shows it once; the other kind shows whatever it is sent. */
export const startDouble = async (kind: 'tells' | 'cannot-tell', limit = 150): Promise<Double> => {
  const shown: OutgoingMessage[] = []
  const known = new Set<string>()
  let doubled = 0
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const message = JSON.parse(Buffer.concat(chunks).toString()) as OutgoingMessage
      const again = known.has(message.id)
      if (again) doubled += 1
      known.add(message.id)
      if (!again || kind === 'cannot-tell') shown.push(message)
      response.end('{}')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the double does not listen')
  return {
    url: `http://127.0.0.1:${address.port}`,
    limit,
    shown,
    doubled: () => doubled,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
