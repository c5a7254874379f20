/** By column. Both engines return text; null is undefined. */
export type ArchonRow = Readonly<Record<string, string | undefined>>

/** A read-only database. */
export type ArchonDatabase = {
  /** Empty if the table doesn't exist. */
  columns(table: string): Promise<string[]>
  rows(table: string, columns: readonly string[]): Promise<ArchonRow[]>
  close(): Promise<void>
}
