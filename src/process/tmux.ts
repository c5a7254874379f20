/*
 * The only place that starts tmux. In: a socket of our own, names and texts. Out: sessions, what is on their screens,
 * and how their programs ended. Never touches the user's own tmux server.
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
  /** Creates a detached session. Its program's output also goes to `log`. */
  start(session: NewTmuxSession): Promise<{ readonly pid: number }>
  /** The first pane of each session: a person who is attached may open more. Throws if that can't be told. */
  list(): Promise<readonly TmuxPane[]>
  /** The pane in which this process was started. Throws if there is none. */
  paneOf(pid: number): Promise<TmuxPane>
  /** The last lines of its screen, with its history. */
  capture(pane: TmuxPane, lines: number): Promise<string>
  /** What a person who is attached sees now, without the history. */
  screen(pane: TmuxPane): Promise<string>
  /** As pasted, in brackets if the program asked for them. */
  paste(pane: TmuxPane, text: string): Promise<void>
  /** The key, also while somebody who is attached scrolls: tmux itself would take that one as a key of theirs. */
  enter(pane: TmuxPane): Promise<void>
  /** Ends the session. What ran in it gets a hangup, and may survive it. */
  end(name: string): Promise<void>
  /** What attaches a terminal to it. */
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
  /** A program that gets all output as its input. */
  readonly log: readonly [string, ...string[]]
  /** The Ctrl-C of somebody who is attached becomes Escape. */
  readonly escapeOnInterrupt?: boolean
  readonly columns?: number
  readonly rows?: number
}

export type TmuxPane = {
  /** Unique for the life of the server: `%3`. */
  readonly id: string
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
  /** 3 of 100 that come right after the last session's end reach the server as it exits. The next one starts another. */
  const createIn = async (words: readonly string[]): Promise<string> => {
    for (let left = TRIES; ; left -= 1) {
      const called = await call(words, { program: unmarked })
      if (called.exitCode === 0) return called.stdout
      if (left === 1 || !isWithoutServer(called.stderr)) throw failed(words, called)
      await delay(50)
    }
  }
  const paste = async ({ id }: TmuxPane, text: string, options: readonly string[]): Promise<void> => {
    // Of this paste alone: others may be pasting into other sessions.
    const buffer = `coppice-${process.pid}-${id.slice(1)}-${(pastes += 1)}`
    await run(['load-buffer', '-b', buffer, '-'], { stdin: text })
    await run(['paste-buffer', '-d', ...options, '-b', buffer, '-t', id])
  }
  return {
    start: async ({ name, directory, command, log, escapeOnInterrupt = false, columns = 200, rows = 50 }) => {
      // One call: whatever the program prints first is in the log, too.
      const create = ['new-session', '-d', '-P', '-F', '#{pane_pid}', '-s', name, '-c', word(literal(directory))]
      const size = ['-x', String(columns), '-y', String(rows)]
      const pipe = ['pipe-pane', '-o', '-t', firstPaneOf(name), shellLine(log)]
      const escapes = escapeOnInterrupt ? [';', 'set-option', '-p', '-t', firstPaneOf(name), ESCAPES, '1'] : []
      // It may start the server, which belongs to all sessions, even if an agent asks for this from within one.
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
    // It starts a server if ours has just ended. That one must not have the user's settings, which could keep it
    // running, nor the user's variables, which the next sessions would inherit.
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

/** Ids are given in order. */
const firstOf = (panes: readonly TmuxPane[]): readonly TmuxPane[] =>
  panes.toSorted((a, b) => Number(a.id.slice(1)) - Number(b.id.slice(1))).slice(0, 1)

/** A semicolon at the end of an argument would begin the next command of tmux. */
const word = (text: string): string => (text.endsWith(';') ? `${text.slice(0, -1)}\\;` : text)

/** tmux expands `#H`, `#{…}` and even `#(command)` in a directory. `#[`, however many # it has, stays as it is. */
const literal = (text: string): string => text.replaceAll(/#+(?![#[])/g, '$&$&')

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

/** Through a link we would command somebody else's server. */
const assertOwn = (socket: string): void => {
  const found = lstatIfThere(socket)
  if (found?.isSymbolicLink() === true) throw notAFile(socket, found)
}

/** Our server, whether it can be reached or not. Its command line is that of the call which started it. */
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
