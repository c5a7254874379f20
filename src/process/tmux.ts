/*
 * The only place that starts tmux. In: a socket of our own, names and texts. Out: sessions, what is on their screens,
 * and how their programs ended. Never touches the user's own tmux server.
 */
import type { Clock } from '../domain/clock.ts'
import { AppError } from '../domain/errors.ts'
import { runProgram } from './spawn.ts'

export type Tmux = {
  /** Creates a detached session. Its program's output also goes to `log`. */
  start(session: NewTmuxSession): Promise<{ readonly pid: number }>
  /** All sessions, with one process. Empty without a server. Throws if that can't be told. */
  list(): Promise<readonly TmuxPane[]>
  /** The last lines of a session's screen, with its history. */
  capture(name: string, lines: number): Promise<string>
  /** What a person who is attached sees now, without the history. */
  screen(name: string): Promise<string>
  /** As pasted, in brackets if the program asked for them. */
  paste(name: string, text: string): Promise<void>
  /** The key, also while somebody who is attached scrolls: tmux itself would take that one as a key of theirs. */
  enter(name: string): Promise<void>
  /** Ends the session. What ran in it gets a hangup, and may survive it. */
  end(name: string): Promise<void>
  /** The command that attaches a terminal to it. */
  attachCommand(name: string): readonly [command: string, ...args: string[]]
}

export type NewTmuxSession = {
  readonly name: string
  readonly directory: string
  /** The program and its arguments, run without a shell. */
  readonly command: readonly [string, ...string[]]
  /** A program that gets all output as its input. */
  readonly log: readonly [string, ...string[]]
  /** The Ctrl-C of somebody who is attached becomes Escape. */
  readonly escapeOnInterrupt?: boolean
  readonly columns?: number
  readonly rows?: number
}

/** The one pane of a session of ours. */
export type TmuxPane = {
  readonly session: string
  readonly pid: number
  readonly dead: boolean
  /** Undefined while it is alive, and sometimes just after. */
  readonly status: number | undefined
  readonly startedAt: number
}

