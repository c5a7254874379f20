/*
 * The command line. In: arguments and a terminal. Out: text or JSON, and an exit code.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type AppError, toAppError } from '../domain/errors.ts'
import type { Values, Workplace } from '../commands/command.ts'
import { isSet, textOf } from '../commands/command.ts'
import {
  exitCodeOf,
  exitCodes,
  failureDetails,
  failureJson,
  failureText,
  faultMessage,
  faultOf,
} from '../commands/views/failure.ts'
import { inWords } from '../commands/views/notices.ts'
import type { Parsed } from '../commands/grammar/parse.ts'
import type { Secrets } from '../process/redaction/redact.ts'
import type { OwnEngine } from './chat/without-server.ts'
import type { DeliverHooks } from './deliver-hooks.ts'
import type { CliCall, ServeOptions, Serving } from './cli-call.ts'
import { helpFor, overview } from './help.ts'
import { parse } from './parse.ts'
import { type CliRow, opensEarly } from './table.ts'
import type { Progress } from './progress.ts'
import { usage } from '../commands/grammar/usage.ts'
import type { Notice } from '../domain/notice.ts'
import { reasonsOf } from '../domain/reasoned-error.ts'
import { shellWord } from '../domain/text/shell-word.ts'
import { withFullStop } from '../domain/text/words.ts'
import { remedySentence } from '../commands/views/remedy.ts'
import { asProgram, type Paint, plain, printable, type View } from '../commands/views/view.ts'

/** The process around a command line: its arguments and outputs. */
export type Terminal = {
  readonly argv: readonly string[]
  readonly cwd: () => string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: () => number
  readonly signal: AbortSignal
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  readonly paint: Paint
  /** Whether `out` is a terminal. */
  readonly isTerminal: boolean
  /** The terminal's width; undefined if it isn't one. */
  readonly columns: number | undefined
  readonly paintErr: Paint
  readonly progress: Progress
  readonly version: () => string
  readonly secrets: Pick<Secrets, 'redact' | 'redactKnown'>
  readonly open: (options: OpenOptions) => Promise<Workplace>
  readonly serve: (workplace: Workplace, options: ServeOptions) => Promise<Serving>
  readonly ownEngine: (workplace: Workplace, conversationId: string) => Promise<OwnEngine>
  readonly deliver: DeliverHooks
  /** Aborted when whoever reads the output has closed it. */
  readonly outputClosed: AbortSignal
}

export type OpenOptions = {
  readonly home: string | undefined
  readonly verbose: boolean
  /** The directory of the repository git will query, if known before opening. */
  readonly near: string | undefined
}

/** Runs one command line and returns its exit code. Never throws. */
export const runCli = async (terminal: Terminal): Promise<number> => {
  const wantsJson = terminal.argv.includes('--json')
  const verbose = terminal.argv.includes('--verbose') || (terminal.env['COPPICE_DEBUG'] ?? '') !== ''
  const speaker = { commandText: asProgram.commandText }
  try {
    const parsed = parse(terminal.argv)
    if (parsed.kind === 'command') speaker.commandText = commandTextWith(parsed.values)
    return await execute(terminal, parsed, verbose)
  } catch (thrown) {
    terminal.progress.clear()
    const { fault, cancelled } = faultOf(thrown, terminal.signal)
    if (cancelled) terminal.err(`${terminal.secrets.redact(cancelledText(fault, speaker))}\n`)
    else tell(terminal, fault, speaker, wantsJson)
    if (verbose) terminal.err(`${terminal.secrets.redact(failureDetails(thrown))}\n`)
    return cancelled ? exitCodes.interrupted : exitCodeOf(toAppError(thrown))
  }
}

/** The remedy says what was left, and where. */
const cancelledText = (fault: AppError, speaker: Speaker): string => {
  const { code, remedy } = fault
  if (code !== 'cancelled' || remedy === undefined) return 'Cancelled: nothing was left half done.'
  const left = reasonsOf(fault).length === 0 ? '' : `${withFullStop(faultMessage(fault, speaker))} `
  return `Cancelled. ${left}${remedySentence(remedy, speaker)}`
}

const execute = async (terminal: Terminal, parsed: Parsed<CliRow>, verbose: boolean): Promise<number> => {
  switch (parsed.kind) {
    case 'version':
      terminal.out(`${terminal.version()}\n`)
      return 0
    case 'help': {
      const { of } = parsed
      const sheet = { paint: terminal.paint, columns: terminal.columns ?? 80 }
      const text = of === undefined || typeof of === 'string' ? overview(sheet, of) : helpFor(of, sheet)
      terminal.out(`${text}\n`)
      return 0
    }
    case 'command':
      return runCommand(terminal, parsed, verbose)
  }
}

