import type { ImageSize } from './size.ts'

/** A JPEG is a list of segments, from SOI to EOI; behind each SOS is the data of one scan. */
export const jpegSize = (jpeg: Buffer): ImageSize | undefined => {
  let size: ImageSize | undefined
  let hasScan = false
  for (let at = 2; ;) {
    const marker = jpeg.readUInt8(at + 1)
    if (jpeg.readUInt8(at) !== 0xff || marker === 0) return undefined
    if (marker === FILL) at = endOfFill(jpeg, at)
    else if (marker === END) return hasScan ? size : undefined
    else if (isAlone(marker)) at += 2
    else {
      const length = jpeg.readUInt16BE(at + 2)
      if (length < 2) return undefined
      if (isFrame(marker)) {
        if (!commonFrames.has(marker) || size !== undefined) return undefined
        size = { height: jpeg.readUInt16BE(at + 5), width: jpeg.readUInt16BE(at + 7) }
      }
      at += 2 + length
      if (marker !== SCAN) continue
      hasScan = true
      at = endOfScan(jpeg, at)
    }
  }
}

const FILL = 0xff
const SCAN = 0xda
const END = 0xd9

/** RST0 to RST7, and TEM. */
const isAlone = (marker: number): boolean => (marker >= 0xd0 && marker <= 0xd7) || marker === 0x01

/** SOF0 to SOF15 without DHT, JPG and DAC, which are in between. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

/** Baseline, extended and progressive. Browsers show no others. */
const commonFrames: ReadonlySet<number> = new Set([0xc0, 0xc1, 0xc2])

/** Any number of them may be before a marker, whose own ff is the last. */
const endOfFill = (jpeg: Buffer, from: number): number => {
  let at = from
  while (jpeg[at + 1] === FILL) at += 1
  return at
}

/** In the data, `ff 00` is an ff, and RST markers come between its parts. A loop: half of the bytes may be ff. */
const endOfScan = (jpeg: Buffer, from: number): number => {
  for (let at = from; at + 1 < jpeg.length; at++) {
    if (jpeg[at] !== 0xff) continue
    const next = jpeg[at + 1] ?? 0
    if (next !== 0 && next !== 0xff && !isAlone(next)) return at
  }
  throw new RangeError('the scan has no end')
}
