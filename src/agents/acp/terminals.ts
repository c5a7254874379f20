import type { Launch } from '../../domain/program.ts'
import { RequestError } from '@agentclientprotocol/sdk'
import type { CreateTerminalRequest, TerminalExitStatus, TerminalOutputResponse } from '@agentclientprotocol/sdk'
import type { Clock } from '../../domain/clock.ts'
import { toAppError } from '../../domain/errors.ts'
import type { RunMark } from '../../process/run-mark.ts'
import { runProgram } from '../../process/spawn.ts'
import { directoryInside } from './confined-files.ts'

export type Terminals = {
  create(request: CreateTerminalRequest): Promise<string>
  output(id: string): TerminalOutputResponse
  waitForExit(id: string): Promise<TerminalExitStatus>
  /** Resolves once its whole tree is dead; the output stays. */
  kill(id: string): Promise<void>
  release(id: string): Promise<void>
  /** A command is running, so silence isn't a stall. */
  busy(): boolean
  /** Kills all of them and accepts no more. */
  end(): Promise<void>
}

export type TerminalsOptions = {
  readonly launch: Launch | undefined
  /** The environment; commands run only inside it. */
  readonly root: string
  readonly environment: Readonly<Record<string, string>>
  readonly clock: Clock
  readonly mark: RunMark
}

type Terminal = {
  readonly abort: AbortController
  readonly ended: Promise<TerminalExitStatus>
  readonly tail: Tail
  exit: TerminalExitStatus | undefined
}

/** More than any model reads. */
const MAX_OUTPUT_BYTES = 1_000_000
const MAX_TERMINALS = 64
const GRACE_MS = 2_000

/** Commands run for an agent: each in its own process group, with the agent's environment and capped output. */
export const createTerminals = ({ root, environment, clock, mark, launch }: TerminalsOptions): Terminals => {
  const terminals = new Map<string, Terminal>()
  let count = 0
  let closed = false

  const of = (id: string): Terminal => {
    const terminal = terminals.get(id)
    if (terminal === undefined) throw RequestError.resourceNotFound(`terminal ${id.slice(0, 100)}`)
    return terminal
  }
  const kill = async (terminal: Terminal): Promise<void> => {
    terminal.abort.abort()
    await terminal.ended
  }

  return {
    create: async ({ command, args = [], env = [], cwd, outputByteLimit }) => {
      const directory = await directoryInside(root, cwd ?? root)
      if (closed || terminals.size >= MAX_TERMINALS) {
        throw RequestError.invalidRequest(undefined, closed ? 'the run is over' : 'too many terminals')
      }
      const abort = new AbortController()
      const tail = createTail(Math.min(outputByteLimit ?? MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES))
      const running = runProgram({
        // A shell command line such as `npm test` arrives without arguments.
        ...(args.length === 0 ? { shell: command } : { command, args }),
        cwd: directory,
        launch,
        env: { ...environment, ...Object.fromEntries(env.map(({ name, value }) => [name, value])) },
        clock,
        mark,
        signal: abort.signal,
        graceMs: GRACE_MS,
        outputLimitBytes: 1_000,
        onOutput: tail.add,
      })
      const ended = running.then(
        ({ exitCode, signal }): TerminalExitStatus => ({ exitCode, signal }),
        (error: unknown): TerminalExitStatus => {
          if (abort.signal.aborted) return { exitCode: null, signal: 'SIGKILL' }
          tail.add(`${toAppError(error).message}\n`)
          return { exitCode: 127, signal: null }
        },
      )
      const terminal: Terminal = { abort, ended, tail, exit: undefined }
      void ended.then((exit) => (terminal.exit = exit))
      const id = `terminal-${++count}`
      terminals.set(id, terminal)
      return id
    },
    output: (id) => {
      const { tail, exit } = of(id)
      return { output: tail.text(), truncated: tail.truncated(), exitStatus: exit ?? null }
    },
    waitForExit: (id) => of(id).ended,
    kill: (id) => kill(of(id)),
    release: async (id) => {
      const terminal = of(id)
      terminals.delete(id)
      await kill(terminal)
    },
    busy: () => [...terminals.values()].some(({ exit }) => exit === undefined),
    end: async () => {
      closed = true
      await Promise.all([...terminals.values()].map(kill))
    },
  }
}

type Tail = { readonly add: (text: string) => void; readonly text: () => string; readonly truncated: () => boolean }

/** The protocol requires dropping output from the start, at a character boundary. */
const createTail = (limitBytes: number): Tail => {
  let kept = ''
  let cut = false
  const trim = (): void => {
    const bytes = Buffer.from(kept)
    if (bytes.length <= limitBytes) return
    let start = bytes.length - limitBytes
    while (start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1
    kept = bytes.toString('utf8', start)
    cut = true
  }
  return {
    add: (text) => {
      kept += text
      // Trimming at twice the limit copies each byte once on average.
      if (kept.length > limitBytes * 2) trim()
    },
    text: () => {
      trim()
      return kept
    },
    truncated: () => {
      trim()
      return cut
    },
  }
}
