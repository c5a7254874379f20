import type { IsolationContext } from '../../../context.ts'
import type { IsolatedEnvironment } from '../../../../domain/environment.ts'
import { AppError, toAppError } from '../../../../domain/errors.ts'
import type { Notice, Script } from '../../../../domain/notice.ts'
import { killRun } from '../../../../process/kill.ts'
import { lingeringProcesses } from '../../../../process/marked-processes.ts'
import { type RunMark, runVariable, scriptMark } from '../../../../process/run-mark.ts'
import { type ProgramResult, runProgram } from '../../../../process/spawn.ts'
import type { Trust } from '../../../../domain/trust.ts'
import { providerOf } from '../../../provider-of.ts'
import { mayRunScripts } from '../../../trust.ts'
import type { Provisioning } from './provisioning.ts'
import { portVariables } from '../../../ports.ts'
import { type ScriptLog, openScriptLog } from './script-log.ts'
import { remedy, shell } from '../../../../domain/remedy.ts'

export type ScriptRun = Pick<Provisioning, 'codebase' | 'environment' | 'tree' | 'config' | 'signal' | 'onSpawn'> & {
  /** For all commands together. */
  readonly timeoutMs?: number
}

/** Runs `worktree.setup` if allowed; logs its output, and shows the end of it if it fails. */
export const runSetup = (context: IsolationContext, run: ScriptRun): Promise<ScriptsRun> =>
  runScripts(context, run, 'setup')

/** Runs `worktree.teardown` if allowed, in the tree to be removed. */
export const runTeardown = (context: IsolationContext, run: ScriptRun): Promise<ScriptsRun> =>
  runScripts(context, run, 'teardown')

export type ScriptsRun = {
  /** False if there are none, or they aren't allowed (a notice says why). */
  readonly ran: boolean
  readonly notices: readonly Notice[]
}

const defaultTimeoutMs = 15 * 60_000
const shownLines = 40
const shownBytes = 64 * 1024

const runScripts = async (context: IsolationContext, run: ScriptRun, kind: Script): Promise<ScriptsRun> => {
  const { codebase, config, environment } = run
  const trust = kind === 'teardown' ? await trustNow(context, run) : environment.trust
  const permission = await mayRunScripts(context, codebase, config, trust)
  if (!permission.run) return { ran: false, notices: permission.notice === undefined ? [] : [permission.notice] }
  if (config[kind].length === 0) return { ran: false, notices: [] }
  const mark = scriptMark(context.home, environment.id, kind)
  const env = { ...(await scriptEnvironment(context, run)), [runVariable]: mark.id }
  const log = await openScriptLog(context.home, kind, environment.id)
  try {
    const deadline = context.clock() + (run.timeoutMs ?? defaultTimeoutMs)
    for (const command of config[kind]) {
      context.progress(`running ${kind}: ${firstLine(command)}`)
      const result = await runOne(context, run, { command, env, mark, log, timeoutMs: deadline - context.clock() })
      if (result.exitCode !== 0 || result.timedOut) throw scriptFailed(run, kind, command, result, log.path)
    }
  } catch (error) {
    await endAll(context, mark, kind, error)
    throw error
  } finally {
    log.close()
  }
  return { ran: true, notices: await leftRunning(context, environment, kind) }
}

/** A vouched worktree may have been moved to a commit that nobody vouched for; teardown would run its files. */
const trustNow = async (context: IsolationContext, { codebase, environment, signal }: ScriptRun): Promise<Trust> => {
  if (environment.trust !== 'vouched') return environment.trust
  const provider = await providerOf(context, environment)
  return (await provider.isVouched(context, codebase, environment, { signal })) ? 'vouched' : 'lapsed'
}

