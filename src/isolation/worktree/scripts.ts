import type { IsolationContext } from '../context.ts'
import { AppError } from '../../domain/errors.ts'
import { type ProgramResult, runProgram } from '../../process/spawn.ts'
import { mayRunScripts } from '../trust.ts'
import type { Dressing } from './dressing.ts'
import { portVariables } from './ports.ts'
import { type ScriptLog, openScriptLog } from './script-log.ts'

export type ScriptRun = Pick<Dressing, 'codebase' | 'environment' | 'tree' | 'config' | 'signal' | 'onSpawn'> & {
  /** For all commands together. */
  readonly timeoutMs?: number
}

/** Runs `worktree.setup` if it may; what it prints is kept, and its end is shown when it fails. */
export const runSetup = (context: IsolationContext, run: ScriptRun): Promise<string[]> =>
  runScripts(context, run, 'setup')

/** Runs `worktree.teardown` if it may, in the tree that is about to go. */
export const runTeardown = async (context: IsolationContext, run: ScriptRun): Promise<{ notices: string[] }> => ({
  notices: await runScripts(context, run, 'teardown'),
})

type Kind = 'setup' | 'teardown'

const defaultTimeoutMs = 15 * 60_000
const shownLines = 40
const shownBytes = 64 * 1024

const runScripts = async (context: IsolationContext, run: ScriptRun, kind: Kind): Promise<string[]> => {
  const { codebase, config, environment } = run
  const permission = await mayRunScripts(context, codebase, config, environment.trust)
  if (!permission.run) return permission.notice === undefined ? [] : [permission.notice]
  if (config[kind].length === 0) return []
  const env = await scriptEnvironment(context, run)
  const log = await openScriptLog(context.home, kind, environment.id)
  try {
    const deadline = context.clock() + (run.timeoutMs ?? defaultTimeoutMs)
    for (const command of config[kind]) {
      context.progress(`running ${kind}: ${firstLine(command)}`)
      const result = await runOne(context, run, { command, env, log, timeoutMs: deadline - context.clock() })
      if (result.exitCode !== 0 || result.timedOut) throw scriptFailed(run, kind, command, result, log.path)
    }
  } finally {
    log.close()
  }
  return []
}

type Command = {
  readonly command: string
  readonly env: Readonly<Record<string, string>>
  readonly log: ScriptLog
  readonly timeoutMs: number
}

const runOne = async (
  { clock, secrets }: IsolationContext,
  { tree, signal, onSpawn }: ScriptRun,
  { command, env, log, timeoutMs }: Command,
): Promise<ProgramResult> => {
  log.write(`$ ${secrets.redact(command)}\n`)
  const result = await runProgram({
    shell: command,
    cwd: tree.path,
    env,
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
  context: IsolationContext,
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
  kind: Kind,
  command: string,
  result: ProgramResult,
  logPath: string,
): AppError => {
  const how = result.timedOut
    ? 'it took too long'
    : result.signal === null
      ? `exit code ${result.exitCode}`
      : `ended by ${result.signal}`
  const end = result.output.trimEnd().split('\n').slice(-shownLines).join('\n')
  return new AppError(
    kind === 'setup' ? 'setup-failed' : 'program-failed',
    `${kind} of ${environment.branch} failed (${how}): ${firstLine(command)}${end === '' ? '' : `\n${end}`}`,
    { remedy: `the whole output is in ${logPath}; correct worktree.${kind} on the base branch and try again` },
  )
}

const firstLine = (command: string): string => {
  const [line = '', ...rest] = command.trim().split('\n')
  return rest.length === 0 ? line : `${line} …`
}
