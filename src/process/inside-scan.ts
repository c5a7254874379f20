/** `cwd`: works there. `root`: chrooted there. `exe`: its program lies there. `file`: has a file there open or mapped. */
export type HowInside = 'cwd' | 'root' | 'exe' | 'file'

/** What one process touches. `links` may yield more than needed; the caller stops when it has seen enough. */
export type Scan = {
  readonly pid: number
  readonly command: () => string
  readonly links: Iterable<readonly [HowInside, string]>
}

export type ScanOptions = {
  readonly skip: (pid: number) => boolean
  readonly mappings: boolean
  /** How the real paths of all directories asked for begin, to look through long lists cheaply */
  readonly within: string
  readonly unreadable: (process: UnreadableProcess) => void
}

export type ProcessInside = {
  readonly dir: string
  readonly pid: number
  readonly command: string
  readonly how: HowInside
}

export type UnreadableProcess = { readonly pid: number; readonly command: string }
