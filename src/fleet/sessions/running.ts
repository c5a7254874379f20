import { setTimeout as delay } from 'node:timers/promises'
import { AppError } from '../../domain/errors.ts'
import type { ProcessIdentity } from '../../domain/process-identity.ts'
import { argumentsOf } from '../../process/arguments.ts'
import { readUntrustedTextSync } from '../../process/files/read-untrusted.ts'
import { identifySync, liveness } from '../../process/identity.ts'
import { endedFile, startedFile } from './paths.ts'
import { STARTER } from './wrapper.ts'

/** How long the shell may take to start the program. */
const START_MS = 20_000

/**
 * Waits until the program has replaced the shell that starts it. Throws if it ends before that, for example because
 * there is no such program.
 */
export const untilRunning = async (
  directory: string,
  root: ProcessIdentity,
  { startMs = START_MS }: { readonly startMs?: number } = {},
): Promise<void> => {
  const deadline = performance.now() + startMs
  for (let pause = 2; ; pause = Math.min(50, pause * 1.5)) {
    const code = exitCodeIn(directory)
    if (code !== undefined) throw notStarted(code)
    if (await isProgramRunning(directory)) return
    if (liveness(root) === 'dead' && exitCodeIn(directory) === undefined) throw notStarted(undefined)
    if (performance.now() > deadline) {
      throw new AppError('timeout', `the agent's program didn't start within ${startMs / 1000} s`)
    }
    await delay(pause)
  }
}

/** Written by the shell around the program. Undefined while the program runs, or if that shell was killed. */
export const exitCodeIn = (directory: string): number | undefined => numberIn(endedFile(directory))

/** The program's process. Undefined before it starts. */
export const programIn = (directory: string): ProcessIdentity | undefined => {
  const pid = programPid(directory)
  return pid === undefined ? undefined : identifySync(pid)
}

/** Only a number: by now it may be another process's. */
export const programPid = (directory: string): number | undefined => numberIn(startedFile(directory))

const isProgramRunning = async (directory: string): Promise<boolean> => {
  const program = programIn(directory)
  if (program === undefined || liveness(program) !== 'alive') return false
  const words = await argumentsOf(program.pid)
  // Before exec it is still the shell, whose arguments contain these words.
  return words !== undefined && !words.join(' ').includes(STARTER)
}

const numberIn = (file: string): number | undefined => {
  const text = readUntrustedTextSync(file, { maxBytes: 100 })?.trim()
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined
}

/** For a session whose processes have all ended. */
export const endedAtOnce = (directory: string): AppError => notStarted(exitCodeIn(directory))

const notStarted = (code: number | undefined): AppError =>
  new AppError('program-failed', whyNot(code), {
    remedy: "check the pool's agent and command in config.yaml",
  })

/** Exit codes as a shell reports them. */
const whyNot = (code: number | undefined): string => {
  if (code === 127) return "the agent's program wasn't found"
  if (code === 126) return "the agent's program couldn't be run"
  return code === undefined
    ? "the agent's program was killed"
    : `the agent's program ended at once, with exit code ${code}`
}
