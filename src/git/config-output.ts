import { AppError } from '../domain/errors.ts'
import { maxConfigEntries, maxConfigListBytes } from './file-limits.ts'

export type ConfigOutput = { readonly take: (chunk: Buffer) => void; readonly text: () => string }

/**
 * Collects the output of `git config --list` up to a limit: git repeats a section's name for each of its keys, so a 4
 * MB file can become terabytes.
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
    { remedy: 'remove the sections that do not belong in the file `config` and try again' },
  )
