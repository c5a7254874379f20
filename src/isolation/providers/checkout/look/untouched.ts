import { chmodSync, lstatSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { unlessMissingSync } from '../../../../domain/missing.ts'
import { halfDone, tokenFile } from '../../../../git/admin-dir.ts'
import type { Tree } from '../../../../git/door.ts'
import { directoriesOf, scanIndex, filesOf } from '../../../../git/index-scan.ts'
import { mountsInside } from '../../../../process/files/mounts.ts'
import { createTimeSlice } from '../../../../process/time-slice.ts'

/** File systems stamp changes every few milliseconds; some only every two seconds. */
const LONGEST_TICK_MS = 2_100

/**
 * Waits until the token's ctime is later than that of everything that git created before it. Then whatever is written
 * in the same tick as the token counts as a change. Without it, `isUnusedSpare` would need its closer look every time.
 */
export const stampToken = async ({ gitDir }: Tree): Promise<void> => {
  const token = tokenFile(gitDir)
  // Git writes the index last.
  const created = changeTime(join(gitDir, 'index')) ?? 0
  const deadline = performance.now() + LONGEST_TICK_MS
  while ((changeTime(token) ?? 0) <= created && performance.now() < deadline) {
    await delay(2)
    // Changes nothing but the ctime.
    chmodSync(token, lstatSync(token).mode & 0o777)
  }
}

/**
 * Whether nothing was staged in or added to a worktree since we wrote its token, right after git created it. Every
 * creation from a spare waits for this, so it starts no program and goes by the ctimes of the index and directories.
 * In-place edits of tracked files are only noticed with `files`; if the worktree stays at its commit, they are edits in
 * the new environment. False if it needs a closer look.
 */
export const isUnusedSpare = async (tree: Tree, { files }: { readonly files: boolean }): Promise<boolean> => {
  const made = changeTime(tokenFile(tree.gitDir))
  const isOld = (path: string | Buffer): boolean => {
    const changed = changeTime(path)
    return made !== undefined && changed !== undefined && changed < made
  }
  if (!isOld(join(tree.gitDir, 'index')) || halfDone(tree.gitDir).length > 0) return false
  if ((await mountsInside([tree.path, tree.gitDir])).length > 0) return false
  const scan = scanIndex(tree)
  if (scan === undefined) return false
  const slice = createTimeSlice()
  for (const path of [...directoriesOf(tree, scan), ...(files ? filesOf(tree, scan) : [])]) {
    if (slice.isOver()) await slice.next()
    if (!isOld(path)) return false
  }
  return true
}

/** Milliseconds with a fraction, precise to a microsecond. */
const changeTime = (path: string | Buffer): number | undefined =>
  unlessMissingSync(() => lstatSync(path, { throwIfNoEntry: false }))?.ctimeMs
