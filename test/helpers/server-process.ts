import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe } from 'vitest'
import type { IsolationHints } from '../../src/domain/hints.ts'
import { everyCase } from './every-case.ts'
import { built } from './built.ts'
import { clearCgroups } from './cgroups.ts'
import type { CliResult } from './cli.ts'
import { startPostgres, type TestPostgres } from './postgres.ts'
import { makeSandbox, type Sandbox, type TestRepo } from './repo.ts'
import { needsOwnProcess, runWarm } from './warm-cli.ts'

const root = resolve(import.meta.dirname, '../..')
const node = join(root, 'node_modules/.bin/node')
const main = built('src/main.ts')

/** A sandbox with a home in which the real server runs as a process, and the real command line as in `makeCliWorld`. */
export type ServerWorld = {
  readonly box: Sandbox
  readonly home: string
  readonly env: Record<string, string>
  /** Starts the server and waits until it is ready. Whatever is given here counts for this start only. */
  serve(options?: ServeOptions): Promise<ServerProcess>
  /** The command line to its end. */
  cli(cwd: string, ...args: string[]): Promise<CliResult>
  cliWith(env: Record<string, string>, cwd: string, ...args: string[]): Promise<CliResult>
  /** Never as a process of its own, a `chat` neither: for one that nothing runs beside and no signal ends. */
  warm(env: Record<string, string>, cwd: string, ...args: string[]): Promise<CliResult>
  /** Its JSON answer; it has to succeed. */
  json<T = Record<string, unknown>>(cwd: string, ...args: string[]): Promise<T>
  /** What a terminal does to all that runs in it. */
  interrupt(signal: NodeJS.Signals): void
  /** A repository with a bare `origin`, registered as a codebase. */
  project(name?: string): Promise<TestRepo & { readonly origin: string }>
  [Symbol.asyncDispose](): Promise<void>
}

export type ServeOptions = {
  readonly args?: readonly string[]
  readonly env?: Record<string, string>
  /** How it is started, instead of as it is built: what stands before its arguments. */
  readonly program?: readonly string[]
}

export type Said = { readonly role: 'user' | 'agent' | 'system'; readonly text: string; readonly at: string }

export type SayOptions = {
  readonly hints?: IsolationHints
  readonly codebase?: string
  readonly deliveryId?: string
}

export type ServerProcess = {
  readonly url: string
  readonly token: string
  readonly child: ChildProcess
  /** With the token. */
  call(path: string, init?: RequestInit): Promise<Response>
  post(path: string, body: unknown): Promise<Response>
  /** Answers once it is accepted; throws when it is not. */
  say(conversationId: string, message: string, options?: SayOptions): Promise<{ id: string; outcome: string }>
  /** Says it, waits until all is quiet, and answers what was said since. */
  ask(conversationId: string, message: string, options?: SayOptions): Promise<readonly Said[]>
  /** Closes it, waits until all is quiet, and answers what was said since. */
  close(conversationId: string): Promise<readonly Said[]>
  messages(conversationId: string): Promise<readonly Said[]>
  metrics(): Promise<ReadonlyMap<string, number>>
  /** Nothing waits, nothing runs, everything is delivered. */
  quiet(): Promise<void>
  /** Ends it with a signal and answers all it printed. */
  stop(signal?: NodeJS.Signals): Promise<CliResult>
  readonly exit: Promise<CliResult>
}

