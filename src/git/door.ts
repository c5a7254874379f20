/*
 * The only place that starts git. In: a request: operation, arguments, repository or worktree. Out: git's output, or an
 * error in words. Before git starts, its files are checked; while it runs, it has a time limit.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../domain/clock.ts'
import { AppError } from '../domain/errors.ts'
import type { FindLogin, Login } from '../domain/forge/login.ts'
import { toRepoPath } from '../domain/names.ts'
import { identityWord } from '../domain/process-identity.ts'
import { gitStarterVariable } from '../process/git-processes.ts'
import type { Launcher } from '../process/launcher/launcher.ts'
import { selfIdentity } from '../process/identity.ts'
import { createSecrets, type Redact } from '../process/redaction/redact.ts'
import { withAskpass } from './askpass.ts'
import { runChild, throwIfAborted } from './child.ts'
import { caseSettings } from './disk-case.ts'
import { type ConfigEntry, configListArgs, isUserScope, lastValue, parseConfigList } from './config-entries.ts'
import { createConfigOutput } from './config-output.ts'
import { type ConfigDirs, createConfigCache, ownFiles } from './config-cache.ts'
import { assertIncludes, includeArgs } from './config-includes.ts'
import {
  anonymousEnvironment,
  anonymousSettings,
  bareEnvironment,
  childEnvironment,
  settingsEnvironment,
  settingsFor,
  userConfigFiles,
  userFilterFiles,
  type Variables,
} from './environment.ts'
import { gitFailure, withLoginProblem } from './failure.ts'
import { createLook } from './look.ts'
import type { Setting } from './neutral.ts'
import type { CallOptions, GitRequest, GitResult, Repo, Tree } from './request.ts'
import { createShare } from './share.ts'
import { defaultPatienceMs, watchedWhileSlow } from './slow.ts'
import { timeLimitOf } from './time-limits.ts'

export type { CallOptions, GitRequest, GitResult, Repo, Tree }

export type Git = {
  /** The state directory, for files that git must not find in the worktree or repository. */
  readonly home: string
  run(request: GitRequest): Promise<GitResult>
  /** The configuration with its scopes, cached until one of its files changes. */
  config(at: GitRequest['at']): Promise<readonly ConfigEntry[]>
  /** How many git processes were started so far. */
  spawned(): number
  /** The pids of our running git processes, which must not count as someone using a worktree. */
  readonly running: { readonly size: number; has(pid: number): boolean }
}

export type GitOptions = {
  readonly env: Variables
  /** The state directory; the askpass script is written there. */
  readonly home: string
  readonly now: Clock
  /** Credentials for the code host, beside the user's own. */
  readonly login?: FindLogin | undefined
  /** Applied to git's output (default: hides only those credentials). */
  readonly redact?: Redact
  /** Starts reads without blocking this process. */
  readonly launcher?: Launcher | undefined
  /** Path of the git program (default: from PATH). */
  readonly program?: string | undefined
  /** After this time, look for what blocks git (default: 1 s). */
  readonly patienceMs?: number
}

