/*
 * Catching up. In: the time of the last look, and GitHub's own list of what it couldn't deliver since. Out: those
 * deliveries once more, through the webhook or directly. The inbox recognizes what it already has.
 */
import type { Clock } from '../../../domain/clock.ts'
import type { Logger } from '../../../process/log.ts'
import type { PlatformMemory } from '../../memory.ts'
import { repositoryOf, threadOf } from '../conversation-id.ts'
import { failureOf } from '../failure.ts'
import type { CatchUpClient, Hook, Repository } from './client.ts'
import { redeliverFailed } from './failed-deliveries.ts'
import { readMissedComments } from './missed-comments.ts'

export type CatchUpParts = {
  readonly client: CatchUpClient
  readonly isApp: boolean
  readonly memory: PlatformMemory
  /** The name to mention, once known. */
  readonly bot: () => string | undefined
  /** Like a delivery that was just verified. Throws if it wasn't stored. */
  readonly handle: (event: string, payload: object) => Promise<void>
  readonly clock: Clock
  readonly log: Logger
}

export type CatchUp = {
  /** Looks now, and then every ten minutes: a delivery also fails while a tunnel or a proxy is down. */
  start(): void
  stop(): void
}

export const createCatchUp = (parts: CatchUpParts): CatchUp => {
  const { memory, clock, log } = parts
  let timer: NodeJS.Timeout | undefined
  let isStopped = true
  /** One look. Returns how long GitHub asks us to wait. Never throws. */
  const look = async (): Promise<number> => {
    const startedAt = clock()
    try {
      const last = Number((await memory.get(LAST_LOOK)) ?? Number.NaN)
      // On the very first start, earlier messages weren't meant for us.
      const upTo = Number.isFinite(last) ? await since(parts, beginningOf(last, startedAt)) : undefined
      // Exactly there, or the overlap would be all that a look has time for.
      await memory.set(LAST_LOOK, String(Math.min(startedAt, (upTo ?? startedAt) + OVERLAP_MS)))
    } catch (error) {
      // The next look begins where this one did.
      const { message, retryAfterMs = 0 } = failureOf(error, clock)
      log.warn("couldn't look for missed GitHub deliveries", { message })
      return retryAfterMs
    }
    return 0
  }
  const next = async (): Promise<void> => {
    const pauseMs = await look()
    if (!isStopped) timer = setTimeout(() => void next(), Math.max(EVERY_MS, pauseMs)).unref()
  }
  return {
    start: () => {
      isStopped = false
      void next()
    },
    stop: () => {
      isStopped = true
      clearTimeout(timer)
    },
  }
}

const LAST_LOOK = 'deliveries-looked-at'
const EVERY_MS = 10 * 60_000
/** A delivery takes a while, and clocks differ. */
const OVERLAP_MS = 5 * 60_000
/** GitHub keeps deliveries for three days. */
const MAX_AGE_MS = 3 * 24 * 60 * 60_000
const MAX_REPOSITORIES = 20
const MAX_CONVERSATIONS = 500
const MAX_RETRIES = 3
/** A comment isn't handled while its author's permission can't be asked about: an hour. */
const MAX_COMMENT_RETRIES = 6

/** If the last look is in the future, the clock was wrong then or is now. */
const beginningOf = (last: number, now: number): number =>
  last > now ? now - MAX_AGE_MS : Math.max(last - OVERLAP_MS, now - MAX_AGE_MS)

/** Returns the time from which on something is left for the next look; undefined: nothing is. */
const since = async (parts: CatchUpParts, time: number): Promise<number | undefined> => {
  if (parts.isApp) return redeliver(parts, { kind: 'app' }, time)
  const problems: unknown[] = []
  const left: number[] = []
  for (const repository of await knownRepositories(parts.memory)) {
    try {
      const upTo = await lookAt(parts, repository, time)
      if (upTo !== undefined) left.push(upTo)
    } catch (error) {
      const { kind, message } = failureOf(error, parts.clock)
      if (kind !== 'missing' && kind !== 'refused') problems.push(error)
      else parts.log.debug("couldn't read a repository", { repository: repositoryOf(repository), message })
    }
  }
  if (problems.length > 0) throw problems[0]
  return left.length === 0 ? undefined : Math.min(...left)
}

const lookAt = async (parts: CatchUpParts, repository: Repository, time: number): Promise<number | undefined> => {
  const hook = await ourHook(parts, repository)
  return hook === undefined ? readComments(parts, repository, time) : redeliver(parts, hook, time)
}

const redeliver = async (parts: CatchUpParts, hook: Hook, time: number): Promise<number | undefined> => {
  const { memory, log } = parts
  const mayRetry = retries(memory, 'redelivered', MAX_RETRIES)
  const { redelivered, complete, upTo } = await redeliverFailed({ ...parts, mayRetry }, hook, time)
  if (redelivered > 0) log.info('asked GitHub to redeliver what it could not deliver', { redelivered })
  if (!complete) log.warn('too many GitHub deliveries to look through; the oldest were left out', { redelivered })
  return upTo
}

const readComments = async (parts: CatchUpParts, repository: Repository, time: number): Promise<number | undefined> => {
  const bot = parts.bot()
  if (bot === undefined) return undefined
  const mayRetry = retries(parts.memory, 'comment', MAX_COMMENT_RETRIES)
  const { handled, upTo, problem } = await readMissedComments({ ...parts, bot, mayRetry }, repository, time)
  if (handled > 0)
    parts.log.info('read comments that may have been missed', { repository: repositoryOf(repository), handled })
  if (problem !== undefined) throw problem
  return upTo
}

const retries =
  (memory: Pick<PlatformMemory, 'once'>, what: string, most: number) =>
  async (id: string): Promise<boolean> => {
    for (let n = 1; n <= most; n += 1) if (await memory.once(`${what}:${n}:${id}`, MAX_AGE_MS)) return true
    return false
  }

/** Undefined if we may not see it, if it belongs to the organization, or if several could be meant. */
const ourHook = async ({ client, clock }: CatchUpParts, repository: Repository): Promise<Hook | undefined> => {
  try {
    const [hook, ...others] = await client.hooks(repository)
    return others.length === 0 ? hook : undefined
  } catch (error) {
    const { kind } = failureOf(error, clock)
    if (kind === 'missing' || kind === 'refused') return undefined
    throw error
  }
}

/** Of a token it is only known where it was used. */
const knownRepositories = async (memory: PlatformMemory): Promise<Repository[]> => {
  const found = new Map<string, Repository>()
  for (const { conversationId } of await memory.recentConversations(MAX_CONVERSATIONS)) {
    const thread = threadOf(conversationId)
    if (thread !== undefined) found.set(repositoryOf(thread).toLowerCase(), { owner: thread.owner, repo: thread.repo })
    if (found.size === MAX_REPOSITORIES) break
  }
  return [...found.values()]
}
