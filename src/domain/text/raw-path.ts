/**
 * File names are bytes, and git prints them as such. A raw path is those bytes as a latin1 string, so no byte is lost:
 * a name that isn't UTF-8 must never look like a missing file.
 */
export const rawBytes = (raw: string): Buffer => Buffer.from(raw, 'latin1')
export const toRaw = (bytes: Buffer): string => bytes.toString('latin1')
/** For display. */
export const shownPath = (raw: string): string => rawBytes(raw).toString('utf8')
/** An absolute path in bytes: a known directory and a raw path below it. */
export const bytesBelow = (directory: string, raw: string): Buffer =>
  Buffer.concat([Buffer.from(`${directory}/`), rawBytes(raw)])
