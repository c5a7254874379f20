import type { ImageSize } from './size.ts'

/** A WebP is a RIFF file: a list of chunks, the first of which has the size. */
export const webpSize = (webp: Buffer): ImageSize | undefined => {
  const end = 8 + webp.readUInt32LE(4)
  if (end > webp.length) return undefined
  let size: ImageSize | undefined
  let hasPixels = false
  let at = 12
  while (at < end) {
    const type = webp.toString('latin1', at, at + 4)
    const length = webp.readUInt32LE(at + 4)
    if (at + 8 + length > end) return undefined
    if (at === 12) size = firstChunk[type]?.(webp.subarray(at + 8, at + 8 + length))
    hasPixels ||= type === 'VP8 ' || type === 'VP8L' || type === 'ANMF'
    // Padded to an even length.
    at += 8 + length + (length % 2)
  }
  return hasPixels ? size : undefined
}

const firstChunk: Readonly<Record<string, (data: Buffer) => ImageSize | undefined>> = {
  'VP8 ': (data) => {
    const isKeyFrame = (data.readUInt8(0) & 1) === 0 && data.readUIntBE(3, 3) === 0x9d012a
    return isKeyFrame ? { width: data.readUInt16LE(6) & 0x3fff, height: data.readUInt16LE(8) & 0x3fff } : undefined
  },
  VP8L: (data) => {
    if (data.readUInt8(0) !== 0x2f) return undefined
    const bits = data.readUInt32LE(1)
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
  },
  VP8X: (data) => ({ width: data.readUIntLE(4, 3) + 1, height: data.readUIntLE(7, 3) + 1 }),
}
