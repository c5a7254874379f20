import { readFile } from 'node:fs/promises'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { identifySync } from './identity.ts'
import { isForbidden, isGone } from './proc.ts'
import { listProcPids } from './table.ts'

/**
 * The processes that were started with this variable, or inherited it. Only those whose environment we may read: ours.
 * Where the system does not show environments (macOS) there are none to be found this way.
 */
export const processesWithVariable = async (
  name: string,
  value: string,
  /** Told all variables as `name=value`: says whether this one is meant. */
  isMeant: (variables: readonly string[]) => boolean = () => true,
): Promise<ProcessIdentity[]> => {
  if (process.platform !== 'linux') return []
  // As bytes: the environment is read as such.
  const wanted = Buffer.from(`${name}=${value}`).toString('latin1')
  const found: ProcessIdentity[] = []
  for (const pid of listProcPids()) {
    // Before the environment is read: a pid that changes hands in between then has another start time.
    const identity = identifySync(pid)
    if (identity === undefined) continue
    const variables = (await environmentOf(pid)).split('\0')
    if (variables.includes(wanted) && isMeant(variables)) found.push(identity)
  }
  return found
}

const environmentOf = async (pid: number): Promise<string> => {
  try {
    return await readFile(`/proc/${pid}/environ`, 'latin1')
  } catch (error) {
    if (isGone(error) || isForbidden(error)) return ''
    throw error
  }
}
