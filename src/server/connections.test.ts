import { once } from 'node:events'
import { createServer, IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { createConnections, maxUnanswered } from './connections.ts'

const request = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'

test.each([
  ['requests', request],
  ['requests with an empty body', 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n'],
  ['requests that Node refuses by itself', 'GET / HTTP/1.1\r\nhost: x\r\nexpect: x\r\n\r\n'],
  ['requests without a host', 'GET / HTTP/1.1\r\n\r\n'],
])('of thousands of %s sent at once, no more are read than may be unanswered', async (_what, text) => {
  const connections = createConnections(10)
  const seen = { read: 0, answered: 0 }
  const server = createServer(
    { ...connections.options, IncomingMessage: counting(connections.options.IncomingMessage, seen) },
    connections.inTurn((_request, response) => {
      seen.answered += 1
      response.end()
    }),
  )
  connections.guard(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.resume()
  socket.write(text.repeat(20_000))
  await new Promise((done) => socket.once('close', done))
  server.close()
  expect(seen.read).toBe(maxUnanswered + 1)
  expect(seen.answered).toBeLessThanOrEqual(1)
})

const counting = (Base: typeof IncomingMessage = IncomingMessage, seen: { read: number }): typeof IncomingMessage =>
  class extends Base {
    constructor(socket: Socket) {
      super(socket)
      seen.read += 1
    }
  }

test('as many as may be unanswered are all answered, also with a wish for another protocol', async () => {
  const connections = createConnections(10)
  const server = createServer(
    connections.options,
    connections.inTurn((_request, response) => response.end('answer')),
  )
  connections.guard(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  let text = ''
  socket.on('data', (chunk) => (text += chunk.toString()))
  const upgrade = 'GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n'
  socket.write(request.repeat(maxUnanswered - 1) + upgrade)
  await expect.poll(() => text.split('answer').length - 1).toBe(maxUnanswered)
  socket.destroy()
  server.close()
})
