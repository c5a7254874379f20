/*
 * Images, as far as their structure tells. In: a file's bytes and its type. Out: its size in pixels, if the file is
 * complete. Models reject an image that isn't, and with it every later request of a session that contains it. The
 * pixels themselves aren't decoded.
 */
import { gifSize } from './gif.ts'
import { jpegSize } from './jpeg.ts'
import { pngSize } from './png.ts'
import type { ImageSize } from './size.ts'
import { webpSize } from './webp.ts'

/** Undefined if the image is damaged, cut off, or of a variant that hardly any program reads. */
export const imageSize = (content: Uint8Array, mediaType: string): ImageSize | undefined => {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
  try {
    const size = readers[mediaType]?.(bytes)
    return size !== undefined && size.width > 0 && size.height > 0 ? size : undefined
  } catch (error) {
    // Something would be behind the end of the file.
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** They may throw a RangeError for a file that is cut off, and take time proportional to its length. */
const readers: Readonly<Record<string, (bytes: Buffer) => ImageSize | undefined>> = {
  'image/png': pngSize,
  'image/jpeg': jpegSize,
  'image/gif': gifSize,
  'image/webp': webpSize,
}
