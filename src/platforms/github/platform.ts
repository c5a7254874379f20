/*
 * GitHub issues and pull requests. In: signed webhook deliveries. Out: authorised messages for the inbox; comments
 * through `reply-port.ts`.
 */
import { Webhooks } from '@octokit/webhooks'
import { AppError } from '../../domain/errors.ts'
import type { Accepted, Platform, PlatformInbox, TooOld, WebhookAnswer, WebhookRequest } from '../platform.ts'
import { authorise, type Authorised, type WritePermission } from '../authorisation.ts'
import type { PlatformParts } from '../descriptor.ts'
import { createCatchUp } from './catch-up/catch-up.ts'
import { createCatchUpClient } from './catch-up/client.ts'
import { createClient, type GithubClient } from './client.ts'
import { threadOf } from './conversation-id.ts'
import { failureOf } from './failure.ts'
import { COMMENT_LIMIT } from './marker.ts'
import { createAcknowledge } from './acknowledge.ts'
import { createFetchAttachment } from './attachments/fetch.ts'
import { webUrlOf } from './web-url.ts'
import { createMessageClient } from './message-client.ts'
import { createWritePermission } from './write-permission.ts'
import { createOctokits, type Identity } from './octokits.ts'
import { type Parsed, parseDelivery } from './parse.ts'
import { prepareMessage } from './prepare.ts'
import { createReplies } from '../replies/engine.ts'
import { replyKey } from './reply-place.ts'
import { githubReplies } from './reply-port.ts'
import { createReviewClient } from './reviews/client.ts'
import { readDelivery } from './delivery.ts'
import { type GithubSettings, usableSettings } from './settings.ts'
import { createConnectionStatus } from './connection-status.ts'

export type GithubOptions = {
  readonly timeoutMs?: number
  /** False for a server that isn't GitHub and has no limits. */
  readonly paced?: boolean
  readonly previewEveryMs?: number
}

/** Issues, pull requests and their comments: webhooks in, API calls out. */
export const createGithubPlatform = async (
  settings: GithubSettings,
  { log, clock, secrets, memory }: PlatformParts,
  { timeoutMs = 15_000, paced = true, previewEveryMs }: GithubOptions = {},
): Promise<Platform> => {
  const { webhookSecret: secret } = usableSettings(settings)
  const webhooks = new Webhooks({ secret })
  const connection = createConnectionStatus(clock)
  const sdk = { log, clock, secrets, timeoutMs }
  const calls = {
    octokits: createOctokits(settings, { ...sdk, paced }),
    unpaced: createOctokits(settings, { ...sdk, paced: false }),
  }
  const client = connection.watch(createClient(calls))
  const reviews = connection.watch(createReviewClient(calls))
  const messages = connection.watch(createMessageClient(calls))
  const webUrl = webUrlOf(settings.apiUrl)
  const acknowledge = createAcknowledge({ client: messages, clock, log })
  const askPermission = createWritePermission({ client, clock, log })
  let self: Identity | undefined
  let bot = settings.bot?.replace(/^@/, '')
  let inbox: PlatformInbox | undefined
  const getSelf = async (): Promise<Identity | undefined> => (self ??= await client.identity().catch(() => undefined))
  const isApp = settings.appId !== undefined
  const port = githubReplies({ client, reviews, self: getSelf, clock, previewEveryMs, isApp })
  const replies = createReplies(port, { clock, log })

  const receive = async (parsed: Exclude<Parsed, { kind: 'ignored' }>, event: string): Promise<WebhookAnswer> => {
    const into = inbox
    if (into === undefined) return notAccepting
    const { conversationId, details, writtenAt } = parsed
    // Derived from signed content: the header's id isn't signed, so a replay could carry any. It also differs between a
    // repository's hook and the organisation's, which report the same comment.
    const deliveryId = `${event} ${parsed.deliveryId}`
    const thread = { conversationId, deliveryId, details, writtenAt }
    if (parsed.kind === 'closed') return answerFor(await into.close(thread))
    const by = await permitted(parsed)
    if (by === 'no') return { status: 200, body: 'ignored' }
    if (by === 'unknown') return notAccepting
    const accepted = await into.accept({ ...thread, kind: 'message', text: parsed.text }, by)
    if (accepted.outcome === 'accepted') acknowledge(conversationId, details.messageId)
    return answerFor(accepted)
  }

  /** Allowed: listed users, and those who can write to the repository. */
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

  const handle = async (event: string, payload: object): Promise<WebhookAnswer> => {
    if (bot === undefined) return notAccepting
    const parsed = parseDelivery(event, payload, { bot, cloneUnknown: settings.cloneUnknown ?? false, webUrl })
    if (parsed.kind !== 'ignored') return receive(parsed, event)
    log.debug('a delivery was ignored', { event, reason: parsed.reason })
    return { status: 200, body: `ignored: ${parsed.reason}` }
  }

  const catchUp = createCatchUp({
    client: connection.watch(createCatchUpClient(calls)),
    isApp,
    memory,
    bot: () => bot,
    handle: async (event, payload) => {
      const { status, body = '' } = await handle(event, payload)
      if (status === notAccepting.status) throw new AppError('busy', body)
    },
    clock,
    log,
  })

  const answerFor = ({ outcome }: Accepted | TooOld): WebhookAnswer => {
    if (outcome === 'too-old') return { status: 400, body: 'refused: too old' }
    connection.onMessage()
    return { status: 200, body: outcome }
  }

  return {
    platform: 'github',
    limit: COMMENT_LIMIT,
    start: async (given) => {
      // Asked even if nothing needs it: an invalid token is reported now, not at the first reply.
      self = await identify(client, bot, (message) => log.warn('GitHub cannot be reached yet', { message }))
      bot ??= self?.login
      inbox = given
      catchUp.start()
    },
    stop: async () => {
      inbox = undefined
      catchUp.stop()
      replies.stopPreviews()
    },
    webhook: async (request: WebhookRequest) => {
      if (inbox === undefined || bot === undefined) return notAccepting
      const delivery = await readDelivery(webhooks, request)
      return 'status' in delivery ? delivery : handle(delivery.event, delivery.payload)
    },
    prepare: (message) => prepareMessage({ client: { ...client, ...reviews }, clock, log }, message),
    fetchAttachment: createFetchAttachment({ client: messages, webUrl, token: settings.token }),
    send: ({ conversationId, replyTo, ...message }) =>
      replies.send({ ...message, conversationId: replyKey(conversationId, replyTo) }),
    preview: (conversationId, progress, replyTo) => replies.preview(replyKey(conversationId, replyTo), progress),
    status: connection.status,
  }

  async function identify(
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

/** GitHub waits ten seconds for a response. */
const PERMISSION_MS = 8_000

/** GitHub then lists the delivery as failed, and it can be redelivered from there. */
const notAccepting: WebhookAnswer = {
  status: 503,
  body: 'not accepting messages right now',
  headers: { 'retry-after': '60' },
}

const within = async (asked: Promise<WritePermission>, ms: number): Promise<WritePermission> => {
  const waited = Promise.withResolvers<WritePermission>()
  const timer = setTimeout(() => waited.resolve('unknown'), ms)
  try {
    return await Promise.race([asked, waited.promise])
  } finally {
    clearTimeout(timer)
  }
}
