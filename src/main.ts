import { existsSync, lstatSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Workplace } from './commands/command.ts'
import { hostId, prepareHome } from './cli/host-id.ts'
import { appendToLog } from './cli/log-file.ts'
import { createProgress } from './cli/progress.ts'
import { type OpenOptions, runCli } from './cli/run.ts'
import { failureDetails } from './commands/views/failure.ts'
import { paintFor, printable } from './commands/views/view.ts'
import { homeDirectory, resolveSettings, worktreeBase } from './domain/config/config.ts'
import type { LoadPlatforms } from './domain/platform-capabilities.ts'
import { AppError } from './domain/errors.ts'
import type { PlatformSettings } from './platforms/remote.ts'
import { toRepoPath } from './domain/names.ts'
import type { FleetContext } from './fleet/context.ts'
import { createGit, type Git } from './git/door.ts'
import type { IsolationContext } from './isolation/context.ts'
import { recogniseFullHome } from './isolation/disk-full.ts'
import { createRepositoryLock } from './isolation/lock/lock.ts'
import { createEnvironments } from './isolation/environments.ts'
import { providers } from './isolation/providers/registry.ts'
import { allowedEnvironment } from './process/environment.ts'
import { selfIdentity } from './process/identity.ts'
import { createLauncher } from './process/launcher/launcher.ts'
import { createLogger, type Logger } from './process/log.ts'
import { readUntrustedTextSync } from './process/files/read-untrusted.ts'
import { createSecrets } from './process/redaction/redact.ts'
import { passwordsIn } from './process/redaction/secret-names.ts'
import { openStore } from './store/open.ts'
import { createForge } from './main/forge.ts'
import { configSecrets, environmentSecrets, homeToken } from './main/secrets.ts'
import { takeEnvironment } from './main/take-environment.ts'

/*
 * The composition root: the only place that reads the environment and constructs things. It imports only what read-only
 * commands need, and the rest on demand: start-up is most of a short command's time, and every file adds about half a
 * millisecond.
 */

const { env, exposed } = takeEnvironment()
const clock = Date.now
const cancel = new AbortController()
let apiToken: () => readonly string[] = () => noSecrets
const noSecrets: readonly string[] = []
const secrets = createSecrets(environmentSecrets(env), () => apiToken())
const progress = createProgress({
  write: (text) => process.stderr.write(text),
  isTerminal: process.stderr.isTTY,
  columns: () => process.stderr.columns ?? 80,
  clock,
})

/** The published program has it beside itself. */
const launcherScript = join(
  import.meta.dirname,
  import.meta.filename.endsWith('.ts') ? 'process/launcher/child.ts' : 'launcher.js',
)

const platforms: LoadPlatforms = async () => (await import('./platforms/capabilities.ts')).knownPlatforms

let outputFailed = false
const outputClosed = new AbortController()
let interruptedBy: 'SIGINT' | 'SIGTERM' | 'SIGHUP' | undefined
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  // Once: a second Ctrl-C doesn't wait for cleanup; the next start does it.
  process.once(signal, () => {
    interruptedBy ??= signal
    progress.say('cancelling')
    cancel.abort()
  })
}
for (const stream of [process.stdout, process.stderr]) {
  // `coppice … | head`: the reader has seen enough, which isn't an error.
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return stream === process.stdout ? outputClosed.abort() : undefined
    process.exitCode = 1
    if (outputFailed || stream === process.stderr) return
    outputFailed = true
    const why = error.message.replace(/^[A-Z]+: /, '').replace(/, write$/, '')
    process.stderr.write(`coppice: couldn't write the output: ${why}.\n`)
  })
}

process.on('uncaughtException', (error) => {
  process.stderr.write(`coppice: ${secrets.redact(failureDetails(error))}\n`)
  process.exit(1)
})

