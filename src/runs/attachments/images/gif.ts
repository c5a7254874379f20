import type { ImageSize } from './size.ts'

/** A GIF is a list of blocks behind its header: images and extensions, then a trailer. */
export const gifSize = (gif: Buffer): ImageSize | undefined => {
  if (!/^GIF8[79]a$/.test(gif.toString('latin1', 0, 6))) return undefined
  const size = { width: gif.readUInt16LE(6), height: gif.readUInt16LE(8) }
  let at = 13 + colorTable(gif.readUInt8(10))
  let hasImage = false
  // Some programs leave out the trailer.
  while (at < gif.length || !hasImage) {
    switch (gif.readUInt8(at)) {
      case IMAGE:
        // Descriptor, color table, the code size of its compression.
        at = endOfData(gif, at + 10 + colorTable(gif.readUInt8(at + 9)) + 1)
        hasImage = true
        break
      case EXTENSION:
        at = endOfData(gif, at + 2)
        break
      case TRAILER:
        return hasImage ? size : undefined
      default:
        return undefined
    }
  }
  return size
}

const IMAGE = 0x2c
const EXTENSION = 0x21
const TRAILER = 0x3b

const colorTable = (flags: number): number => ((flags & 0x80) === 0 ? 0 : 3 << ((flags & 7) + 1))

/** Data comes in pieces, each behind its length; an empty one ends it. */
const endOfData = (gif: Buffer, from: number): number => {
  let at = from
  for (let length = gif.readUInt8(at); length > 0; length = gif.readUInt8(at)) at += 1 + length
  return at + 1
}