/** A failed script leaves nothing running, not even in the background. */
const endAll = async (
  { clock }: Pick<IsolationContext, 'clock'>,
  mark: RunMark,
  kind: Script,
  cause: unknown,
): Promise<void> => {
  const killed = await killRun([mark], { graceMs: 2_000, clock })
  if (killed.outcome !== 'survivors') return
  const pids = killed.identities.map(({ pid }) => pid).join(' ')
  const failed = toAppError(cause)
  const left =
    pids === ''
      ? `Something that ${kind} started is still running, and Coppice has no process ID for it`
      : `Some processes that ${kind} started are still running: ${pids}`
  throw new AppError(failed.code, `${failed.message}. ${left}`, {
    cause,
    remedy:
      pids === ''
        ? "try again; if that doesn't help, restart the machine"
        : remedy`stop them (${shell(`kill -9 ${pids}`)}) and try again`,
  })
}

/** Perhaps a server for the agent: it stays, and a notice names it at creation and removal. */
export const leftRunning = async (
  { home }: Pick<IsolationContext, 'home'>,
  { id }: Pick<IsolatedEnvironment, 'id'>,
  kind: Script,
): Promise<Notice[]> => {
  const { named: left, unnamed } = await lingeringProcesses([scriptMark(home, id, kind)])
  if (unnamed) return [{ kind: 'left-running', script: kind, processes: [] }]
  const processes = left.map(({ pid, command }) => ({ pid, command }))
  return processes.length === 0 ? [] : [{ kind: 'left-running', script: kind, processes }]
}

type Command = {
  readonly command: string
  readonly env: Readonly<Record<string, string>>
  readonly mark: RunMark
  readonly log: ScriptLog
  readonly timeoutMs: number
}

const runOne = async (
  context: Pick<IsolationContext, 'clock' | 'secrets' | 'providers'>,
  { environment, tree, signal, onSpawn }: ScriptRun,
  { command, env, mark, log, timeoutMs }: Command,
): Promise<ProgramResult> => {
  const { clock, secrets } = context
  const provider = await providerOf(context, environment)
  log.write(`$ ${secrets.redact(command)}\n`)
  const result = await runProgram({
    shell: command,
    cwd: tree.path,
    env,
    launch: (program) => provider.launch(environment, program),
    mark,
    clock,
    timeoutMs: Math.max(1, timeoutMs),
    outputLimitBytes: shownBytes,
    redact: { secrets, streams: ['stdout', 'stderr'] },
    onOutput: (text) => log.write(text),
    ...(signal === undefined ? {} : { signal }),
    ...(onSpawn === undefined ? {} : { onStart: onSpawn }),
  })
  log.check()
  return result
}

const scriptEnvironment = async (
  context: Pick<IsolationContext, 'store' | 'programEnvironment'>,
  { codebase, environment, tree }: ScriptRun,
): Promise<Record<string, string>> => ({
  ...context.programEnvironment,
  ...(await portVariables(context, environment)),
  COPPICE_DIR: tree.path,
  COPPICE_CODEBASE: codebase.name,
  COPPICE_BRANCH: environment.branch,
  COPPICE_WORK: `${environment.work.type}-${environment.work.id}`,
})

const scriptFailed = (
  { environment }: ScriptRun,
  kind: Script,
  command: string,
  result: ProgramResult,
  logPath: string,
): AppError => {
  const how = result.timedOut
    ? 'it took too long'
    : result.signal === null
      ? `exit code ${result.exitCode}`
      : `killed by ${result.signal}`
  const end = result.output.trimEnd().split('\n').slice(-shownLines).join('\n')
  return new AppError(
    kind === 'setup' ? 'setup-failed' : 'program-failed',
    `${kind} of ${environment.branch} failed (${how}): ${firstLine(command)}${end === '' ? '' : `\n${end}`}`,
    { remedy: `see ${logPath} for the full output; fix worktree.${kind} on the base branch and try again` },
  )
}

const firstLine = (command: string): string => {
  const [line = '', ...rest] = command.trim().split('\n')
  return rest.length === 0 ? line : `${line} …`
}
