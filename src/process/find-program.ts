import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'

/** Finds a program as a shell would; undefined if it is missing or not executable. */
export const findProgram = (name: string, path: string | undefined): string | undefined => {
  if (name.includes('/')) return isAbsolute(name) && isProgram(name) ? name : undefined
  for (const directory of (path ?? '').split(delimiter)) {
    // Empty means the current directory, which is an environment: nothing in it is the user's program.
    if (isAbsolute(directory) && isProgram(join(directory, name))) return join(directory, name)
  }
  return undefined
}

const isProgram = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}
