/*
 * The only module that starts tmux. In: our own socket, names and texts. Out: sessions, their screens, and how their
 * programs ended. Never uses the user's tmux server.
 */
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../domain/clock.ts'
import { AppError } from '../domain/errors.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { argumentsOf } from './arguments.ts'
import { lstatIfThere } from './files/lstat-if-there.ts'
import { makeDirectorySync } from './files/make-directory.ts'
import { notAFile } from './files/read-untrusted.ts'
import { liveness } from './identity.ts'
import { askToReopenSocket } from './kill.ts'
import { runProgram } from './spawn.ts'
import { unmarked } from './spawn-unmarked.ts'
import { processTable } from './table.ts'

export type Tmux = {
  /** Creates a detached session, and pipes its output to `log`. */
  start(session: NewTmuxSession): Promise<{ readonly pid: number }>
  /** The first pane of each session; an attached person may have opened more. Throws if they can't be listed. */
  list(): Promise<readonly TmuxPane[]>
  /** The pane that this process was started in. Throws if there is none. */
  paneOf(pid: number): Promise<TmuxPane>
  /** The last lines, including the history. */
  capture(pane: TmuxPane, lines: number): Promise<string>
  /** What an attached person sees now, without the history. */
  screen(pane: TmuxPane): Promise<string>
  /** Pastes a text, as a bracketed paste if the program asked for that. */
  paste(pane: TmuxPane, text: string): Promise<void>
  /** Sends Enter, even while an attached person is scrolling, when tmux would take a sent key as theirs. */
  enter(pane: TmuxPane): Promise<void>
  /** Ends the session. Its processes get SIGHUP and may survive it. */
  end(name: string): Promise<void>
  /** The command that attaches a terminal. */
  attachCommand(name: string): AttachCommand
}

export type AttachCommand = {
  readonly command: readonly [string, ...string[]]
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>
}

export type NewTmuxSession = {
  readonly name: string
  readonly directory: string
  /** The program and its arguments, run without a shell. */
  readonly command: readonly [string, ...string[]]
  /** A program that gets the session's output as its input. */
  readonly log: readonly [string, ...string[]]
  /** Send Escape for an attached person's Ctrl-C. */
  readonly escapeOnInterrupt?: boolean
  readonly columns?: number
  readonly rows?: number
}

export type TmuxPane = {
  /** Unique per server: `%3`. */
  readonly id: string
  readonly session: string
  readonly pid: number
  readonly dead: boolean
  /** Undefined while the program is alive, and sometimes shortly after. */
  readonly status: number | undefined
  readonly startedAt: number
}

