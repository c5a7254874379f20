import { toAppError } from '../../domain/errors.ts'
import { killRun } from '../../process/kill.ts'
import { hookMark } from '../../process/run-mark.ts'
import { runProgram } from '../../process/spawn.ts'
import type { Attempted, HookContext, HookPayload } from './hook.ts'

export type HookCommand = {
  readonly command: string
  readonly key: string
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly text: string
  readonly json: HookPayload
}

/** Its end is enough to say what went wrong. */
const OUTPUT_BYTES = 4_000

const GRACE_MS = 2_000

/**
 * An agent or a stranger may have written the event's texts, so they reach the command only as variables and standard
 * input, and never become part of the command line.
 */
export const runHookCommand = async (
  { isolation, redact }: Pick<HookContext, 'isolation' | 'redact'>,
  { command, key, timeoutMs, signal, text, json }: HookCommand,
): Promise<Attempted> => {
  const { home, clock, programEnvironment } = isolation
  const mark = hookMark(home, key)
  try {
    const { exitCode, output, timedOut } = await runProgram({
      shell: command,
      cwd: home,
      env: { ...programEnvironment, COPPICE_HOME: home, ...variablesOf(json, text) },
      stdin: `${JSON.stringify(json)}\n`,
      clock,
      timeoutMs,
      graceMs: GRACE_MS,
      outputLimitBytes: OUTPUT_BYTES,
      signal,
      mark,
    })
    // What has left its process tree has kept its mark.
    if (timedOut) await killRun([mark], { graceMs: 0, clock })
    if (exitCode === 0 && !timedOut) return { kind: 'delivered' }
    const how = timedOut ? `it took longer than ${timeoutMs / 1000} s` : `it failed with exit code ${exitCode}`
    const said = redact(output).trim().split('\n').at(-1)?.slice(0, 200)
    return { kind: 'failed', why: said === undefined || said === '' ? how : `${how}: ${said}` }
  } catch (error) {
    if (!signal.aborted) return { kind: 'failed', why: redact(toAppError(error).message) }
    await killRun([mark], { graceMs: 0, clock })
    return { kind: 'aborted' }
  }
}

/** Far below the system's limit of 128 KB for a variable. */
const MAX_VARIABLE = 8_000

const variablesOf = (json: HookPayload, text: string): Record<string, string> => {
  const values = {
    NUMBER: json.number,
    KIND: json.kind,
    NEEDS_YOU: json.needsYou ? 1 : '',
    ITEM: json.item,
    TITLE: json.title,
    AGENT: json.agent,
    CODEBASE: json.codebase,
    TEXT: text,
  }
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      `COPPICE_EVENT_${name}`,
      String(value ?? '')
        .replaceAll('\0', '')
        .slice(0, MAX_VARIABLE)
        .toWellFormed(),
    ]),
  )
}
