export type Lines = {
  readonly add: (text: string) => void
  /** Flushes a last line without a newline. */
  readonly end: () => void
}

/** A tool result with an image is one line of megabytes; beyond this, the program is broken. */
const MAX_LINE_LENGTH = 64 * 1024 * 1024

/** Splits chunks into lines. Drops a line that is too long, so it can't exhaust memory. */
export const createLines = (onLine: (line: string) => void, maxLength = MAX_LINE_LENGTH): Lines => {
  // Kept as pieces: concatenating every chunk of a long line would be quadratic.
  let pieces: string[] = []
  let size = 0
  const finish = (): void => {
    if (size > 0 && size <= maxLength) onLine(pieces.join(''))
    pieces = []
    size = 0
  }
  const append = (piece: string): void => {
    size += piece.length
    if (size <= maxLength) pieces.push(piece)
    else pieces = []
  }
  return {
    add: (text) => {
      let from = 0
      for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', from)) {
        append(text.slice(from, at))
        finish()
        from = at + 1
      }
      if (from < text.length) append(text.slice(from))
    },
    end: finish,
  }
}
