import { hasCode } from './error-code.ts'

/**
 * File system errors that mean "not found". Any other error means "unknown" and is rethrown.
 * Don't use it for listing a directory if a file in its place matters: that is ENOTDIR too.
 */
export const isMissing = (error: unknown): boolean => hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')

/** The result of `read`, or undefined when the file is missing. */
export const unlessMissing = async <T>(read: Promise<T>): Promise<T | undefined> => {
  try {
    return await read
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

export const unlessMissingSync = <T>(read: () => T): T | undefined => {
  try {
    return read()
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}
