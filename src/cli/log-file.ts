import { closeSync, renameSync, statSync, writeSync } from 'node:fs'
import { openLogSync } from '../process/files/replace-file.ts'

/** Rotated once: the file and its predecessor stay under 10 MB together. */
const most = 5 * 1024 * 1024

/** Appends lines to a private file, which is created with the first line. */
export const appendToLog =
  (path: string) =>
  (line: string): void => {
    if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > most) renameSync(path, `${path}.1`)
    const file = openLogSync(path)
    try {
      writeSync(file, line)
    } finally {
      closeSync(file)
    }
  }
