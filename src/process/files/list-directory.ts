import { type Dirent, opendirSync, readdirSync, statSync } from 'node:fs'
import { AppError } from '../../domain/errors.ts'
import { createTimeSlice, type TimeSlice } from '../time-slice.ts'

export type ListOptions = {
  /** Size of the directory in bytes, if the caller just read it. */
  readonly size?: number
  /** Shared with the rest of the caller's work. */
  readonly slice?: TimeSlice
  /** Throws if the directory has more entries than this. */
  readonly maxEntries?: number
}

/**
 * Lists a directory that an agent can fill; names are raw (see domain/text/raw-path.ts). Large ones are read in pieces:
 * listing a million names at once would block for seconds.
 */
export const listDirectory = async (path: Buffer, options: ListOptions = {}): Promise<Dirent[]> => {
  const { size = statSync(path).size, slice = createTimeSlice(), maxEntries = Infinity } = options
  const pieces = listInPieces(path, size)
  try {
    for (let piece = pieces.next(); ; piece = pieces.next()) {
      if (piece.value.length > maxEntries) throw tooManyEntries(path, maxEntries)
      if (piece.done === true) return piece.value
      if (slice.isOver()) await slice.next()
    }
  } finally {
    // Closes the directory if it wasn't read to the end.
    pieces.return([])
  }
}

/** About 1,000 names. For small directories, reading in pieces takes twice as long as listing at once. */
const largeDirectoryBytes = 32 * 1024
const entriesPerPiece = 256

/** Yields the entries so far after each piece, then returns all of them. */
export function* listInPieces(path: Buffer, size: number): Generator<Dirent[], Dirent[]> {
  if (size <= largeDirectoryBytes) return readdirSync(path, { withFileTypes: true, encoding: 'latin1' })
  const entries: Dirent[] = []
  using directory = opendirSync(path, { encoding: 'latin1', bufferSize: entriesPerPiece })
  for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
    entries.push(entry)
    if (entries.length % entriesPerPiece === 0) yield entries
  }
  return entries
}

const tooManyEntries = (path: Buffer, maxEntries: number): AppError =>
  new AppError('unusable-file', `${path.toString()} has more than ${maxEntries} entries`, {
    remedy: "find out what creates them, remove those that don't belong there, and try again",
  })
