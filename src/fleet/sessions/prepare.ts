import { closeSync, fstatSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { ProcessIdentity } from '../../domain/process-identity.ts'
import { deleteTreeSync } from '../../process/files/delete-tree.ts'
import { makeDirectorySync } from '../../process/files/make-directory.ts'
import { openLogSync } from '../../process/files/replace-file.ts'
import { liveness } from '../../process/identity.ts'
import { killRun, killTree } from '../../process/kill.ts'
import type { RunMark } from '../../process/run-mark.ts'
import { processesOfRuns } from '../../process/run-processes.ts'
import type { SessionsContext } from './context.ts'
import {
  agentDirectory,
  answersDirectory,
  endedFile,
  environmentFile,
  inputFile,
  logFile,
  outputFile,
  requestsDirectory,
  rootFile,
  startedFile,
} from './paths.ts'

const LEFTOVERS = [
  startedFile,
  endedFile,
  environmentFile,
  inputFile,
  outputFile,
  rootFile,
  requestsDirectory,
  answersDirectory,
] as const

/** Creates the agent's directory, and deletes what an earlier session left there, except for its log. */
export const prepareDirectory = ({ home, clock }: Pick<SessionsContext, 'home' | 'clock'>, name: string): string => {
  const directory = agentDirectory(home, name)
  makeDirectorySync(directory)
  makeDirectorySync(dirname(logFile(home, name)))
  // Created here because tmux would make it readable by everybody.
  const log = openLogSync(logFile(home, name))
  try {
    // The name may have been another agent's.
    if (fstatSync(log).size > 0)
      writeSync(log, `\n--- new session of ${name}, ${new Date(clock()).toISOString()} ---\n`)
  } finally {
    closeSync(log)
  }
  // Whatever kind of file it is: an agent could put a directory here to block its next start.
  for (const leftover of LEFTOVERS) deleteTreeSync(leftover(directory))
  return directory
}

/**
 * Ends every process of a session: its root's tree, and any marked process outside that tree. Resolves to whether all
 * of them are provably dead.
 */
export const endProcesses = async (
  { clock }: Pick<SessionsContext, 'clock'>,
  {
    root,
    marks,
    graceMs,
    isOrphan = false,
  }: {
    readonly root: ProcessIdentity | undefined
    readonly marks: readonly RunMark[]
    readonly graceMs: number
    /** The root has lost its session. */
    readonly isOrphan?: boolean
  },
): Promise<boolean> => {
  if (root !== undefined) {
    await killTree(root, { graceMs, clock, isOrphan })
    // Covers the case that nothing was signalled because this process is in the tree.
    if (liveness(root) !== 'dead') return false
  }
  if ((await killRun(marks, { graceMs, clock })).outcome !== 'dead') return false
  const { rows, complete } = await processesOfRuns(marks)
  return complete && rows.length === 0
}