const exitCode = await runCli({
  argv: process.argv.slice(2),
  env,
  clock,
  cwd,
  signal: cancel.signal,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  paint: paintFor(process.stdout, env),
  isTerminal: process.stdout.isTTY,
  columns: columnsOf(process.stdout),
  paintErr: paintFor(process.stderr, env),
  progress,
  secrets,
  version,
  open,
  serve: async (workplace, options) => {
    const { serve } = await import('./main/serve.ts')
    const platformSettings = await platformSettingsOf(workplace.context.home)
    return serve(workplace, options, { version: version(), platformSettings, exposed })
  },
  ownEngine: async (workplace, conversationId) =>
    (await import('./main/own-engine.ts')).createOwnEngine(workplace, conversationId),
  deliver: async (workplace, options) => {
    const { hookContext } = await import('./main/hooks.ts')
    const hooks = await hookContext(workplace)
    if (hooks !== undefined) await (await import('./fleet/events/hooks.ts')).deliverOnce(hooks, options)
  },
  outputClosed: outputClosed.signal,
})
// Output that couldn't be written is a failure, whatever was done; that error may also come later.
if (process.exitCode === undefined) {
  process.exitCode = exitCode === 130 && interruptedBy !== undefined ? 128 + numberOf(interruptedBy) : exitCode
}

async function platformSettingsOf(home: string): Promise<PlatformSettings> {
  const { readPlatformSettings, secretsOf } = await import('./platforms/settings.ts')
  const settings = readPlatformSettings({ ...homeConfig(home), env })
  secrets.add(...secretsOf(settings))
  return settings
}

