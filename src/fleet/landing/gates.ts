/*
 * Runs the repository's gates on a commit. In: a commit, and the commands from the base's configuration. Out: whether
 * all passed, the last one that ran, and a log.
 */
import type { RepoConfig } from '../../domain/config/repository.ts'
import type { Codebase } from '../../domain/environment.ts'
import type { Landing, LandingGate } from '../../domain/fleet/landing.ts'
import type { Sha } from '../../domain/names.ts'
import { checkCommands, checksDigest, mayRunChecks, repositoryFormulas } from '../../isolation/codebases/formulas.ts'
import { type ScratchTree, withScratchTree } from '../../isolation/codebases/landing/scratch-tree.ts'
import { runVariable } from '../../process/run-mark.ts'
import { runProgram } from '../../process/spawn.ts'
import type { FleetContext } from '../context.ts'
import { type GateLog, openGateLog } from './gate-log.ts'

export type GateRun = {
  readonly commit: Sha
  readonly base: { readonly branch: string; readonly sha: Sha }
  readonly config: RepoConfig
  /** The landing that the log is named after: the last one in the commit. */
  readonly landing: Pick<Landing, 'id'>
  readonly signal?: AbortSignal | undefined
}

export type GateResult = { readonly passed: boolean; readonly gate: LandingGate | undefined }

/** The digest of the gates: a commit that passed others has to be tested again. */
export const gatesDigest = ({ landingGates }: RepoConfig): string => checksDigest(landingGates)

/** The commands that a person has to approve first; undefined if the gates may run. */
export const unapprovedGates = async (
  { isolation }: Pick<FleetContext, 'isolation'>,
  codebase: Codebase,
  { landingGates }: RepoConfig,
): Promise<readonly string[] | undefined> => {
  if (landingGates.length === 0) return undefined
  const commands = checkCommands(await repositoryFormulas(isolation, codebase))
  const isKnown = landingGates.every((gate) => commands.includes(gate))
  return isKnown && (await mayRunChecks(isolation, codebase, commands)) ? undefined : commands
}

/** All gates, in a scratch tree that is deleted afterwards with everything they started. */
export const runGates = async (context: FleetContext, codebase: Codebase, run: GateRun): Promise<GateResult> => {
  const { isolation } = context
  const { commit, base, config, landing, signal } = run
  if (config.landingGates.length === 0) return { passed: true, gate: undefined }
  const scratch = { at: commit, branch: base.branch, base: base.sha }
  return withScratchTree(
    isolation,
    codebase,
    scratch,
    async (tree) => {
      await isolation.failpoint('landing.gates')
      const log = openGateLog(context, landing.id, commit)
      try {
        let last: LandingGate | undefined
        for (const command of config.landingGates) {
          const { passed, gate } = await runGate(context, codebase, run, { command, tree, log })
          if (!passed) return { passed, gate }
          last = gate
        }
        return { passed: true, gate: last }
      } finally {
        log.close()
      }
    },
    { signal },
  )
}

type OneGate = { readonly command: string; readonly tree: ScratchTree; readonly log: GateLog }

/** A red gate runs again on the same files, as often as `landing.retries` says; if it then passes, it is flaky. */
const runGate = async (
  context: FleetContext,
  codebase: Codebase,
  run: GateRun,
  one: OneGate,
): Promise<{ readonly passed: boolean; readonly gate: LandingGate }> => {
  const { store } = context.isolation
  const { command, log } = one
  for (let retry = 0; ; retry += 1) {
    const exitCode = await runOnce(context, codebase, run, one)
    const gate = { command, exitCode, log: log.path }
    if (exitCode !== 0 && retry < run.config.landingRetries) continue
    if (exitCode === 0 && retry > 0) {
      const event = { kind: 'flaky-gate', landing: run.landing.id, command, log: log.path } as const
      await store.transaction((inside) => context.notify(inside, event))
    }
    return { passed: exitCode === 0, gate }
  }
}

/** Null: it took too long, or was killed. */
const runOnce = async (
  { isolation }: FleetContext,
  codebase: Codebase,
  { base, config, landing, signal }: GateRun,
  { command, tree, log }: OneGate,
): Promise<number | null> => {
  const { clock, secrets } = isolation
  isolation.progress(`running ${command.split('\n')[0]}`)
  log.write(`$ ${secrets.redact(command)}\n`)
  const ended = await runProgram({
    shell: command,
    cwd: tree.path,
    env: {
      ...isolation.programEnvironment,
      COPPICE_DIR: tree.path,
      COPPICE_CODEBASE: codebase.name,
      COPPICE_BRANCH: base.branch,
      COPPICE_LANDING: String(landing.id),
      [runVariable]: tree.mark.id,
    },
    mark: tree.mark,
    clock,
    timeoutMs: config.landingTimeoutMs,
    outputLimitBytes: 64 * 1024,
    redact: { secrets, streams: ['stdout', 'stderr'] },
    onOutput: log.write,
    ...(signal !== undefined && { signal }),
  })
  const exitCode = ended.timedOut ? null : ended.exitCode
  log.write(ended.timedOut ? '\n[it took too long]\n' : `\n[exit code ${exitCode ?? ended.signal}]\n`)
  return exitCode
}
