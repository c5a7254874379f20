import { type AppError, toAppError } from '../domain/errors.ts'
import type { Call, Workplace } from './command.ts'
import { isSet, textOf } from './command.ts'
import { exitCodeOf, exitCodes, failureDetails, failureJson, failureText, faultOf } from './failure.ts'
import { parse, type Parsed } from './parse.ts'
import type { Progress } from './progress.ts'
import { type Paint, printable, type View } from './view.ts'

/** The outside of a command line: what it was called with and where its words go. */
export type Terminal = {
  readonly argv: readonly string[]
  readonly cwd: () => string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: () => number
  readonly signal: AbortSignal
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  readonly paint: Paint
  readonly paintErr: Paint
  readonly progress: Progress
  readonly version: () => string
  readonly redact: (text: string) => string
  readonly open: (options: OpenOptions) => Promise<Workplace>
}

export type OpenOptions = { readonly home: string | undefined; readonly verbose: boolean }

/** Runs one command line and answers its exit code. Never throws. */
export const runCli = async (terminal: Terminal): Promise<number> => {
  const wantsJson = terminal.argv.includes('--json')
  const verbose = terminal.argv.includes('--verbose') || (terminal.env['COPPICE_DEBUG'] ?? '') !== ''
  try {
    return await execute(terminal, parse(terminal.argv), verbose)
  } catch (thrown) {
    terminal.progress.clear()
    const { fault, cancelled } = faultOf(thrown, terminal.signal)
    if (cancelled) terminal.err('Cancelled: nothing was left half done.\n')
    else tell(terminal, fault, wantsJson)
    if (verbose) terminal.err(`${terminal.redact(failureDetails(thrown))}\n`)
    return cancelled ? exitCodes.interrupted : exitCodeOf(toAppError(thrown))
  }
}

const execute = async (terminal: Terminal, parsed: Parsed, verbose: boolean): Promise<number> => {
  switch (parsed.kind) {
    case 'version':
      terminal.out(`${terminal.version()}\n`)
      return 0
    case 'help': {
      const { helpFor, overview } = await import('./help.ts')
      const { of } = parsed
      const text =
        of === undefined || typeof of === 'string' ? overview(terminal.paint, of) : helpFor(of, terminal.paint)
      terminal.out(`${text}\n`)
      return 0
    }
    case 'command':
      return runCommand(terminal, parsed, verbose)
  }
}

const runCommand = async (
  terminal: Terminal,
  { row, words, values }: Extract<Parsed, { kind: 'command' }>,
  verbose: boolean,
): Promise<number> => {
  let workplace: Promise<Workplace> | undefined
  const notices: string[] = []
  const call: Call = {
    words,
    values,
    codebase: textOf(values, 'codebase'),
    cwd: terminal.cwd(),
    signal: terminal.signal,
    open: () => (workplace ??= terminal.open({ home: textOf(values, 'home'), verbose })),
    notice: (text) => notices.push(text),
  }
  try {
    const loaded = await row.load()
    const answered = await loaded.execute(call)
    terminal.progress.clear()
    for (const notice of notices)
      terminal.err(`${terminal.paintErr('yellow', 'note:')} ${printable(terminal.redact(notice))}\n`)
    if (isSet(values, 'json')) terminal.out(`${JSON.stringify(answered.json(), undefined, 2)}\n`)
    else {
      const text = answered.text(viewOf(terminal))
      // A refusal is no answer to go on with: it must not end up in a pipe or a variable.
      const write = answered.exitCode === exitCodes.refused ? terminal.err : terminal.out
      if (text !== '') write(`${text}\n`)
    }
    return answered.exitCode
  } finally {
    // A workplace that could not be opened has nothing to close; its fault is being told already.
    const opened = await workplace?.catch(() => undefined)
    await opened?.context.store.close()
  }
}

export const viewOf = (terminal: Pick<Terminal, 'paint' | 'clock' | 'env'>): View => ({
  paint: terminal.paint,
  now: terminal.clock(),
  userHome: terminal.env['HOME'],
  say: (command) => `coppice ${command}`,
})

const tell = (terminal: Terminal, fault: AppError, asJson: boolean): void => {
  if (asJson) terminal.out(`${JSON.stringify(failureJson(fault, terminal.redact), undefined, 2)}\n`)
  else terminal.err(`${terminal.paintErr('red', 'coppice:')} ${terminal.redact(failureText(fault))}\n`)
}
