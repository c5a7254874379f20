import { createHash } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'

/** One end of a WebSocket, as far as a service on loopback needs it: text frames, pings, closing. */
export type WebSocketPeer = {
  readonly request: IncomingMessage
  readonly isOpen: boolean
  send(text: string): void
  ping(): void
  close(code: number, reason?: string): void
  /** Without a goodbye: a cable that was pulled. */
  drop(): void
  onMessage: (text: string) => void
  onClose: (code: number) => void
}

/** Answers the upgrades of an HTTP server (RFC 6455). */
export const acceptWebSockets = (server: Server, onPeer: (peer: WebSocketPeer) => void): void => {
  server.on('upgrade', (request, socket: Duplex, head: Buffer) => {
    const key = request.headers['sec-websocket-key']
    if (typeof key !== 'string') {
      socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')
      return
    }
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    )
    onPeer(peerOver(request, socket, head))
  })
}

const opcodes = { continuation: 0, text: 1, close: 8, ping: 9, pong: 10 } as const

const peerOver = (request: IncomingMessage, socket: Duplex, head: Buffer): WebSocketPeer => {
  let buffered = head
  let parts: Buffer[] = []
  let closing = false
  let ended = false
  const end = (code: number): void => {
    if (ended) return
    ended = true
    peer.onClose(code)
  }
  const write = (opcode: number, payload: Buffer): void => {
    if (socket.writable) socket.write(frame(opcode, payload))
  }
  const sayGoodbye = (code: number, reason = ''): void => {
    if (closing) return
    closing = true
    const payload = Buffer.alloc(2 + Buffer.byteLength(reason))
    payload.writeUInt16BE(code)
    payload.write(reason, 2)
    write(opcodes.close, payload)
  }
  const read = ({ opcode, fin, payload }: Frame): void => {
    switch (opcode) {
      case opcodes.ping:
        return write(opcodes.pong, payload)
      case opcodes.close: {
        const code = payload.length >= 2 ? payload.readUInt16BE() : 1005
        sayGoodbye(code === 1005 ? 1000 : code)
        socket.end()
        return end(code)
      }
      case opcodes.text:
      case opcodes.continuation:
        parts.push(payload)
        if (!fin) return undefined
        peer.onMessage(Buffer.concat(parts).toString('utf8'))
        parts = []
        return undefined
      default:
        return undefined
    }
  }
  const peer: WebSocketPeer = {
    request,
    get isOpen() {
      return !closing && !ended
    },
    send: (text) => write(opcodes.text, Buffer.from(text)),
    ping: () => write(opcodes.ping, Buffer.alloc(0)),
    close: sayGoodbye,
    drop: () => socket.destroy(),
    onMessage: () => undefined,
    onClose: () => undefined,
  }
  const readAll = (): void => {
    for (let next = frameOf(buffered); next !== undefined; next = frameOf(buffered)) {
      buffered = buffered.subarray(next.length)
      read(next)
    }
  }
  socket.on('data', (chunk: Buffer) => {
    buffered = Buffer.concat([buffered, chunk])
    readAll()
  })
  socket.on('error', () => undefined)
  socket.on('close', () => end(1006))
  // What came with the upgrade itself, once somebody listens.
  queueMicrotask(readAll)
  return peer
}

const frame = (opcode: number, payload: Buffer): Buffer => {
  const { length } = payload
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10)
  head[0] = 0x80 | opcode
  head[1] = length < 126 ? length : length < 65_536 ? 126 : 127
  if (length >= 65_536) head.writeBigUInt64BE(BigInt(length), 2)
  else if (length >= 126) head.writeUInt16BE(length, 2)
  return Buffer.concat([head, payload])
}

type Frame = { readonly opcode: number; readonly fin: boolean; readonly payload: Buffer; readonly length: number }

/** A client's frames are masked. Undefined: there is not all of it yet. */
const frameOf = (bytes: Buffer): Frame | undefined => {
  const [first, second] = bytes
  if (first === undefined || second === undefined) return undefined
  const short = second & 0x7f
  const start = short < 126 ? 2 : short === 126 ? 4 : 10
  const masked = (second & 0x80) !== 0
  if (bytes.length < start + (masked ? 4 : 0)) return undefined
  const size = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
  const from = start + (masked ? 4 : 0)
  if (bytes.length < from + size) return undefined
  const payload = Buffer.from(bytes.subarray(from, from + size))
  if (masked) {
    const mask = bytes.subarray(start, from)
    for (let at = 0; at < size; at++) payload[at] = (payload[at] ?? 0) ^ (mask[at % 4] ?? 0)
  }
  return { opcode: first & 0x0f, fin: (first & 0x80) !== 0, payload, length: from + size }
}
