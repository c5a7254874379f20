/*
 * Runs `bd`, the program of beads. In: a checkout with `.beads`. Out: its issues, and the results of changes. `bd`
 * locates its store (`.beads/redirect`) and decides what it writes there and into git. Command line and JSON as in its
 * documentation for 1.0: docs/CLI_REFERENCE.md, docs/JSON_SCHEMA.md.
 */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Codebase } from '../../../domain/environment.ts'
import { AppError } from '../../../domain/errors.ts'
import { isMissing } from '../../../domain/missing.ts'
import { coppice, remedy } from '../../../domain/remedy.ts'
import { withoutInvisible } from '../../../domain/text/visible.ts'
import type { IsolationContext } from '../../../isolation/context.ts'
import { findProgram } from '../../../process/find-program.ts'
import { type ProgramResult, runProgram } from '../../../process/spawn.ts'

export type BdStatus = 'open' | 'in_progress' | 'blocked'

/** `refused`: bd's message for each id. */
export type BdChanged = { readonly done: ReadonlySet<string>; readonly refused: ReadonlyMap<string, string> }

export type Bd = {
  /** All issues, as lines. */
  export(): Promise<Buffer>
  setStatus(ids: readonly string[], status: BdStatus): Promise<BdChanged>
  /** In the given order, since bd refuses to close an issue before its dependencies. */
  close(ids: readonly string[], reason: string): Promise<BdChanged>
  comment(id: string, text: string): Promise<void>
}

const TIMEOUT_MS = 60_000
const MOST_EXPORTED = 64 * 1024 * 1024
const MOST_ANSWERED = 8 * 1024 * 1024
/** Several per call, since opening the store takes longer than a change. */
const IDS_PER_CALL = 100

type Context = Pick<IsolationContext, 'programEnvironment' | 'clock'>

export const openBd = async (
  { programEnvironment, clock }: Context,
  { checkoutPath, name }: Pick<Codebase, 'checkoutPath' | 'name'>,
  signal: AbortSignal | undefined,
): Promise<Bd> => {
  if (checkoutPath === undefined || !(await isDirectory(join(checkoutPath, '.beads')))) {
    throw new AppError('not-found', `${name} has no .beads directory`, {
      remedy: remedy`run bd init in its checkout, or import a file: ${coppice('item import beads <file>')}`,
    })
  }
  const command = findProgram('bd', programEnvironment['PATH'])
  if (command === undefined) {
    throw new AppError('not-found', '"bd" was not found on PATH', {
      remedy: remedy`install beads (github.com/steveyegge/beads), or import a file: ${coppice('item import beads <file>')}`,
    })
  }
  const run = async (args: readonly string[], outputLimitBytes: number): Promise<ProgramResult> => {
    // Before 1.0, bd left a background process behind.
    const env = { ...programEnvironment, BEADS_NO_DAEMON: '1' }
    const program = { command, args, cwd: checkoutPath, env, clock, timeoutMs: TIMEOUT_MS, outputLimitBytes }
    const result = await runProgram({ ...program, ...(signal && { signal }) })
    if (result.timedOut) {
      throw new AppError('timeout', `bd ${args[0]} took longer than ${TIMEOUT_MS / 1_000} seconds`, {
        remedy: 'check that no other process holds its store, then try again',
      })
    }
    return result
  }
  const change = async (
    ids: readonly string[],
    status: string,
    argsFor: (some: readonly string[]) => readonly string[],
  ): Promise<BdChanged> => {
    const done = new Set<string>()
    const refused = new Map<string, string>()
    for (let from = 0; from < ids.length; from += IDS_PER_CALL) {
      const some = ids.slice(from, from + IDS_PER_CALL)
      const result = await run([...argsFor(some), '--actor', 'coppice', '--json'], MOST_ANSWERED)
      // bd prints the issues that it changed, in their new state. It exits with 0 even if it refused some.
      const changed = new Map(answeredIssues(result).map((issue) => [issue.id, issue.status]))
      for (const id of some) {
        if (changed.get(id) === status) done.add(id)
        else refused.set(id, complaint(result, id))
      }
    }
    return { done, refused }
  }
  return {
    export: async () => {
      const result = await run(['export', '--readonly'], MOST_EXPORTED)
      if (result.exitCode !== 0) throw failed('export', result)
      if (result.truncated) {
        throw new AppError('program-failed', `bd export wrote more than ${MOST_EXPORTED} bytes`, {
          remedy: remedy`import a file instead: ${coppice('item import beads <file>')}`,
        })
      }
      return Buffer.from(result.stdout)
    },
    setStatus: (ids, status) => change(ids, status, (some) => ['update', ...some, '--status', status]),
    close: (ids, reason) => change(ids, 'closed', (some) => ['close', ...some, '--reason', reason]),
    comment: async (id, text) => {
      const result = await run(
        ['comments', 'add', id, withoutInvisible(text), '--actor', 'coppice', '--json'],
        MOST_ANSWERED,
      )
      if (result.exitCode !== 0) throw failed('comments', result)
    },
  }
}

const isDirectory = async (path: string): Promise<boolean> => {
  try {
    return (await stat(path)).isDirectory()
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}

const issue = z.object({ id: z.string(), status: z.string() })

/** The answer is wrapped since 2.0, and before that with BD_JSON_ENVELOPE=1. */
const answer = z.union([z.array(issue), z.object({ data: z.array(issue) }).transform(({ data }) => data)])

const answeredIssues = ({ stdout }: ProgramResult): z.infer<typeof issue>[] => {
  if (stdout.trim() === '') return []
  return answer.safeParse(json(stdout)).data ?? []
}

const json = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const failed = (verb: string, result: ProgramResult): AppError =>
  new AppError('program-failed', `bd ${verb} failed: ${complaint(result)}`, {
    remedy: 'run it yourself in the checkout; `bd doctor` checks its store',
  })

const errorObject = z.object({ error: z.string() })
const problem = z.union([errorObject, z.object({ data: errorObject }).transform(({ data }) => data)])

/** bd's message about this issue, or its first message. */
const complaint = ({ stderr, exitCode, signal }: ProgramResult, id?: string): string => {
  const said = problem.safeParse(json(stderr)).data?.error
  const lines = (said ?? stderr).split('\n').filter((line) => line.trim() !== '')
  const line = lines.find((one) => id !== undefined && one.includes(id)) ?? lines[0]
  const words = withoutInvisible(line ?? '').trim()
  return words === '' ? `it ended with ${exitCode ?? signal ?? 'no status'} and said nothing` : words.slice(0, 300)
}
