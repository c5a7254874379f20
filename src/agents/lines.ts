export type Lines = {
  readonly add: (text: string) => void
  /** The last line may come without its end. */
  readonly end: () => void
}

/** A tool's result with a picture in it is one line of megabytes; beyond this it is a program gone wrong. */
const LONGEST_LINE = 64 * 1024 * 1024

/** Cuts what comes in pieces into lines. A line that is too long is left out, so that it cannot fill the memory. */
export const createLines = (onLine: (line: string) => void, longest = LONGEST_LINE): Lines => {
  // In pieces: joining them anew for every chunk of a long line would take quadratic time.
  let pieces: string[] = []
  let size = 0
  const finish = (): void => {
    if (size > 0 && size <= longest) onLine(pieces.join(''))
    pieces = []
    size = 0
  }
  const grow = (piece: string): void => {
    size += piece.length
    if (size <= longest) pieces.push(piece)
    else pieces = []
  }
  return {
    add: (text) => {
      let from = 0
      for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', from)) {
        grow(text.slice(from, at))
        finish()
        from = at + 1
      }
      if (from < text.length) grow(text.slice(from))
    },
    end: finish,
  }
}