export type TmuxOptions = {
  readonly socket: string
  /** A file with `tmuxSettings`, which the server reads when it starts. */
  readonly settingsFile: string
  /** The user's variables. The server gets the few that it needs, and passes them on to every session. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
}

const ESCAPES = '@escape-on-interrupt'

/** Written when a program ends. tmux 3.3 sometimes does so only when the next one ends, too. */
export const deathsFile = (socket: string): string => `${socket}.died`

/** A pane stays after its program has ended, so that its last output can be read. */
export const tmuxSettings = `set -g remain-on-exit on
set-hook -g pane-died "run-shell -b 'echo died > ${deathsFile('#{q:socket_path}')}'"
set -g history-limit 20000
set -g default-terminal screen-256color
set -g mouse on
set -g status-left-length 40
set -g status-left '[#{session_name}] '
set -g status-right 'detach: C-b d'
set -g set-titles off
bind-key -n C-c if-shell -F '#{${ESCAPES}}' 'send-keys Escape' 'send-keys C-c'
`

/** With `=`, because `-t name` also matches sessions whose names start with it. */
const sessionOf = (name: string): string => `=${name}`
const firstPaneOf = (name: string): string => `=${name}:`

export const createTmux = ({ socket, settingsFile, env, clock }: TmuxOptions): Tmux => {
  const variables = serverEnvironment(env)
  let pastes = 0
  const call = async (args: readonly string[], { stdin, program = plain }: CallOptions = {}): Promise<Called> => {
    assertOwn(socket)
    const { exitCode, stdout, stderr, timedOut } = await runProgram({
      ...program('tmux', ['-S', socket, '-f', settingsFile, '-u', ...args]),
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
  const run = async (args: readonly string[], options?: CallOptions): Promise<string> => {
    const called = await call(args, options)
    if (called.exitCode === 0) return called.stdout
    throw failed(args, called)
  }
  const panes = async (): Promise<readonly TmuxPane[]> => {
    const ask = (): Promise<Called> => call(['list-panes', '-a', '-F', PANE_FORMAT])
    let called = await ask()
    if (called.exitCode !== 0 && isWithoutServer(called.stderr)) {
      const server = await ownServer(socket)
      if (server === undefined) return []
      await reopenSocket(socket, server)
      called = await ask()
      if (isWithoutServer(called.stderr) && liveness(server) === 'dead') return []
    }
    if (called.exitCode === 0) return called.stdout.split('\n').flatMap(parsePane)
    throw new AppError('program-failed', `tmux: the sessions can't be listed: ${called.stderr.trim()}`)
  }
  /** Right after the last session's end, 3 of 100 calls reach the server while it exits. The next try starts a new one. */
  const createIn = async (words: readonly string[]): Promise<string> => {
    for (let left = TRIES; ; left -= 1) {
      // Unmarked: this may start the server, which must not belong to the session of an agent that runs this command.
      const called = await call(words, { program: unmarked })
      if (called.exitCode === 0) return called.stdout
      if (left === 1 || !isWithoutServer(called.stderr)) throw failed(words, called)
      await delay(50)
    }
  }
  const paste = async ({ id }: TmuxPane, text: string, options: readonly string[]): Promise<void> => {
    // A buffer of its own, because other processes may be pasting into other sessions.
    const buffer = `coppice-${process.pid}-${id.slice(1)}-${(pastes += 1)}`
    await run(['load-buffer', '-b', buffer, '-'], { stdin: text })
    await run(['paste-buffer', '-d', ...options, '-b', buffer, '-t', id])
  }
  return {
    start: async ({ name, directory, command, log, escapeOnInterrupt = false, columns = 200, rows = 50 }) => {
      // One call, so that the log also gets the first output.
      const create = ['new-session', '-d', '-P', '-F', '#{pane_pid}', '-s', name, '-c', word(literal(directory))]
      const size = ['-x', String(columns), '-y', String(rows)]
      const pipe = ['pipe-pane', '-o', '-t', firstPaneOf(name), shellLine(log)]
      const escapes = escapeOnInterrupt ? [';', 'set-option', '-p', '-t', firstPaneOf(name), ESCAPES, '1'] : []
      const words = [...create, ...size, '--', ...command.map(word), ';', ...pipe, ...escapes]
      const stdout = await createIn(words)
      const pid = Number(stdout.trim().split('\n')[0])
      if (Number.isSafeInteger(pid) && pid > 0) return { pid }
      throw new AppError('program-failed', `tmux: unknown process of the new session: ${stdout.slice(0, 200)}`)
    },
    list: async () => [...Map.groupBy(await panes(), ({ session }) => session).values()].flatMap(firstOf),
    paneOf: async (pid) => {
      const found = (await panes()).find((pane) => pane.pid === pid)
      if (found !== undefined) return found
      throw new AppError('program-failed', `tmux: process ${pid} has no terminal any more`)
    },
    capture: ({ id }, lines) => run(['capture-pane', '-p', '-J', '-t', id, '-S', `-${lines}`]),
    screen: ({ id }) => run(['capture-pane', '-p', '-J', '-t', id]),
    paste: (pane, text) => paste(pane, text, ['-p', '-r']),
    enter: (pane) => paste(pane, '\n', []),
    end: async (name) => {
      const called = await call(['kill-session', '-t', sessionOf(name)])
      if (called.exitCode === 0 || isWithoutServer(called.stderr) || /can't find session/.test(called.stderr)) return
      throw new AppError('program-failed', `tmux: the session ${name} can't be ended: ${called.stderr.trim()}`)
    },
    // If our server has just ended, this starts a new one. That must not get the user's settings, which could keep it
    // running, or the user's variables, which later sessions would inherit.
    attachCommand: (name) => ({
      command: ['tmux', '-S', socket, '-f', settingsFile, '-u', 'attach-session', '-t', sessionOf(name)],
      env: { ...variables, TERM: env['TERM'] ?? 'screen' },
    }),
  }
}

type CallOptions = { readonly stdin?: string; readonly program?: typeof unmarked }
const plain: typeof unmarked = (command, args) => ({ command, args })

type Called = { readonly exitCode: number | null; readonly stdout: string; readonly stderr: string }

const failed = ([verb]: readonly string[], { stderr, exitCode }: Called): AppError =>
  new AppError('program-failed', `tmux: ${verb} failed: ${stderr.trim() || `exit code ${exitCode}`}`)

const TRIES = 5
const TIMEOUT_MS = 10_000
const OUTPUT_BYTES = 4_000_000

const PANE_FORMAT = '#{pane_id}\t#{session_name}\t#{pane_pid}\t#{pane_dead}\t#{pane_dead_status}\t#{session_created}'

const parsePane = (line: string): TmuxPane[] => {
  const [id = '', session = '', pid = '', dead = '', status = '', created = ''] = line.split('\t')
  if (!/^%\d+$/.test(id) || session === '' || !/^\d+$/.test(pid)) return []
  const ended = status === '' ? undefined : Number(status)
  return [{ id, session, pid: Number(pid), dead: dead === '1', status: ended, startedAt: Number(created) * 1000 }]
}

/** tmux numbers panes in the order in which they are opened. */
const firstOf = (panes: readonly TmuxPane[]): readonly TmuxPane[] =>
  panes.toSorted((a, b) => Number(a.id.slice(1)) - Number(b.id.slice(1))).slice(0, 1)

/** A semicolon at the end of an argument would start tmux's next command. */
const word = (text: string): string => (text.endsWith(';') ? `${text.slice(0, -1)}\\;` : text)

/** tmux expands `#H`, `#{…}` and even `#(command)` in a directory. `#[`, however many # it has, stays as it is. */
const literal = (text: string): string =>
  text.replaceAll(/(#+)(\[?)/g, (whole, run: string, bracket) => (bracket === '' ? run + run : whole))

/** There is no server, or it is ending with its last session ("no current session"). */
const isWithoutServer = (stderr: string): boolean =>
  /no server running on|error connecting to .*\((?:No such file or directory|Connection refused)\)|no current (?:session|target)|server exited/.test(
    stderr,
  )

/** Run by tmux in `sh -c`, after it has expanded `#` and `%`. */
const shellLine = (words: readonly string[]): string => {
  const quoted = words.map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`)
  return `exec ${quoted.join(' ').replaceAll('#', '##').replaceAll('%', '%%')}`
}

/** Every session inherits the server's variables, so it gets none of ours. */
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

/** Through a link, we would control another tmux server. */
const assertOwn = (socket: string): void => {
  const found = lstatIfThere(socket)
  if (found?.isSymbolicLink() === true) throw notAFile(socket, found)
}

/**
 * Our server, even if unreachable. Recognised by its command line, that of the call that started it, which names the
 * socket.
 */
const ownServer = async (socket: string): Promise<ProcessIdentity | undefined> => {
  for (const { identity, command } of await processTable()) {
    if (!(process.platform === 'linux' ? command === 'tmux: server' : command.includes('tmux'))) continue
    const words = await argumentsOf(identity.pid)
    if (words?.[1] === '-S' && words[2] === socket && words.includes('new-session')) return identity
  }
  return undefined
}

/**
 * If the socket's file was deleted or replaced, our server runs on and nobody reaches it: it is asked to create the file
 * anew, and removes what is there. It may also be ending just now.
 */
const reopenSocket = async (socket: string, server: ProcessIdentity): Promise<void> => {
  makeDirectorySync(dirname(socket))
  const before = createdAt(socket)
  if (!askToReopenSocket(server)) return
  const deadline = performance.now() + REOPEN_MS
  const isWaiting = (): boolean => [before, undefined].includes(createdAt(socket)) && liveness(server) !== 'dead'
  while (isWaiting() && performance.now() < deadline) await delay(10)
}

/** An inode may be used again at once. */
const createdAt = (path: string): number | undefined => lstatIfThere(path)?.ctimeMs

const REOPEN_MS = 2_000
