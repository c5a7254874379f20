/**
 * `cwd`: works there. `root`: chrooted there. `exe`: its executable is there. `file`: a file there is open or mapped.
 */
export type HowInside = 'cwd' | 'root' | 'exe' | 'file'

/** What one process uses. `links` is lazy; the caller stops when it has enough. */
export type Scan = {
  readonly pid: number
  readonly command: () => string
  readonly links: Iterable<readonly [HowInside, string]>
}

export type ScanOptions = {
  readonly skip: (pid: number) => boolean
  readonly mappings: boolean
  /** Common prefix of the real paths of all directories, to filter long lists cheaply */
  readonly prefix: string
  readonly unreadable: (process: UnreadableProcess) => void
}

export type ProcessInside = {
  readonly dir: string
  readonly pid: number
  readonly command: string
  readonly how: HowInside
}

export type UnreadableProcess = { readonly pid: number; readonly command: string }
