import { closeSync, fchmodSync, writeSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { toAppError } from '../../../../domain/errors.ts'
import type { EnvironmentId } from '../../../../domain/names.ts'
import { openLogSync } from '../../../../process/files/replace-file.ts'

export type ScriptLog = {
  readonly path: string
  readonly write: (text: string) => void
  /** Throws if something couldn't be written. */
  readonly check: () => void
  readonly close: () => void
}

/** A script that prints for 15 minutes must not fill the disk. */
const most = 50 * 1024 * 1024

/**
 * `<home>/logs/<kind>/<environment>.log`, readable only by its owner: scripts print tokens, even ones we don't know.
 */
export const openScriptLog = async (home: string, kind: string, id: EnvironmentId): Promise<ScriptLog> => {
  const directory = join(home, 'logs', kind)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const path = join(directory, `${id}.log`)
  await rm(path, { force: true })
  const file = openLogSync(path)
  fchmodSync(file, 0o600)
  let left = most
  let failure: unknown
  let open = true
  const append = (text: string): void => {
    try {
      writeSync(file, text)
    } catch (error) {
      // Called from a stream's event, where a throw would end the process.
      failure ??= error
    }
  }
  return {
    path,
    write: (text) => {
      // A server that setup left running still prints; by then the descriptor may be another file's.
      if (!open || left <= 0) return
      left -= Buffer.byteLength(text)
      append(left > 0 ? text : `\n[the rest was not kept: more than ${most} bytes]\n`)
    },
    check: () => {
      if (failure !== undefined) throw toAppError(failure)
    },
    close: () => {
      if (open) closeSync(file)
      open = false
    },
  }
}
