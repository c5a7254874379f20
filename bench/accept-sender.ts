/**
 * The client process of `accept`: sends messages over persistent connections, one in flight on each. Uses plain
 * sockets: an HTTP client would cost as much as the server and distort the result.
 */
import { connect, type Socket } from 'node:net'

export type SendRequest = {
  readonly port: number
  readonly token: string
  readonly connections: number
  readonly conversations: number
  /** Messages per conversation, each sent once the previous one is accepted. */
  readonly each: number
  /** Unique per round: a known delivery wouldn't be written. */
  readonly round: string
}

export type SendResult = { readonly accepted: number; readonly refused: readonly string[]; readonly ms: number }

process.on('message', (request) => {
  void send(request as SendRequest).then((answer) => process.send?.(answer))
})
process.send?.('ready')

async function send(request: SendRequest): Promise<SendResult> {
  const { port, connections, conversations, each } = request
  const sockets = await Promise.all(Array.from({ length: connections }, () => openSocket(port)))
  const answers: string[] = []
  const began = performance.now()
  await Promise.all(
    sockets.map(async (socket, first) => {
      for (let n = 1; n <= each; n += 1) {
        for (let conversation = first; conversation < conversations; conversation += connections) {
          answers.push(await exchange(socket, requestText(request, conversation, n)))
        }
      }
    }),
  )
  const ms = performance.now() - began
  for (const socket of sockets) socket.destroy()
  const isAccepted = (answer: string): boolean =>
    answer.startsWith('HTTP/1.1 202') && answer.includes('"outcome":"accepted"')
  const refused = answers.filter((answer) => !isAccepted(answer))
  return { accepted: answers.length - refused.length, refused: refused.slice(0, 3), ms }
}

const padding = 'the login form forgets what was typed when the password is wrong; keep the name, clear the rest. '

function requestText({ port, token, round }: SendRequest, conversation: number, n: number): string {
  const body = JSON.stringify({ message: `c${conversation} m${n} ${padding}`, deliveryId: `${round}-${n}` })
  return [
    `POST /api/conversations/c${conversation}/messages HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n')
}

function openSocket(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => resolve(socket))
    socket.once('error', reject)
  })
}

function exchange(socket: Socket, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const onData = (chunk: Buffer): void => {
      answer += chunk.toString('latin1')
      if (!isComplete(answer)) return
      socket.off('data', onData)
      socket.off('close', onClose)
      resolve(answer)
    }
    const onClose = (): void => reject(new Error(`the connection closed: ${answer}`))
    socket.on('data', onData)
    socket.once('close', onClose)
    socket.write(text)
  })
}

function isComplete(answer: string): boolean {
  const head = answer.indexOf('\r\n\r\n')
  if (head < 0) return false
  const length = /^content-length: (\d+)/im.exec(answer)?.[1]
  return length === undefined ? answer.endsWith('0\r\n\r\n') : answer.length >= head + 4 + Number(length)
}
