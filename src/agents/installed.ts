import type { Clock } from '../domain/clock.ts'
import { allowedEnvironment } from '../process/environment.ts'
import { type ProgramResult, runProgram } from '../process/spawn.ts'
import type { AgentAvailability } from './agent.ts'

export type InstalledProgram = {
  readonly command: string
  /** Our own variables, for the allow-list, and those the program is granted. */
  readonly own: Readonly<Record<string, string | undefined>>
  readonly granted: Readonly<Record<string, string>>
  readonly clock: Clock
}

/** Runs the program for a line or two of output. Undefined if it is missing or doesn't answer. */
export const askProgram = async (
  { command, own, granted, clock }: InstalledProgram,
  args: readonly string[],
): Promise<ProgramResult | undefined> => {
  try {
    const env = allowedEnvironment(own, granted)
    // In `/`, so it finds no project settings.
    const limits = { timeoutMs: 10_000, outputLimitBytes: 16_000, stdin: '' }
    const answer = await runProgram({ command, args, cwd: '/', env, clock, ...limits })
    return answer.timedOut ? undefined : answer
  } catch {
    return undefined
  }
}

/** "2.1.325 (Claude Code)", "codex-cli 0.166.0" */
export const versionOf = async (installed: InstalledProgram): Promise<string | undefined> => {
  const answer = await askProgram(installed, ['--version'])
  return answer?.exitCode === 0 ? /(?<!\d)\d+\.\d+\S*/.exec(answer.stdout.slice(0, 500))?.[0] : undefined
}

/** Cached once ready. A failure isn't: the user may fix it before the next call. */
export const cacheWhenReady = (ask: () => Promise<AgentAvailability>): (() => Promise<AgentAvailability>) => {
  let cached: Promise<AgentAvailability> | undefined
  return async () => {
    cached ??= ask()
    const answer = await cached
    if (answer.state !== 'ready') cached = undefined
    return answer
  }
}
