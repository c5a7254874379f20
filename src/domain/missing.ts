import { hasCode } from './error-code.ts'

/**
 * The answers of the file system that mean "not there". Every other error means "cannot tell" and is thrown on.
 * Not where a directory is listed and a file in its place would matter: that says ENOTDIR, too.
 */
export const isMissing = (error: unknown): boolean => hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')

/** What `read` gives, or undefined when the file is not there. */
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