function version(): string {
  return (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version
}

async function open({ home: named, verbose, near }: OpenOptions): Promise<Workplace> {
  const home = prepareHome(named === undefined ? homeDirectory(env, existsSync) : resolve(cwd(), named), (made) => {
    // If it was mistyped, the user would wonder where everything is.
    if (named !== undefined || env['COPPICE_HOME'])
      process.stderr.write(`Created a new home directory at ${printable(made)}\n`)
  })
  const { homeFile, homeText } = homeConfig(home)
  apiToken = homeToken(home)
  if (homeText !== undefined) secrets.add(...(await configSecrets(homeText)))
  const settings = await resolveSettings({ homeFile, ...(homeText !== undefined && { homeText }), env })
  // A webhook's path is often its password.
  secrets.add(...settings.hooks.flatMap(({ action }) => (action.kind === 'webhook' ? [action.url] : [])))
  const log = await loggerFor(home, verbose)
  const github = async () => (mentionsGithub(homeText) ? (await platformSettingsOf(home)).github : {})
  const forge = createForge(github, { log, clock, secrets })
  const launcher = createLauncher({ script: launcherScript })
  const git = createGit({ env, home, now: clock, login: forge.login, redact: secrets.redact, launcher })
  const prefetch = { isOver: false }
  const prefetched = prefetchConfig(git, near).finally(() => (prefetch.isOver = true))
  // Opening the store keeps us busy, so git starts first. Checking its files yields when it takes long.
  while (!prefetch.isOver && git.spawned() === 0) await nextTurn()
  const sqliteFile = join(home, 'coppice.db')
  const databaseUrl = withPassword(settings.databaseUrl, env['PGPASSWORD'])
  const context: IsolationContext = {
    store: await recogniseFullHome(home, () =>
      openStore(databaseUrl === undefined ? { sqliteFile } : { postgresUrl: databaseUrl }),
    ),
    git,
    providers,
    lock: createRepositoryLock({ clock, random: Math.random }),
    forge,
    clock,
    ids: randomUUID,
    log,
    secrets,
    settings,
    host: hostId(home, randomUUID),
    home,
    worktreesBase: worktreeBase(settings, home),
    self: selfIdentity(),
    programEnvironment: allowedEnvironment(env),
    ownEnvironment: env,
    progress: (message) => progress.say(secrets.redact(message)),
    approve: await approveOnTerminal(),
    onEnvironmentLost: async (store, lost) => {
      const { createOnEnvironmentLost } = await import('./conversations/environment-lost.ts')
      const speaker = { isolation: { ids: randomUUID, clock }, redact: secrets.redact, platforms }
      await createOnEnvironmentLost(speaker)(store, lost)
    },
    deleteInBackground: (paths) => inBackground(log, home, ['delete', '--', ...paths]),
    repoConfigs: new Map(),
    failpoint: async () => {},
  }
  await prefetched
  const isolation = createEnvironments(context)
  let fleet: Promise<FleetContext> | undefined
  const workplace: Omit<Workplace, 'fleet'> = {
    context,
    environments: async () => isolation,
    databaseName:
      databaseUrl === undefined ? `SQLite, ${sqliteFile}` : `PostgreSQL, ${URL.parse(databaseUrl)?.host ?? ''}`,
    keepSpares: (codebaseId) => inBackground(log, home, ['keep-spares', codebaseId]),
    platforms,
  }
  return {
    ...workplace,
    fleet: () =>
      (fleet ??= import('./main/fleet.ts').then(({ createFleet }) =>
        createFleet(workplace, { program: import.meta.filename }),
      )),
  }
}

/**
 * Every git call needs the repository's configuration first, so read it while the store opens. The cache checks the
 * files it came from, so a wrong guess costs only one process.
 */
async function prefetchConfig(git: Git, near: string | undefined): Promise<void> {
  if (near === undefined) return
  try {
    // Only a plain repository: an agent can rewrite a worktree's `.git` file, and its record is in the store.
    const commonDir = join(near, '.git')
    if (lstatSync(commonDir).isDirectory()) await git.config({ commonDir: toRepoPath(commonDir) })
  } catch {
    // The first real call tries again and reports the problem.
  }
}

/** Loaded with the first id: most commands need none, and loading takes 4 ms. */
function randomUUID(): string {
  return process.getBuiltinModule('node:crypto').randomUUID()
}

/** Runs an internal command in a process that outlives us. If that fails, the next start of Coppice does the work. */
function inBackground(log: Logger, home: string, words: readonly string[]): void {
  const args = [import.meta.filename, '--home', home, 'internal', ...words]
  void import('./process/spawn.ts')
    .then(({ spawnDetached }) => spawnDetached({ command: process.execPath, args, cwd: '/', env }))
    .catch((error: unknown) => log.warn("couldn't start background work", { words, error }))
}

function homeConfig(home: string): { homeFile: string; homeText?: string } {
  const homeFile = join(home, 'config.yaml')
  const homeText = readUntrustedTextSync(homeFile, { followLink: true })
  return homeText === undefined ? { homeFile } : { homeFile, homeText }
}

/** Whether it is worth reading the platforms' settings before a fetch: loading their readers takes 100 ms. */
function mentionsGithub(homeText = ''): boolean {
  return homeText.includes('github') || Object.keys(env).some((name) => name.startsWith('GITHUB_'))
}

async function approveOnTerminal(): Promise<IsolationContext['approve']> {
  const { stdin: input, stderr: output } = process
  if (!input.isTTY || !output.isTTY) return undefined
  const { createApprove } = await import('./cli/approve.ts')
  return createApprove({ input, output, signal: cancel.signal, before: progress.clear })
}

/** Standard error if verbose, else a file in the home that only grows when something is wrong. */
async function loggerFor(home: string, verbose: boolean): Promise<Logger> {
  const file = appendToLog(join(home, 'coppice.log'))
  return createLogger({
    write: verbose ? (line) => void process.stderr.write(line) : file,
    level: verbose ? 'debug' : 'warn',
    clock,
    redact: secrets.redact,
  })
}

/** `pg` would look for it in our environment, where it no longer is. */
function withPassword(url: string | undefined, password: string | undefined): string | undefined {
  if (url === undefined || password === undefined || password === '' || passwordsIn(url).length > 0) return url
  return `${url}${url.includes('?') ? '&' : '?'}password=${encodeURIComponent(password)}`
}

/** `COLUMNS` if exported, as for ps and git; else the terminal's width. */
function columnsOf(stream: NodeJS.WriteStream): number | undefined {
  const wanted = Number(env['COLUMNS'] ?? '')
  const columns = Number.isInteger(wanted) && wanted > 0 ? wanted : stream.isTTY ? stream.columns : undefined
  return columns === undefined ? undefined : Math.max(40, columns)
}

function cwd(): string {
  try {
    return process.cwd()
  } catch (cause) {
    throw new AppError('not-a-repository', 'the current directory no longer exists', {
      cause,
      remedy: 'change to another directory: cd ~',
    })
  }
}

function numberOf(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP'): number {
  return { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }[signal]
}
