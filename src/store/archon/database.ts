/** One column's value: both engines hand out text, and nothing where there is none. */
export type ArchonRow = Readonly<Record<string, string | undefined>>

/** A database that is only ever read. */
export type ArchonDatabase = {
  /** Empty when there is no such table. */
  columns(table: string): Promise<string[]>
  rows(table: string, columns: readonly string[]): Promise<ArchonRow[]>
  close(): Promise<void>
}
