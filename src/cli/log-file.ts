import { appendFileSync, renameSync, statSync } from 'node:fs'

/** Old lines are kept once over: the file and its predecessor stay under 10 MB together. */
const most = 5 * 1024 * 1024

/** Appends lines to a private file; nothing is made or opened before the first line. */
export const appendToLog =
  (path: string) =>
  (line: string): void => {
    if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > most) renameSync(path, `${path}.1`)
    appendFileSync(path, line, { mode: 0o600 })
  }
