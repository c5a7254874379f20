import { crc32 } from 'node:zlib'
import type { ImageSize } from './size.ts'

/** A PNG is a list of chunks, from IHDR to IEND, each with a checksum. */
export const pngSize = (png: Buffer): ImageSize | undefined => {
  if (png.readUInt32BE(8) !== 13 || typeAt(png, 8) !== 'IHDR') return undefined
  const [depth = 0, color = 0, compression, filter, interlace = 0] = png.subarray(24, 29)
  const isKnown = depths.get(color)?.includes(depth) === true && compression === 0 && filter === 0 && interlace < 2
  if (!isKnown) return undefined
  let at = 8
  let hasPixels = false
  for (;;) {
    const length = png.readUInt32BE(at)
    const type = typeAt(png, at)
    const end = at + 8 + length
    const sum = png.readUInt32BE(end)
    // Programs ignore the checksum of what they don't need, which has a lower-case name.
    if (/^[A-Z]/.test(type) && crc32(png.subarray(at + 4, end)) !== sum) return undefined
    hasPixels ||= type === 'IDAT' && length > 0
    if (type === 'IEND') return hasPixels ? { width: png.readUInt32BE(16), height: png.readUInt32BE(20) } : undefined
    at = end + 4
  }
}

const typeAt = (png: Buffer, at: number): string => png.toString('latin1', at + 4, at + 8)

/** Bits per channel that each type of color may have. */
const depths: ReadonlyMap<number, readonly number[]> = new Map([
  [0, [1, 2, 4, 8, 16]],
  [2, [8, 16]],
  [3, [1, 2, 4, 8]],
  [4, [8, 16]],
  [6, [8, 16]],
])
