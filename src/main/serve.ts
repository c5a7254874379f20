import { untilAborted } from '../domain/until-aborted.ts'
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createSchedule } from '../cleanup/schedule.ts'
import type { CleanupReport } from '../cleanup/report.ts'
import type { ServeOptions, Serving, Stopped } from '../cli/cli-call.ts'
import { exposedSecrets } from '../cli/exposed-secrets.ts'
import type { Workplace } from '../commands/command.ts'
import { describeNotices } from '../commands/views/notices.ts'
import { describeRemedy } from '../commands/views/remedy.ts'
import { asProgram } from '../commands/views/view.ts'
import { createRunTokens } from '../runs/tokens.ts'
import type { Codebase } from '../domain/environment.ts'
import { AppError, isAppError } from '../domain/errors.ts'
import type { FleetContext } from '../fleet/context.ts'
import { createLandingSchedule } from '../fleet/landing/schedule.ts'
import { createHooks } from '../fleet/events/hooks.ts'
import { createFleetSchedule } from '../fleet/schedule.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { createEnvironments, type Environments } from '../isolation/environments.ts'
import type { Platform } from '../platforms/platform.ts'
import { localPlatforms } from '../platforms/registry.ts'
import { startPlatforms, stopPlatforms } from '../platforms/start.ts'
import { type PlatformSettings, type FailedPlatform, remotePlatforms } from '../platforms/remote.ts'
import { startServer } from '../server/listen.ts'
import { createMetrics } from '../server/metrics.ts'
import { removeServerRecord, runningServer, writeServerRecord } from '../server/record.ts'
import { ensureToken } from '../server/token-file.ts'
import { createEngine, type Engine } from './engine.ts'
import { hookContext } from './hooks.ts'
import { reconcileAll } from './reconcile-all.ts'

export type ServeParts = {
  readonly version: string
  readonly platformSettings: PlatformSettings
  /** Secrets in our environment that the user's other programs can read. */
  readonly exposed: readonly string[]
}

/** Becomes this home's server. Resolves when it listens; `stopped` when it has shut down. */
export const serve = async (workplace: Workplace, options: ServeOptions, parts: ServeParts): Promise<Serving> => {
  const started = Promise.withResolvers<Omit<Serving, 'stopped'>>()
  const stopped = withServerLock(workplace.context, () => run(workplace, options, parts, started.resolve))
  // The caller gets any failure before it listens.
  stopped.catch(started.reject)
  return { ...(await started.promise), stopped }
}

/** One server per home, for as long as it runs: two would both serve the same platforms. */
const withServerLock = async <T>(
  { lock, home }: Pick<IsolationContext, 'lock' | 'home'>,
  work: () => Promise<T>,
): Promise<T> => {
  const place = join(home, 'locks', 'server')
  mkdirSync(place, { recursive: true, mode: 0o700 })
  let held = false
  try {
    return await lock.withRepositoryLock(place, { purpose: 'serving', timeoutMs: 1_000 }, () => {
      held = true
      return work()
    })
  } catch (error) {
    // A port in use is `busy` too, but says nothing about this home.
    if (held || (!isAppError(error, 'busy') && !isAppError(error, 'timeout'))) throw error
    const url = runningServer(home)?.url
    throw new AppError('busy', `a server is already running for this home${url === undefined ? '' : ` at ${url}`}`, {
      cause: error,
      remedy: 'use that server, stop it first, or start another one with a different --home',
    })
  }
}

