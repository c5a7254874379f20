import type { Launch } from '../../domain/program.ts'
import { RequestError } from '@agentclientprotocol/sdk'
import type { CreateTerminalRequest, TerminalExitStatus, TerminalOutputResponse } from '@agentclientprotocol/sdk'
import type { Clock } from '../../domain/clock.ts'
import { toAppError } from '../../domain/errors.ts'
import type { RunMark } from '../../process/run-mark.ts'
import { runProgram } from '../../process/spawn.ts'
import { directoryInside } from './inside.ts'

export type Terminals = {
  create(request: CreateTerminalRequest): Promise<string>
  output(id: string): TerminalOutputResponse
  waitForExit(id: string): Promise<TerminalExitStatus>
  /** Its whole tree is dead when this answers; its output stays. */
  kill(id: string): Promise<void>
  release(id: string): Promise<void>
  /** Whether one is at work: then silence is not a stall. */
  busy(): boolean
  /** Ends all of them and takes no more. */
  end(): Promise<void>
}

export type TerminalsOptions = {
  readonly launch: Launch | undefined
  /** The environment, and the only place where anything is run. */
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
const MOST_OUTPUT_BYTES = 1_000_000
const MOST_TERMINALS = 64
const GRACE_MS = 2_000

/** Commands that an agent has us run: each in a process group of its own, with the agent's environment, capped. */
export const createTerminals = ({ root, environment, clock, mark, launch }: TerminalsOptions): Terminals => {
  const terminals = new Map<string, Terminal>()
  let count = 0
  let over = false

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
      if (over || terminals.size >= MOST_TERMINALS) {
        throw RequestError.invalidRequest(undefined, over ? 'the run is over' : 'too many terminals')
      }
      const abort = new AbortController()
      const tail = createTail(Math.min(outputByteLimit ?? MOST_OUTPUT_BYTES, MOST_OUTPUT_BYTES))
      const running = runProgram({
        // A line of shell comes as a command without arguments: `npm test`.
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
      over = true
      await Promise.all([...terminals.values()].map(kill))
    },
  }
}

type Tail = { readonly add: (text: string) => void; readonly text: () => string; readonly truncated: () => boolean }

/** As the protocol wants it: beyond the limit the beginning goes, at a character's boundary. */
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
      // Only at twice the limit, so that each byte is copied once on average.
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
