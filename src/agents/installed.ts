import type { Clock } from '../domain/clock.ts'
import { allowedEnvironment } from '../process/environment.ts'
import { type ProgramResult, runProgram } from '../process/spawn.ts'
import type { AgentAvailability } from './agent.ts'

export type Installed = {
  readonly command: string
  /** Our own variables, for the allow-list, and what the program is granted of them. */
  readonly own: Readonly<Record<string, string | undefined>>
  readonly granted: Readonly<Record<string, string>>
  readonly clock: Clock
}

/** Runs the program for an answer of a line or two. Undefined when it is not there or does not answer. */
export const askProgram = async (
  { command, own, granted, clock }: Installed,
  args: readonly string[],
): Promise<ProgramResult | undefined> => {
  try {
    const env = allowedEnvironment(own, granted)
    // In the root: a program that reads the settings of the directory it stands in finds none there.
    const limits = { timeoutMs: 10_000, outputLimitBytes: 16_000, stdin: '' }
    const answer = await runProgram({ command, args, cwd: '/', env, clock, ...limits })
    return answer.timedOut ? undefined : answer
  } catch {
    return undefined
  }
}

/** "2.1.325 (Claude Code)", "codex-cli 0.166.0" */
export const versionOf = async (installed: Installed): Promise<string | undefined> => {
  const answer = await askProgram(installed, ['--version'])
  return answer?.exitCode === 0 ? /(?<!\d)\d+\.\d+\S*/.exec(answer.stdout.slice(0, 500))?.[0] : undefined
}

/** Asked once; but whoever is told what is missing may mend it, and then the next question must find that. */
export const onceReady = (ask: () => Promise<AgentAvailability>): (() => Promise<AgentAvailability>) => {
  let known: Promise<AgentAvailability> | undefined
  return async () => {
    known ??= ask()
    const answer = await known
    if (answer.state !== 'ready') known = undefined
    return answer
  }
}