const runCommand = async (
  terminal: Terminal,
  { row, words, values }: Extract<Parsed<CliRow>, { kind: 'command' }>,
  verbose: boolean,
): Promise<number> => {
  let workplace: Promise<Workplace> | undefined
  // As a path it would be the current directory.
  if (textOf(values, 'home') === '') throw usage('--home requires a directory', 'pass a directory, or omit --home')
  const [cwd, codebase] = [terminal.cwd(), textOf(values, 'codebase')]
  const near = opensEarly.has(row.name) && codebase === undefined ? cwd : undefined
  const notices: (Notice | string)[] = []
  const view = viewOf(terminal, values)
  const tellNotices = (): void => {
    for (const notice of notices.splice(0)) {
      const words = printable(terminal.secrets.redact(inWords(notice, view)))
      terminal.err(`${terminal.paintErr('yellow', 'note:')} ${words}\n`)
    }
  }
  let first: number | undefined
  const openWatched = async (): Promise<Workplace> => {
    const opened = await terminal.open({ home: textOf(values, 'home'), verbose, near })
    opened.context.store.events.onRecorded((number) => (first ??= number))
    return opened
  }
  const open = (): Promise<Workplace> => (workplace ??= openWatched())
  const call: CliCall = {
    words,
    values,
    codebase,
    cwd,
    env: terminal.env,
    signal: terminal.signal,
    open,
    notice: (notice) => notices.push(notice),
    live: isSet(values, 'json') ? undefined : (text) => terminal.out(terminal.secrets.redact(text)),
    output: {
      isJson: isSet(values, 'json'),
      view,
      write: (text) => terminal.out(terminal.secrets.redactKnown(text)),
      closed: terminal.outputClosed,
    },
    showSecret: isSet(values, 'json') || !terminal.isTerminal ? undefined : terminal.out,
    serve: async (options) => terminal.serve(await open(), options),
    ownEngine: async (conversationId) => terminal.ownEngine(await open(), conversationId),
  }
  try {
    if (opensEarly.has(row.name)) await call.open()
    const loaded = await row.load()
    const answered = await loaded.execute(call)
    terminal.progress.clear()
    tellNotices()
    if (isSet(values, 'json')) {
      const json = answered.json({ ...view, paint: plain, userHome: undefined, columns: undefined })
      if (json !== undefined) terminal.out(`${JSON.stringify(json, withoutSecrets(terminal), 2)}\n`)
    } else {
      const text = terminal.secrets.redactKnown(answered.text(view))
      // A refusal isn't a result: it must not end up in a pipe or a variable.
      const write = answered.exitCode === exitCodes.refused ? terminal.err : terminal.out
      if (text !== '') write(`${text}\n`)
    }
    return answered.exitCode
  } catch (error) {
    terminal.progress.clear()
    // Recoveries are reported whatever the command's outcome.
    tellNotices()
    throw error
  } finally {
    // If opening failed, there is nothing to close, and the error is already being reported.
    const opened = await workplace?.catch(() => undefined)
    if (opened !== undefined) {
      const ended = { command: row.name, first }
      // Only if there may be a server: usually there is none.
      const mayServe = !opensEarly.has(row.name) && existsSync(join(opened.context.home, 'server.json'))
      if (mayServe) await (await import('./wake-server.ts')).wakeServer(opened.context, ended)
      if (opened.context.settings.hooks.length > 0) {
        await (await import('./deliver-hooks.ts')).deliverHooks(terminal, opened, ended)
      }
      await opened.context.store.close()
    }
  }
}

/** Per string: a secret must not break the JSON, and a name that merely looks like one must stay. */
const withoutSecrets =
  ({ secrets }: Pick<Terminal, 'secrets'>) =>
  (_key: string, value: unknown): unknown =>
    typeof value === 'string' ? secrets.redactKnown(value) : value

const viewOf = (terminal: Pick<Terminal, 'paint' | 'clock' | 'env' | 'columns' | 'secrets'>, values: Values): View => ({
  paint: terminal.paint,
  now: terminal.clock(),
  userHome: terminal.env['HOME'],
  commandText: commandTextWith(values),
  columns: terminal.columns,
  redact: terminal.secrets.redactKnown,
})

/** Suggested commands keep the codebase and home, or they would act on others. */
const commandTextWith =
  (values: Values): View['commandText'] =>
  (text) => {
    const [codebase, home] = [textOf(values, 'codebase'), textOf(values, 'home')]
    const kept = [
      ...(codebase === undefined || !/^(?:worktree|cleanup|diff)\b/.test(text)
        ? []
        : [`--codebase ${shellWord(codebase)}`]),
      ...(home === undefined ? [] : [`--home ${shellWord(home)}`]),
    ]
    return ['coppice', text, ...kept.filter((flag) => !text.includes(flag.split(' ')[0] ?? ''))].join(' ')
  }

type Speaker = Pick<View, 'commandText'>

const tell = (terminal: Terminal, fault: AppError, speaker: Speaker, asJson: boolean): void => {
  if (asJson) terminal.out(`${JSON.stringify(failureJson(fault, speaker, terminal.secrets.redact), undefined, 2)}\n`)
  else terminal.err(`${terminal.paintErr('red', 'coppice:')} ${terminal.secrets.redact(failureText(fault, speaker))}\n`)
}
