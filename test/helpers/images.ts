import { crc32, deflateSync } from 'node:zlib'

/* Complete images of one color. Only the PNG has real pixels; the others have the structure of a file that does. */

const u16be = (value: number): Buffer => Buffer.from([value >> 8, value & 0xff])
const u16le = (value: number): Buffer => Buffer.from([value & 0xff, value >> 8])
const u24le = (value: number): Buffer => Buffer.from([value & 0xff, (value >> 8) & 0xff, value >> 16])
const u32be = (value: number): Buffer => Buffer.concat([u16be(value >>> 16), u16be(value & 0xffff)])
const u32le = (value: number): Buffer => Buffer.concat([u16le(value & 0xffff), u16le(value >>> 16)])
const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex')

export const pngChunk = (type: string, data: Uint8Array): Buffer => {
  const content = Buffer.concat([Buffer.from(type, 'latin1'), data])
  return Buffer.concat([u32be(data.length), content, u32be(crc32(content))])
}

/** Gray, one bit per pixel. */
export const pngOf = (width: number, height: number): Buffer =>
  Buffer.concat([
    bytes('89504e470d0a1a0a'),
    pngChunk('IHDR', Buffer.concat([u32be(width), u32be(height), bytes('01 00 00 00 00')])),
    pngChunk('tEXt', Buffer.from('Comment\0made by a test')),
    pngChunk('IDAT', deflateSync(Buffer.alloc((1 + Math.ceil(width / 8)) * height))),
    pngChunk('IEND', Buffer.alloc(0)),
  ])

/** Has a thumbnail with an end of its own, an escaped ff, and a restart marker. */
export const jpegOf = (width: number, height: number): Buffer =>
  Buffer.concat([
    bytes('ffd8 ffe1 000a ffd8ffd9 00000000'),
    Buffer.concat([bytes('ffff ffc0 000b 08'), u16be(height), u16be(width), bytes('01 011100')]),
    bytes('ffda 0008 01 0100 003f00'),
    bytes('12ff0034 ffd0 56ff00'),
    bytes('ffd9'),
  ])

/** Has a color table, an extension, and one image. */
export const gifOf = (width: number, height: number): Buffer =>
  Buffer.concat([
    Buffer.from('GIF89a'),
    u16le(width),
    u16le(height),
    bytes('80 00 00 000000 ffffff'),
    bytes('21f9 04 00000000 00'),
    Buffer.concat([bytes('2c 00000000'), u16le(width), u16le(height), bytes('00')]),
    bytes('02 02 4401 00 3b'),
  ])

const webp = (...chunks: readonly Buffer[]): Buffer => {
  const content = Buffer.concat([Buffer.from('WEBP'), ...chunks])
  return Buffer.concat([Buffer.from('RIFF'), u32le(content.length), content])
}
const riffChunk = (type: string, data: Buffer): Buffer =>
  Buffer.concat([Buffer.from(type), u32le(data.length), data, Buffer.alloc(data.length % 2)])

const lossy = (width: number, height: number): Buffer =>
  riffChunk('VP8 ', Buffer.concat([bytes('300100 9d012a'), u16le(width), u16le(height), bytes('0034 25a4 00')]))

export const webpOf = (width: number, height: number): Buffer => webp(lossy(width, height))

export const losslessWebpOf = (width: number, height: number): Buffer =>
  webp(riffChunk('VP8L', Buffer.concat([bytes('2f'), u32le(width - 1 + ((height - 1) << 14)), bytes('071011')])))

/** With a color profile, as cameras and editors write it. */
export const extendedWebpOf = (width: number, height: number): Buffer =>
  webp(
    riffChunk('VP8X', Buffer.concat([bytes('20000000'), u24le(width - 1), u24le(height - 1)])),
    riffChunk('ICCP', bytes('000102')),
    lossy(width, height),
  )
