export type Progress = { readonly phase: string; readonly percent: number }

/** `Receiving objects:  42% (42/100), 1.2 MiB | …`, separated by carriage returns. */
export const progressReader = (report: (progress: Progress) => void): ((chunk: string) => void) => {
  let rest = ''
  return (chunk) => {
    const lines = (rest + chunk).split(/[\r\n]/)
    // No progress line is longer. A remote that never ends its line can't fill the memory.
    rest = (lines.pop() ?? '').slice(-1_000)
    for (const line of lines) {
      const match = /^(?:remote: )?([A-Z][a-z ]+):\s+(\d{1,3})%/.exec(line)
      if (match) report({ phase: match[1] ?? '', percent: Number(match[2]) })
    }
  }
}
