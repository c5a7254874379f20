import { cpuTimeOf } from '../../../../test/helpers/cpu-time.ts'
import { describe, expect, test } from 'vitest'
import {
  extendedWebpOf,
  gifOf,
  jpegOf,
  losslessWebpOf,
  pngChunk,
  pngOf,
  webpOf,
} from '../../../../test/helpers/images.ts'
import { imageSize } from './image-size.ts'

const kinds = [
  ['PNG', 'image/png', pngOf],
  ['JPEG', 'image/jpeg', jpegOf],
  ['GIF', 'image/gif', gifOf],
  ['WebP', 'image/webp', webpOf],
  ['lossless WebP', 'image/webp', losslessWebpOf],
  ['extended WebP', 'image/webp', extendedWebpOf],
] as const

describe.each(kinds)('a %s', (name, mediaType, make) => {
  test('has the size that its header says', () => {
    expect(imageSize(make(640, 480), mediaType)).toEqual({ width: 640, height: 480 })
    expect(imageSize(make(1, 8_001), mediaType)).toEqual({ width: 1, height: 8_001 })
  })

  test('is no image if it was cut off anywhere', () => {
    const whole = make(640, 480)
    // A GIF without its trailer is complete, and common.
    const needed = name === 'GIF' ? whole.length - 1 : whole.length
    for (let length = 0; length < needed; length++) {
      expect(imageSize(whole.subarray(0, length), mediaType), `${length} of ${whole.length} bytes`).toBeUndefined()
    }
  })

  test('may be followed by anything', () => {
    const size = { width: 3, height: 2 }
    expect(imageSize(Buffer.concat([make(3, 2), Buffer.from('a film')]), mediaType)).toEqual(size)
  })
})

// A WebP stores a size that is less by one.
test.each(kinds.slice(0, 3))('a %s without pixels is no image', (_name, mediaType, make) => {
  expect(imageSize(make(0, 480), mediaType)).toBeUndefined()
  expect(imageSize(make(640, 0), mediaType)).toBeUndefined()
})

test('a PNG with a changed byte in a needed part is damaged', () => {
  const whole = pngOf(16, 16)
  const comment = whole.indexOf('tEXt')
  for (let at = 8; at < whole.length; at++) {
    const changed = Buffer.from(whole)
    changed[at] = (changed[at] ?? 0) ^ 1
    // Programs don't need the comment, so its checksum doesn't count; its length and name lead to the next part.
    if (at >= comment && at < whole.indexOf('IDAT') - 4) continue
    expect(imageSize(changed, 'image/png'), `byte ${at}`).toBeUndefined()
  }
})

test.each([
  ['a PNG that only has a header and an end', 'image/png', () => withoutChunk(pngOf(8, 8), 'IDAT')],
  ['a PNG in colors that do not exist', 'image/png', () => Buffer.concat([signature, header('08 05'), pixels])],
  ['a JPEG whose frame no browser shows', 'image/jpeg', () => replaced(jpegOf(8, 8), 'ffc0', 'ffc3')],
  ['a JPEG with a frame and no scan', 'image/jpeg', () => replaced(jpegOf(8, 8), /ffda.*/, 'ffd9')],
  ['a JPEG with two frames', 'image/jpeg', () => replaced(jpegOf(8, 8), 'ffda', `${frame}ffda`)],
  ['a JPEG with a scan and no frame', 'image/jpeg', () => replaced(jpegOf(8, 8), 'ffc0', 'ffc4')],
  ['a GIF without an image', 'image/gif', () => Buffer.concat([gifOf(8, 8).subarray(0, 27), Buffer.from(';')])],
  ['a WebP without pixels', 'image/webp', () => replaced(extendedWebpOf(8, 8), '56503820', '45584946')],
  ['a WebP that begins within a film', 'image/webp', () => replaced(webpOf(8, 8), '300100', '310100')],
  ['text that begins like a GIF', 'image/gif', () => Buffer.from('GIF89a is a format with many blocks; see below.')],
])('%s is no image', (_what, mediaType, make) => {
  expect(imageSize(make(), mediaType)).toBeUndefined()
})

const replaced = (image: Buffer, from: string | RegExp, to: string): Buffer =>
  Buffer.from(image.toString('hex').replace(from, to), 'hex')
const signature = pngOf(8, 8).subarray(0, 8)
const header = (kind: string): Buffer =>
  pngChunk('IHDR', Buffer.from(`0000000800000008${kind.replaceAll(' ', '')}000000`, 'hex'))
const pixels = pngOf(8, 8).subarray(pngOf(8, 8).indexOf('IDAT') - 4)
const frame = 'ffc0000b080008000801011100'
const withoutChunk = (png: Buffer, type: string): Buffer => {
  const at = png.indexOf(type) - 4
  return Buffer.concat([png.subarray(0, at), png.subarray(at + 12 + png.readUInt32BE(at))])
}

test('20 MB made to take long takes a few seconds at most', () => {
  const size = 20 * 1024 * 1024
  const begin = (image: Buffer, bytes: number): Buffer => image.subarray(0, bytes)
  const filled = (start: Buffer, pattern: string): Buffer =>
    Buffer.concat([start, Buffer.alloc(size - start.length, Buffer.from(pattern, 'hex'))])
  const emptyChunk = pngChunk('aaAa', Buffer.alloc(0)).toString('hex')
  const hostile = [
    ['image/png', filled(begin(pngOf(8, 8), 33), emptyChunk)],
    ['image/jpeg', filled(begin(jpegOf(8, 8), jpegOf(8, 8).indexOf('ffda', 0, 'hex') + 10), 'ff00')],
    ['image/jpeg', filled(begin(jpegOf(8, 8), 12), 'ffe00002')],
    ['image/jpeg', filled(begin(jpegOf(8, 8), 2), 'ff')],
    ['image/gif', filled(begin(gifOf(8, 8), 27), '21f90100')],
    ['image/gif', filled(begin(gifOf(8, 8), 39), '0101')],
    ['image/webp', filled(Buffer.from('RIFF\u0000\u0000\u0000\u0001WEBP', 'latin1'), '4558494600000000')],
  ] as const
  const cpuMs = cpuTimeOf(() => {
    for (const [mediaType, content] of hostile) expect(imageSize(content, mediaType)).toBeUndefined()
  })
  expect(cpuMs).toBeLessThan(5_000)
})
