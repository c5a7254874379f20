import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** What the agents wrote down: the ID of each file and commit that they made, and for which item. */
export type Ledger = { readonly blobs: ReadonlyMap<string, string>; readonly commits: ReadonlyMap<string, string> }

export const readLedger = (directory: string): Ledger => {
  const blobs = new Map<string, string>()
  const commits = new Map<string, string>()
  for (const item of readdirSync(directory).filter((name) => /^\d+$/.test(name))) {
    // The last line may be half written.
    for (const [, kind, id = ''] of readFileSync(join(directory, item), 'utf8').matchAll(/^(\w+) ([0-9a-f]{40})$/gm)) {
      ;(kind === 'blob' ? blobs : commits).set(id, `made for item ${item}`)
    }
  }
  return { blobs, commits }
}
