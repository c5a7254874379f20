import { closeSync } from 'node:fs'
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

const LEFT = [
  startedFile,
  endedFile,
  environmentFile,
  inputFile,
  outputFile,
  rootFile,
  requestsDirectory,
  answersDirectory,
] as const

/** The agent's directory, without anything that an earlier session left there. */
export const prepareDirectory = ({ home }: Pick<SessionsContext, 'home'>, name: string): string => {
  const directory = agentDirectory(home, name)
  makeDirectorySync(directory)
  makeDirectorySync(dirname(logFile(home, name)))
  // Before tmux creates it, readable by everybody.
  closeSync(openLogSync(logFile(home, name)))
  // Whatever is there: the agent could write here, and a directory in the place of a file must not stop its next life.
  for (const place of LEFT) deleteTreeSync(place(directory))
  return directory
}

/**
 * Ends every process of a session: the tree of its root, and what it put elsewhere. Resolves to whether all of it is
 * provably dead.
 */
export const endProcesses = async (
  { clock }: Pick<SessionsContext, 'clock'>,
  {
    root,
    marks,
    graceMs,
  }: { readonly root: ProcessIdentity | undefined; readonly marks: readonly RunMark[]; readonly graceMs: number },
): Promise<boolean> => {
  if (root !== undefined) {
    await killTree(root, { graceMs, clock })
    // Also if nothing was signalled, because we are part of it ourselves.
    if (liveness(root) !== 'dead') return false
  }
  if ((await killRun(marks, { graceMs, clock })).outcome !== 'dead') return false
  const { rows, complete } = await processesOfRuns(marks)
  return complete && rows.length === 0
}
