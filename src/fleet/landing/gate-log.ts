import { closeSync, writeSync } from 'node:fs'
import { readdir, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { unlessMissing } from '../../domain/missing.ts'
import { makeDirectorySync } from '../../process/files/make-directory.ts'
import { openLogSync } from '../../process/files/replace-file.ts'
import type { FleetContext } from '../context.ts'
import { fleetHome } from '../sessions/paths.ts'

/** A gate that prints for hours must not fill the disk. */
export const MOST_LOG_BYTES = 10_000_000

export type GateLog = { readonly path: string; readonly write: (text: string) => void; readonly close: () => void }

const logsOf = (home: string): string => join(fleetHome(home), 'landings')

/** A new log for each run of the gates: `<home>/fleet/landings/<landing>-<commit>-….log`, readable only by its owner. */
export const openGateLog = (
  { isolation: { home, ids } }: Pick<FleetContext, 'isolation'>,
  landing: number,
  commit: string,
): GateLog => {
  makeDirectorySync(logsOf(home))
  const path = join(logsOf(home), `${landing}-${commit.slice(0, 7)}-${ids().slice(0, 8)}.log`)
  const file = openLogSync(path)
  let left = MOST_LOG_BYTES
  let isOpen = true
  const append = (text: string): void => {
    try {
      writeSync(file, text)
    } catch {
      // As on a full disk. The exit code counts, not the log.
      left = 0
    }
  }
  return {
    path,
    write: (text) => {
      // What a gate left running may still print.
      if (!isOpen || left <= 0) return
      left -= Buffer.byteLength(text)
      append(left > 0 ? text : `\n[the rest was not kept: more than ${MOST_LOG_BYTES} bytes]\n`)
    },
    close: () => {
      if (isOpen) closeSync(file)
      isOpen = false
    },
  }
}

/** Deletes logs that are as old as expired restore points. */
export const deleteOldGateLogs = async ({ isolation }: Pick<FleetContext, 'isolation'>): Promise<void> => {
  const { home, clock, settings } = isolation
  const before = clock() - settings.restoreDays * 24 * 60 * 60_000
  for (const name of (await unlessMissing(readdir(logsOf(home)))) ?? []) {
    const path = join(logsOf(home), name)
    const changed = (await unlessMissing(stat(path)))?.mtimeMs
    if (changed !== undefined && changed < before) await unlessMissing(unlink(path))
  }
}
