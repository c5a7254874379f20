import { Webhooks } from '@octokit/webhooks'
import { AppError } from '../../domain/errors.ts'
import type { Accepted, Platform, PlatformInbox, TooOld, WebhookAnswer, WebhookRequest } from '../platform.ts'
import { authorise, type Authorised, type WritePermission } from '../authorisation.ts'
import type { PlatformParts } from '../descriptor.ts'
import { createClient, type GithubClient } from './client.ts'
import { threadOf } from './conversation-id.ts'
import { failureOf } from './failure.ts'
import { COMMENT_LIMIT } from './marker.ts'
import { createWritePermission } from './write-permission.ts'
import { createOctokits, type Identity } from './octokits.ts'
import { type Parsed, parseDelivery } from './parse.ts'
import { prepareMessage } from './prepare.ts'
import { createReplies } from '../replies/engine.ts'
import { githubReplies } from './reply-port.ts'
import { readDelivery } from './delivery.ts'
import type { GithubSettings } from './settings.ts'
import { createConnectionStatus } from './connection-status.ts'

export type GithubOptions = {
  readonly timeoutMs?: number
  /** False for a server that is not GitHub and knows no limits. */
  readonly paced?: boolean
  readonly previewEveryMs?: number
}

/** Issues, pull requests and their comments, as GitHub's webhooks tell of them and its API takes the answers. */
export const createGithubPlatform = async (
  settings: GithubSettings,
  { log, clock, secrets }: PlatformParts,
  { timeoutMs = 15_000, paced = true, previewEveryMs = 5_000 }: GithubOptions = {},
): Promise<Platform> => {
  const secret = settings.webhookSecret
  if (secret === undefined) {
    throw new AppError('config-invalid', 'no GitHub webhook secret configured', {
      remedy: "set GITHUB_WEBHOOK_SECRET to the webhook's secret",
    })
  }
  const webhooks = new Webhooks({ secret })
  const standing = createConnectionStatus(clock)
  const client = standing.watching(createClient(createOctokits(settings, { log, clock, secrets, timeoutMs, paced })))
  const askPermission = createWritePermission({ client, clock, log })
  let self: Identity | undefined
  let bot = settings.bot?.replace(/^@/, '')
  let inbox: PlatformInbox | undefined
  const knownSelf = async (): Promise<Identity | undefined> => (self ??= await client.identity().catch(() => undefined))
  const isApp = settings.appId !== undefined
  const port = githubReplies({ client, self: knownSelf, clock, previewEveryMs, isApp })
  const replies = createReplies(port, { clock, log })

  const take = async (parsed: Exclude<Parsed, { kind: 'ignored' }>, event: string): Promise<WebhookAnswer> => {
    const into = inbox
    if (into === undefined) return away
    const { conversationId, details, writtenAt } = parsed
    // By what is signed: the id in the header is not, and whoever sends a recording again can write any. It also differs
    // between a repository's hook and the organisation's, which tell of the same comment.
    const deliveryId = `${event} ${parsed.deliveryId}`
    const thread = { conversationId, deliveryId, details, writtenAt }
    if (parsed.kind === 'closed') return answerFor(await into.close(thread))
    const by = await permitted(parsed)
    if (by === 'no') return { status: 200, body: 'ignored' }
    if (by === 'unknown') return away
    return answerFor(await into.accept({ ...thread, kind: 'message', text: parsed.text }, by))
  }

  /** Who is on the list, or may write to the repository. */
  const permitted = async ({
    conversationId,
    author,
  }: Extract<Parsed, { kind: 'message' }>): Promise<Authorised | 'no' | 'unknown'> => {
    const userId = String(author.id)
    const listed = authorise({ kind: 'listed', userId, allowed: settings.allowedUsers ?? [] })
    if (listed !== undefined) return listed
    const thread = threadOf(conversationId)
    const canWrite = thread === undefined ? 'no' : await within(askPermission(thread, author), PERMISSION_MS)
    const writer = authorise({ kind: 'collaborator', userId, canWrite })
    if (writer !== undefined) return writer
    log.info('ignored a message: its author is not an allowed user', { conversationId, userId: author.id, canWrite })
    return canWrite === 'unknown' ? 'unknown' : 'no'
  }

  const answerFor = ({ outcome }: Accepted | TooOld): WebhookAnswer => {
    if (outcome === 'too-old') return { status: 400, body: 'refused: too old' }
    standing.heard()
    return { status: 200, body: outcome }
  }

  return {
    platform: 'github',
    limit: COMMENT_LIMIT,
    start: async (given) => {
      // Asked even if nothing needs it: a token that is none is said now, and not at the first reply.
      self = await whoWeAre(client, bot, (message) => log.warn('GitHub cannot be reached yet', { message }))
      bot ??= self?.login
      inbox = given
    },
    stop: async () => {
      inbox = undefined
      replies.quiet()
    },
    webhook: async (request: WebhookRequest) => {
      if (inbox === undefined || bot === undefined) return away
      const delivery = await readDelivery(webhooks, request)
      if ('status' in delivery) return delivery
      const { cloneUnknown = false } = settings
      const parsed = parseDelivery(delivery.event, delivery.payload, { bot, cloneUnknown })
      if (parsed.kind !== 'ignored') return take(parsed, delivery.event)
      log.debug('a delivery was ignored', { event: delivery.event, id: delivery.id, reason: parsed.reason })
      return { status: 200, body: `ignored: ${parsed.reason}` }
    },
    prepare: (message) => prepareMessage({ client, clock, log }, message),
    send: replies.send,
    preview: replies.preview,
    status: standing.status,
  }

  async function whoWeAre(
    asked: Pick<GithubClient, 'identity'>,
    name: string | undefined,
    unreachable: (message: string) => void,
  ): Promise<Identity | undefined> {
    try {
      return await asked.identity()
    } catch (error) {
      const { kind, message } = failureOf(error, clock)
      if (kind === 'unauthorized') {
        throw new AppError('config-invalid', 'GitHub rejected the credentials', {
          cause: error,
          remedy: 'set GITHUB_TOKEN, or the ID and private key of the GitHub App, to valid ones',
        })
      }
      if (name === undefined) {
        throw new AppError(
          'remote-unreachable',
          `couldn't identify the bot account on GitHub: ${message.slice(0, 200)}`,
          {
            cause: error,
            remedy: 'set GITHUB_BOT to the name that people mention, or try again later',
          },
        )
      }
      unreachable(message)
      return undefined
    }
  }
}

/** GitHub waits ten seconds for an answer. */
const PERMISSION_MS = 8_000

/** It shows the delivery as failed then, and it can be delivered again from there. */
const away: WebhookAnswer = { status: 503, body: 'not taken', headers: { 'retry-after': '60' } }

const within = async (asked: Promise<WritePermission>, ms: number): Promise<WritePermission> => {
  const waited = Promise.withResolvers<WritePermission>()
  const timer = setTimeout(() => waited.resolve('unknown'), ms)
  try {
    return await Promise.race([asked, waited.promise])
  } finally {
    clearTimeout(timer)
  }
}