export type TmuxOptions = {
  readonly socket: string
  /** The settings of our server, from `tmuxSettings`. Read when it starts. */
  readonly settingsFile: string
  /** The user's own variables; the server gets those that it needs, and passes them on to every session. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
}

const ESCAPES = '@escape-on-interrupt'

/** The pane of a program that has ended stays, so that its last words can be read. */
export const tmuxSettings = `set -g remain-on-exit on
set -g history-limit 20000
set -g default-terminal screen-256color
set -g mouse on
set -g status-left-length 40
set -g status-left '[#{session_name}] '
set -g status-right 'detach: C-b d'
set -g set-titles off
bind-key -n C-c if-shell -F '#{${ESCAPES}}' 'send-keys Escape' 'send-keys C-c'
`

/** `-t name` alone also means every session whose name starts with it. */
const sessionOf = (name: string): string => `=${name}`
const paneOf = (name: string): string => `=${name}:`

export const createTmux = ({ socket, settingsFile, env, clock }: TmuxOptions): Tmux => {
  const variables = serverEnvironment(env)
  let pastes = 0
  const call = async (args: readonly string[], stdin?: string): Promise<Called> => {
    const { exitCode, stdout, stderr, timedOut } = await runProgram({
      command: 'tmux',
      args: ['-S', socket, '-f', settingsFile, '-u', ...args],
      cwd: '/',
      env: variables,
      clock,
      timeoutMs: TIMEOUT_MS,
      outputLimitBytes: OUTPUT_BYTES,
      ...(stdin !== undefined && { stdin }),
    })
    if (timedOut) throw new AppError('timeout', `tmux: ${args[0]} took longer than ${TIMEOUT_MS / 1000} s`)
    return { exitCode, stdout, stderr }
  }
  const run = async (args: readonly string[], stdin?: string): Promise<string> => {
    const called = await call(args, stdin)
    if (called.exitCode === 0) return called.stdout
    throw new AppError(
      'program-failed',
      `tmux: ${args[0]} failed: ${called.stderr.trim() || `exit code ${called.exitCode}`}`,
    )
  }
  const paste = async (name: string, text: string, options: readonly string[]): Promise<void> => {
    // Of this paste alone: others may be pasting into other sessions.
    const buffer = `coppice-${process.pid}-${name}-${(pastes += 1)}`
    await run(['load-buffer', '-b', buffer, '-'], text)
    await run(['paste-buffer', '-d', ...options, '-b', buffer, '-t', paneOf(name)])
  }
  return {
    start: async ({ name, directory, command, log, escapeOnInterrupt = false, columns = 200, rows = 50 }) => {
      // One call: whatever the program prints first is in the log, too.
      const create = ['new-session', '-d', '-P', '-F', '#{pane_pid}', '-s', name, '-c', directory]
      const size = ['-x', String(columns), '-y', String(rows)]
      const pipe = ['pipe-pane', '-o', '-t', paneOf(name), shellLine(log)]
      const escapes = escapeOnInterrupt ? [';', 'set-option', '-t', paneOf(name), ESCAPES, '1'] : []
      const stdout = await run([...create, ...size, '--', ...command, ';', ...pipe, ...escapes])
      const pid = Number(stdout.trim().split('\n')[0])
      if (Number.isSafeInteger(pid) && pid > 0) return { pid }
      throw new AppError('program-failed', `tmux: unknown process of the new session: ${stdout.slice(0, 200)}`)
    },
    list: async () => {
      const called = await call(['list-panes', '-a', '-F', PANE_FORMAT])
      if (called.exitCode === 0) return called.stdout.split('\n').flatMap(parsePane)
      if (isWithoutServer(called.stderr)) return []
      throw new AppError('program-failed', `tmux: the sessions can't be listed: ${called.stderr.trim()}`)
    },
    capture: (name, lines) => run(['capture-pane', '-p', '-J', '-t', paneOf(name), '-S', `-${lines}`]),
    screen: (name) => run(['capture-pane', '-p', '-J', '-t', paneOf(name)]),
    paste: (name, text) => paste(name, text, ['-p', '-r']),
    enter: (name) => paste(name, '\n', []),
    end: async (name) => {
      const called = await call(['kill-session', '-t', sessionOf(name)])
      if (called.exitCode === 0 || isWithoutServer(called.stderr) || /can't find session/.test(called.stderr)) return
      throw new AppError('program-failed', `tmux: the session ${name} can't be ended: ${called.stderr.trim()}`)
    },
    attachCommand: (name) => ['tmux', '-S', socket, '-u', 'attach-session', '-t', sessionOf(name)],
  }
}

type Called = { readonly exitCode: number | null; readonly stdout: string; readonly stderr: string }

const TIMEOUT_MS = 10_000
const OUTPUT_BYTES = 4_000_000

const PANE_FORMAT = '#{session_name}\t#{pane_pid}\t#{pane_dead}\t#{pane_dead_status}\t#{session_created}'

const parsePane = (line: string): TmuxPane[] => {
  const [session = '', pid = '', dead = '', status = '', created = ''] = line.split('\t')
  if (session === '' || !/^\d+$/.test(pid)) return []
  const ended = status === '' ? undefined : Number(status)
  return [{ session, pid: Number(pid), dead: dead === '1', status: ended, startedAt: Number(created) * 1000 }]
}

/** No server, or one that ends because its last session has: it says that there is nothing to choose from. */
const isWithoutServer = (stderr: string): boolean =>
  /no server running on|error connecting to .*\((?:No such file or directory|Connection refused)\)|no current (?:session|target)|server exited/.test(
    stderr,
  )

/** Run by tmux in `sh -c`, after it has expanded `#` and `%`. */
const shellLine = (words: readonly string[]): string => {
  const quoted = words.map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`)
  return `exec ${quoted.join(' ').replaceAll('#', '##').replaceAll('%', '%%')}`
}

/** Every session inherits what the server was started with: nothing of ours may be in it. */
const serverEnvironment = (env: TmuxOptions['env']): Record<string, string> =>
  Object.fromEntries(
    [
      ['PATH', env['PATH']],
      ['HOME', env['HOME']],
      ['USER', env['USER']],
      ['LANG', env['LANG']],
      ['LC_ALL', env['LC_ALL']],
      ['TERM', 'screen-256color'],
      ['SHELL', '/bin/sh'],
    ].filter((entry): entry is [string, string] => entry[1] !== undefined),
  )
