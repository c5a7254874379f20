import { AppError } from '../domain/errors.ts'
import { maxConfigEntries, maxConfigListBytes } from './file-limits.ts'

export type ConfigOutput = { readonly take: (chunk: Buffer) => void; readonly text: () => string }

/**
 * What `git config --list` prints, up to a limit: git repeats a section's name with each of its keys, so that a file of
 * 4 MB can become terabytes.
 */
export const createConfigOutput = (commonDir: string | undefined): ConfigOutput => {
  const chunks: Buffer[] = []
  let bytes = 0
  let fields = 0
  return {
    take: (chunk) => {
      chunks.push(chunk)
      bytes += chunk.length
      for (let at = chunk.indexOf(0); at >= 0; at = chunk.indexOf(0, at + 1)) fields += 1
      if (bytes > maxConfigListBytes || fields > maxConfigEntries * fieldsPerEntry) throw tooMuch(commonDir)
    },
    text: () => Buffer.concat(chunks).toString('utf8'),
  }
}

/** Scope, origin and key with value. */
const fieldsPerEntry = 3

const tooMuch = (commonDir: string | undefined): AppError =>
  new AppError(
    'unusable-file',
    `git's configuration${commonDir === undefined ? '' : ` in ${commonDir}`} has too many settings (limit: ${maxConfigEntries})`,
    { remedy: 'remove the sections that do not belong in the file `config`, and try again' },
  )
