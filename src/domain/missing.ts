/** The one answer of the file system that means "not there". Every other error means "cannot tell" and is thrown on. */
export const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')

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
