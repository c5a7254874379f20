/**
 * File names are bytes, and git hands them out as such. A raw path is those bytes as a latin1 string, so that no byte is
 * lost: a name that is not UTF-8 must never be taken for a file that is not there.
 */
export const rawBytes = (raw: string): Buffer => Buffer.from(raw, 'latin1')
export const toRaw = (bytes: Buffer): string => bytes.toString('latin1')
/** For people. */
export const shownPath = (raw: string): string => rawBytes(raw).toString('utf8')
/** An absolute path in bytes: a directory we know, and a raw path below it. */
export const bytesBelow = (directory: string, raw: string): Buffer =>
  Buffer.concat([Buffer.from(`${directory}/`), rawBytes(raw)])