/** The only place that starts git. Every call is neutralised against the repository's own configuration. */
export const createGit = (options: GitOptions): Git => {
  const { env, now, program = 'git' } = options
  const logins = createSecrets()
  const redact = options.redact ?? logins.redact
  let started = 0
  const running = new Set<number>()
  const starter = identityWord(selfIdentity())

  const look = createLook([...userConfigFiles(env), ...userFilterFiles(env)])
  const watch = { look, patienceMs: options.patienceMs ?? defaultPatienceMs }

  /** `reads`: where its files are, if not where it runs. `loginProblem`: why it has no credentials. */
  const start = async (
    request: GitRequest,
    environment: Record<string, string>,
    { reads = request.at, loginProblem }: { reads?: GitRequest['at']; loginProblem?: string } = {},
  ): Promise<GitResult> => {
    const said = await watchedWhileSlow({ ...request, at: reads }, watch, (signal) =>
      runChild({
        ...request,
        signal,
        program,
        launcher: options.launcher,
        cwd: workingDirectory(request.at),
        timeoutMs: timeLimitOf(request),
        env: { ...environment, ...locationEnvironment(request.at), [gitStarterVariable]: starter },
        now,
        onStarted: (pid) => {
          started += 1
          running.add(pid)
        },
        onEnded: (pid) => running.delete(pid),
      }),
    )
    const ended = loginProblem === undefined ? said : { ...said, stderr: withLoginProblem(said.stderr, loginProblem) }
    if (ended.exitCode === null || !(request.ok ?? [0]).includes(ended.exitCode)) {
      throw gitFailure(request.operation, ended, redact)
    }
    return {
      exitCode: ended.exitCode,
      stdoutBytes: ended.stdout,
      stderr: redact(ended.stderr),
      get stdout() {
        return ended.stdout.toString('utf8')
      },
    }
  }

  const askConfig = async (args: readonly string[], dirs: ConfigDirs, ok = [0]): Promise<string> => {
    const request: GitRequest = { operation: 'config', at: { cwd: '/' }, args, ok }
    const environment = {
      ...bareEnvironment(env),
      // A path that can't exist: only the user's own configuration.
      GIT_DIR: dirs.gitDir ?? '/dev/null/none',
      // Otherwise git enters `core.worktree`, and fails if it isn't a directory.
      GIT_WORK_TREE: '/',
      ...(dirs.gitDir === dirs.commonDir ? {} : { GIT_COMMON_DIR: dirs.commonDir ?? '' }),
    }
    const reads = dirs.commonDir === undefined ? request.at : { commonDir: toRepoPath(dirs.commonDir) }
    const list = createConfigOutput(dirs.commonDir)
    await start({ ...request, onStdout: list.take }, environment, { reads })
    return list.text()
  }

  const list = async (dirs: ConfigDirs): Promise<readonly ConfigEntry[]> => {
    const noRepository = { commonDir: undefined, gitDir: undefined }
    await assertIncludes(ownFiles(dirs), {
      list: (file) => askConfig(includeArgs(file), noRepository, [0, 1]),
      home: env['HOME'],
    })
    return parseConfigList(await askConfig(configListArgs, dirs))
  }

  const cache = createConfigCache({ list, userFiles: userConfigFiles(env), now })

  const config = async (at: GitRequest['at'], modules = false): Promise<readonly ConfigEntry[]> => {
    assertNotRedirected(at)
    await look.before(at, { modules })
    return cache.read(configDirs(at))
  }

  const loginFor = async ({ network, anonymous }: GitRequest): Promise<Login | undefined> => {
    if (network === undefined || anonymous === true || options.login === undefined) return undefined
    // ssh and files have no use for it, and it may take a request to get one.
    if (network.others !== true && !/^https?:/i.test(network.url ?? '')) return undefined
    const login = await options.login(network.url)
    // Whoever redacts for us has it already.
    if (options.redact === undefined && login !== undefined && 'secret' in login) logins.add(login.secret)
    return login
  }

  const share = createShare()
  const run = async (request: GitRequest): Promise<GitResult> => {
    throwIfAborted(request)
    const entries = await config(request.at, request.operation.startsWith('submodule'))
    const login = await loginFor(request)
    const token = login !== undefined && 'secret' in login ? login : undefined
    const settings = [
      ...settingsFor(env, entries),
      ...(await caseSettings('path' in request.at ? request.at.path : undefined)),
      ...(request.durable === true ? durable : []),
      ...(request.settings ?? []),
      ...(token?.shortLived === true ? withoutHelpers(token.host) : []),
    ]
    const anonymous = request.anonymous === true
    const environment = {
      ...childEnvironment(env, entries),
      ...settingsEnvironment(anonymous ? anonymousSettings(env, entries, settings) : settings),
      ...(request.locks === true ? { GIT_OPTIONAL_LOCKS: '1' } : {}),
      ...(request.indexFile === undefined ? {} : { GIT_INDEX_FILE: request.indexFile }),
      ...(anonymous ? anonymousEnvironment : {}),
      ...request.identity,
    }
    if (login !== undefined && 'problem' in login) return start(request, environment, { loginProblem: login.problem })
    if (token === undefined) return start(request, environment)
    const { home } = options
    const next = lastValue(entries.filter(isUserScope), 'core.askpass')
    return withAskpass({ home, token, next }, (asking) => start(request, { ...environment, ...asking }))
  }

  return {
    home: options.home,
    spawned: () => started,
    running: {
      get size() {
        return running.size
      },
      has: (pid) => running.has(pid) || options.launcher?.isStarting(pid) === true,
    },
    config: (at) => config(at),
    run: (request) =>
      request.shared === true && request.signal === undefined
        ? share(JSON.stringify([request.at, request.args]), () => run(request))
        : run(request),
  }
}

/** An empty helper clears the list for this host. */
const withoutHelpers = (host: string): Setting[] =>
  ['https', 'http'].map((scheme): Setting => [`credential.${scheme}://${host}.helper`, ''])

/** By default git doesn't sync loose objects and refs, and a power cut leaves empty files. */
const durable: readonly Setting[] = [
  ['core.fsync', 'all'],
  ['core.fsyncMethod', 'fsync'],
]

/** Passes all paths explicitly: an agent can rewrite a worktree's record and its `.git` file. */
const locationEnvironment = (at: GitRequest['at']): Record<string, string> => {
  if ('cwd' in at) return {}
  if (!('gitDir' in at)) return { GIT_DIR: at.commonDir, GIT_IMPLICIT_WORK_TREE: '0' }
  const dirs = { GIT_DIR: at.gitDir, GIT_WORK_TREE: at.path }
  return at.gitDir === at.commonDir ? dirs : { ...dirs, GIT_COMMON_DIR: at.commonDir }
}

const workingDirectory = (at: GitRequest['at']): string => {
  if ('cwd' in at) return at.cwd
  return 'gitDir' in at ? at.path : '/'
}

const configDirs = (at: GitRequest['at']): ConfigDirs => {
  if ('cwd' in at) return { commonDir: undefined, gitDir: undefined }
  return { commonDir: at.commonDir, gitDir: 'gitDir' in at ? at.gitDir : at.commonDir }
}

/** A `commondir` file in the common directory itself would send git to another repository and configuration. */
const assertNotRedirected = (at: GitRequest['at']): void => {
  if ('cwd' in at || !existsSync(join(at.commonDir, 'commondir'))) return
  throw new AppError('not-a-repository', `${at.commonDir} isn't a separate repository: it points to another one`, {
    remedy: `remove the file "commondir" in ${at.commonDir}, which git never puts there`,
  })
}
