import { join } from 'node:path'
import { AppError } from '../../../domain/errors.ts'
import type { CommandStep } from '../../../domain/fleet/formula.ts'
import { checkCommands, mayRunChecks, repositoryFormulas } from '../../../isolation/codebases/formulas.ts'
import { providerOf } from '../../../isolation/provider-of.ts'
import { portVariables } from '../../../isolation/ports.ts'
import { makeDirectorySync } from '../../../process/files/make-directory.ts'
import { writeNewFileSync } from '../../../process/files/replace-file.ts'
import { runProgram } from '../../../process/spawn.ts'
import { fleetHome } from '../../sessions/paths.ts'
import { refusal, type Step } from '../step.ts'

const OUTPUT_BYTES = 10_000_000

/** Runs a command of the repository's formula in the worktree, if a person has approved that command. */
export const runCommand =
  ({ run: command, timeoutMs }: CommandStep): Step =>
  async ({ isolation, redact }, { run, agent, codebase, environment, signal }) => {
    if (environment === undefined) throw new AppError('not-found', 'the worktree is gone')
    const commands = checkCommands(await repositoryFormulas(isolation, codebase))
    if (!commands.includes(command) || !(await mayRunChecks(isolation, codebase, commands))) {
      return refusal({ kind: 'not-approved', codebase: codebase.name, commands })
    }
    const provider = await providerOf(isolation, environment)
    isolation.progress(`running ${command.split('\n')[0]}`)
    const ended = await runProgram({
      shell: command,
      cwd: environment.path,
      env: {
        ...isolation.programEnvironment,
        ...(await portVariables(isolation, environment)),
        COPPICE_DIR: environment.path,
        COPPICE_AGENT: agent.name,
        COPPICE_CODEBASE: codebase.name,
        COPPICE_BRANCH: environment.branch,
      },
      launch: (program) => provider.launch(environment, program),
      clock: isolation.clock,
      timeoutMs,
      outputLimitBytes: OUTPUT_BYTES,
      ...(signal !== undefined && { signal }),
    })
    const directory = join(fleetHome(isolation.home), 'logs')
    makeDirectorySync(directory)
    const log = join(directory, `${agent.name}-${run.id.slice(0, 8)}.log`)
    writeNewFileSync(log, redact(ended.output), { mode: 0o600 })
    if (ended.exitCode === 0 && !ended.timedOut) return { state: 'done', detail: log }
    return refusal({ kind: 'command-failed', command, exitCode: ended.timedOut ? null : ended.exitCode, log })
  }