/** Without spares unless asked: they are made by a process that outlives the server. */
export const makeServerWorld = (
  options: { readonly config?: string; readonly env?: Record<string, string> } = {},
): ServerWorld => {
  const box = makeSandbox()
  const home = box.path('state')
  mkdirSync(home, { mode: 0o700 })
  writeFileSync(join(home, 'config.yaml'), options.config ?? 'worktrees:\n  spares: 0\n')
  const env = { ...box.env, TMPDIR: box.root, ...options.env }
  const running = new Set<ChildProcess>()
  const start = (
    given: Record<string, string>,
    cwd: string,
    args: readonly string[],
    [command = node, ...before]: readonly string[] = [node, main],
  ): ChildProcess => {
    const child = spawn(command, [...before, ...args, '--home', home], {
      cwd,
      env: { ...env, ...given },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    running.add(child)
    child.once('exit', () => running.delete(child))
    return child
  }
  const killAll = (): void => {
    for (const child of running) child.kill('SIGKILL')
  }
  // A test run that is broken off must not leave servers behind.
  process.once('exit', killAll)
  const warm: ServerWorld['warm'] = (given, cwd, ...args) =>
    runWarm({ cwd, env: { ...env, ...given }, args: [...args, '--home', home] })
  const cliWith: ServerWorld['cliWith'] = (given, cwd, ...args) =>
    needsOwnProcess(args) ? ended(start(given, cwd, args)) : warm(given, cwd, ...args)
  const json = async <T>(cwd: string, ...args: string[]): Promise<T> => {
    const result = await cliWith({}, cwd, ...args, '--json')
    if (result.code !== 0) throw new Error(`exit code ${result.code}\n${result.out}\n${result.err}`)
    return JSON.parse(result.out) as T
  }
  return {
    box,
    home,
    env,
    cliWith,
    warm,
    cli: (cwd, ...args) => cliWith({}, cwd, ...args),
    json,
    interrupt: (signal) => {
      for (const child of running) child.kill(signal)
    },
    serve: async ({ args = [], env: given = {}, program } = {}) =>
      ready(start(given, box.root, ['serve', '--port', '0', '--test-platform', ...args], program), home),
    project: async (name = 'project') => {
      const repo = box.repo(name)
      const origin = box.bare(`${name}-origin.git`).path
      repo.git('remote', 'add', 'origin', origin)
      repo.git('push', '-q', '-u', 'origin', 'main')
      repo.git('remote', 'set-head', 'origin', 'main')
      await json(box.root, 'codebase', 'add', repo.path)
      return { ...repo, origin }
    },
    [Symbol.asyncDispose]: async () => {
      process.off('exit', killAll)
      const gone = [...running].map((child) => new Promise((done) => child.once('close', done)))
      killAll()
      await Promise.all(gone)
      clearCgroups(home)
      box[Symbol.dispose]()
    },
  }
}

const ready = async (child: ChildProcess, home: string): Promise<ServerProcess> => {
  const exit = ended(child)
  let printed = ''
  child.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  let gone: CliResult | undefined
  void exit.then((result) => (gone = result))
  const url = await until('the server prints its address', async () => {
    if (gone !== undefined) throw new Error(`the server ended with ${gone.code}:\n${gone.out}${gone.err}`)
    return /listening on (http:\S+)/.exec(printed)?.[1]?.replace('//0.0.0.0:', '//127.0.0.1:')
  })
  await until('the server is ready', async () => (await fetch(`${url}/healthz`)).ok || undefined)
  return over(child, exit, url, readFileSync(join(home, 'token'), 'utf8').trim())
}

const over = (child: ChildProcess, exit: Promise<CliResult>, url: string, token: string): ServerProcess => {
  const call: ServerProcess['call'] = (path, init = {}) =>
    fetch(`${url}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    })
  const post: ServerProcess['post'] = (path, body) => call(path, { method: 'POST', body: JSON.stringify(body) })
  const accepted = async (response: Response): Promise<{ id: string; outcome: string }> => {
    if (response.status !== 202) throw new Error(`${response.status}: ${await response.text()}`)
    return (await response.json()) as { id: string; outcome: string }
  }
  const messages: ServerProcess['messages'] = async (conversationId) =>
    (await (await call(`/test/messages/${encodeURIComponent(conversationId)}`)).json()) as Said[]
  const metrics: ServerProcess['metrics'] = async () => {
    const lines = (await (await call('/metrics')).text()).split('\n')
    return new Map(
      lines
        .filter((line) => line !== '' && !line.startsWith('#'))
        .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
    )
  }
  const isQuiet = async (): Promise<boolean> => {
    const now = await metrics()
    const open = [
      'coppice_messages{state="waiting"}',
      'coppice_messages{state="running"}',
      'coppice_replies{state="waiting"}',
    ]
    return open.every((name) => now.get(name) === 0)
  }
  const quiet = async (): Promise<void> => {
    // Twice: the numbers of one look are not all of one moment.
    await until('all is quiet', async () => ((await isQuiet()) && (await isQuiet())) || undefined)
  }
  const say: ServerProcess['say'] = async (conversationId, message, options = {}) =>
    accepted(await post('/test/message', { conversationId, message, ...options }))
  const since = async (conversationId: string, act: () => Promise<unknown>): Promise<readonly Said[]> => {
    const before = (await messages(conversationId)).length
    await act()
    await quiet()
    return (await messages(conversationId)).slice(before)
  }
  return {
    url,
    token,
    child,
    exit,
    call,
    post,
    messages,
    metrics,
    quiet,
    say,
    ask: async (conversationId, message, options) =>
      (await since(conversationId, () => say(conversationId, message, options))).filter(({ role }) => role !== 'user'),
    close: (conversationId) =>
      since(conversationId, async () => accepted(await post('/test/close', { conversationId }))),
    stop: async (signal = 'SIGTERM') => {
      child.kill(signal)
      return exit
    },
  }
}

/** All it printed until its end. */
const ended = async (child: ChildProcess): Promise<CliResult> => {
  let out = ''
  let err = ''
  child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const code = await new Promise<number | null>((done) => child.once('close', (status) => done(status)))
  return { code, out, err }
}

const PATIENCE_MS = 120_000

/** Looks until there is an answer. What is waited for is named when it does not come. */
export const until = async <T>(
  what: string,
  look: () => Promise<T | undefined>,
  patienceMs = PATIENCE_MS,
): Promise<T> => {
  const start = Date.now()
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    const waited = Date.now() - start
    if (waited > patienceMs) throw new Error(`waited in vain until ${what}`)
    // Each look is a request that slows down the server: look less often the longer it takes.
    await delay(Math.min(200, Math.max(20, waited / 10)))
  }
}

type DatabaseName = 'sqlite' | 'postgres'
type DatabaseSuite = (database: () => Promise<Record<string, string>>, name: DatabaseName) => void

/** One suite on SQLite and on PostgreSQL; `database` answers the variables that choose a fresh one. */
export const onEachDatabase = (suite: DatabaseSuite): void => {
  onSqlite(suite)
  onPostgres(suite)
}

/**
 * Runs a suite on one of the two databases, and with `npm run test:every-case` on both. The conformance tests compare the databases; here the
 * tests of a file alternate, so that every test runs once and both databases are used.
 */
export const onDatabase = (name: DatabaseName, suite: DatabaseSuite): void => {
  if (everyCase || name === 'sqlite') onSqlite(suite)
  if (everyCase || name === 'postgres') onPostgres(suite)
}

const onSqlite = (suite: DatabaseSuite): void => {
  describe('on sqlite', () => {
    suite(async () => ({}), 'sqlite')
  })
}

const onPostgres = (suite: DatabaseSuite): void => {
  describe('on postgres', () => {
    let server: TestPostgres | undefined
    beforeAll(async () => {
      server = await startPostgres()
    })
    afterAll(() => server?.stop())
    suite(async () => {
      if (server === undefined) throw new Error('PostgreSQL is not running')
      return { COPPICE_DATABASE_URL: await server.freshDatabase() }
    }, 'postgres')
  })
}

export const textsOf = (said: readonly Said[]): string[] => said.map(({ text }) => text)

/** A zombie is as dead as can be. */
export const isAlive = (pid: number): boolean => {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