const run = async (
  { context, ...workplace }: Workplace,
  options: ServeOptions,
  parts: ServeParts,
  started: (serving: Omit<Serving, 'stopped'>) => void,
): Promise<Stopped> => {
  // Nobody watches this terminal: no questions, no progress.
  const nonInteractive: IsolationContext = { ...context, progress: () => undefined, approve: undefined }
  const isolation = createEnvironments(nonInteractive)
  const environments = async (): Promise<Environments> => isolation
  const fleet = async (): Promise<FleetContext> => {
    const made = await workplace.fleet()
    return {
      ...made,
      isolation: nonInteractive,
      environments,
      wakeServer: async () => false,
      notify: async (store, event, except) => {
        await made.notify(store, event, except)
        // After the transaction that it is part of.
        if (event.kind === 'queued') setImmediate(() => landingSchedule.wake())
      },
    }
  }
  const landingSchedule = createLandingSchedule({ fleet, isolation: nonInteractive })
  // A formula that has ended may have queued a branch.
  const fleetSchedule = createFleetSchedule({ fleet, isolation: nonInteractive, onRound: () => landingSchedule.wake() })
  const hooksOf = await hookContext({ context: nonInteractive, fleet, platforms: workplace.platforms })
  const { token, file: tokenFile, created } = ensureToken(context.home)
  const exposed = exposedSecrets(context)
  const notices = [
    ...(exposed === undefined ? [] : [`${exposed.problem}: ${exposed.remedy}`]),
    ...describeNotices(await reconcileAll(nonInteractive), asProgram),
  ]
  const locals = new Map(
    Object.entries(localPlatforms)
      .filter(([name]) => name !== 'test' || options.testPlatform)
      .map(([name, make]) => [name as keyof typeof localPlatforms, make()]),
  )
  const remote = await remotePlatforms(parts.platformSettings, context)
  const platforms = new Map<string, Platform>([...locals, ...remote.platforms])
  const refused: FailedPlatform[] = [...remote.refused]
  let agentsUrl: string | undefined
  const runTokens = createRunTokens({
    secrets: context.secrets,
    random: () => randomBytes(32).toString('hex'),
    url: () => agentsUrl,
  })
  let metrics: ReturnType<typeof createMetrics> | undefined
  const engine = createEngine(
    { ...workplace, context: nonInteractive, environments, fleet },
    {
      deliveries: platforms,
      runTokens,
      onHandled: (_message, handled) => {
        metrics?.handled(handled)
        // It may have been `/item add`, or a pull request that was merged.
        fleetSchedule.wake()
        landingSchedule.wake()
      },
    },
  )
  metrics = createMetrics(engine.changes)
  const kickOutbox = (): void => engine.outbox.kick()
  const hooks = hooksOf && createHooks({ ...hooksOf, onPosted: kickOutbox })
  const accept = metrics.countAccepted((message) => engine.conversations.accept(message))
  let ready = false
  const server = await startServer(
    {
      context: engine.context,
      conversations: engine.conversations,
      platforms: locals,
      remotes: remote.platforms,
      failedPlatforms: () => refused,
      token,
      version: parts.version,
      databaseName: workplace.databaseName,
      redact: context.secrets.redact,
      wake: () => {
        engine.conversations.wake()
        fleetSchedule.wake()
        landingSchedule.wake()
        hooks?.kick()
      },
      ready: () => ready,
      allowedHosts: options.allowedHosts,
      metrics,
    },
    options,
  )
  const ownUrl = localUrl(server.url)
  agentsUrl = ownUrl
  // Start only once we have the port: a failed start leaves all messages to the next one.
  await engine.conversations.start().catch(async (error: unknown) => {
    await server.stop(0)
    throw error
  })
  const { failed } = await startPlatforms(platforms.values(), accept, context)
  refused.push(...failed)
  const schedule = createSchedule({
    context: nonInteractive,
    environments,
    intervalHours: context.settings.cleanupIntervalHours,
    keepSpares: workplace.keepSpares,
    onReport: (codebase, report) => announce(engine, codebase, report),
  })
  writeServerRecord(context.home, { url: ownUrl, process: context.self, startedAt: context.clock() })
  ready = true
  schedule.start()
  fleetSchedule.start()
  landingSchedule.start()
  await hooks?.start()
  started({
    url: server.url,
    tokenFile,
    newToken: created ? token : undefined,
    notices: [...notices, ...exposedNotice(parts.exposed), ...refused.map(offNotice)],
  })
  const lost = await untilEnded(options.signal, context.store)
  ready = false
  await stopPlatforms(platforms.values(), context.log)
  removeServerRecord(context.home)
  // Without the database, running work can't save its results, so don't wait for it.
  const ended = await engine.conversations.stop(lost === undefined ? options.graceMs : 0)
  await landingSchedule.stop()
  await schedule.stop()
  await fleetSchedule.stop()
  await hooks?.stop(lost === undefined ? options.graceMs : 0)
  await server.stop(LAST_REQUESTS_MS)
  if (lost !== undefined) throw lost
  return ended
}

/** A server that listens on every address is reached at the loopback address. */
const localUrl = (url: string): string => url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')

const exposedNotice = (names: readonly string[]): string[] =>
  names.length === 0
    ? []
    : [
        `agents can read ${names.join(', ')}: this system doesn't let a process clear its own environment. ` +
          'Run Coppice as a separate user, or in a container',
      ]

const offNotice = ({ platform, problem, remedy }: FailedPlatform): string =>
  `${platform} is off: ${problem}${remedy === undefined ? '' : `; ${describeRemedy(remedy, asProgram)}`}`

/** For requests still being answered after everything else has stopped. */
const LAST_REQUESTS_MS = 2_000

/** Notifies watchers. Removal itself notifies conversations that lost their environment. */
const announce = (
  { context: { changes }, outbox }: Engine,
  codebase: Codebase,
  { removed, skipped }: CleanupReport,
): void => {
  for (const { environment } of removed) {
    changes.emit({ type: 'environment', id: environment.id, codebaseId: codebase.id, status: 'removed' })
  }
  changes.emit({ type: 'cleanup', codebaseId: codebase.id, removed: removed.length, skipped: skipped.length })
  outbox.kick()
}

/** Resolves on a stop signal, or with the error if the database is lost. */
const untilEnded = (signal: AbortSignal, store: IsolationContext['store']): Promise<AppError | undefined> =>
  new Promise((resolve) => {
    store.onLost(resolve)
    void untilAborted(signal).then(() => resolve(undefined))
  })
