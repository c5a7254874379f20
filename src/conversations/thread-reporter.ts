import { describeNotices } from '../commands/views/notices.ts'
import type { Codebase } from '../domain/environment.ts'
import { type Notice, onceKey, placeKey } from '../domain/notice.ts'
import { capabilitiesOf, type KnownPlatforms } from '../domain/platform-capabilities.ts'
import { hideLocalDetails } from '../domain/text/hide-local-details.ts'
import type { Placed, RunReporter } from '../runs/request.ts'
import type { Conversation, InboxMessage, Store } from '../store/store.ts'
import type { ConversationsContext } from './context.ts'
import type { MessageControls } from './message-controls.ts'
import * as notices from './notices.ts'
import { isOffer, type Offer } from './offers.ts'
import { type NewReply, recordReplies, replyTarget } from './outbox/replies.ts'
import { askInThread } from './questions.ts'

export type ReportedRun = {
  readonly conversation: Conversation
  readonly codebase: Codebase
  readonly run: MessageControls
  readonly known: KnownPlatforms
  /** Filled in, for the end of the reply. */
  readonly offers: Offer[]
}

/** Reports to the message's thread. */
export const threadReporter = (
  context: ConversationsContext,
  message: InboxMessage,
  { conversation, codebase, run, known, offers }: ReportedRun,
): RunReporter => {
  const { isolation, changes, queue, keepSpares } = context
  const { platform, conversationId, attempts } = message
  const delivery = context.deliveries.get(platform)
  const startedAt = isolation.clock()
  let text = ''
  let tool: string | undefined
  const isPublic = capabilitiesOf(known, platform).reach === 'repository'
  const showProgress = (): void =>
    delivery?.preview?.(conversationId, { text, tool, startedAt }, message.details.replyTo)
  /** Run after the transaction commits. */
  let after: (() => void)[] = []
  const tell = async (store: Store, replies: readonly NewReply[]): Promise<void> => {
    await recordReplies(context, store, replyTarget(message), replies)
    if (replies.length > 0) after.push(() => queue.outboxChanged())
  }
  const numbered = (key: string, texts: readonly string[]): readonly NewReply[] =>
    texts.map((one, n) => ({ key: `${key}:${attempts}:${n}`, role: 'system', text: one }))
  const tellPlace = async (store: Store, place: Placed): Promise<void> => {
    const { environment, how, isNew } = place
    const now = isolation.clock()
    const untoldNotices = await untold(store, conversation.id, place.notices, now)
    const news = { ...place, notices: untoldNotices.filter((notice) => !isOffer(notice)) }
    offers.splice(0, offers.length, ...untoldNotices.filter(isOffer))
    after = []
    if (isNew) await store.conversations.update(conversation.id, { environmentId: environment.id })
    // A conversation that was linked from a terminal, or imported, hasn't been told where it works.
    const isUntold = await store.conversations.tellOnce(conversation.id, placeKey(environment.id), now)
    const told =
      isNew || isUntold ? notices.placeNotices(news, codebase) : describeNotices(news.notices, notices.inChat)
    // One message: one notification, and a preview of the answer can't get in between.
    await tell(store, numbered('place', told.length === 0 ? [] : [told.join('\n\n')]))
    if (how !== 'created') return
    after.push(() => {
      changes.emit({ type: 'environment', id: environment.id, codebaseId: codebase.id, status: 'active' })
      if (isolation.settings.spares > 0) keepSpares(codebase.id)
    })
  }
  return {
    placed: async (place) => {
      const { environment, how, isNew, notices: news } = place
      const mayBeKnown = !isNew && how !== 'created' && news.length === 0
      // For most messages there is nothing to write.
      if (mayBeKnown && (await isolation.store.conversations.wasTold(conversation.id, placeKey(environment.id)))) {
        offers.length = 0
        return
      }
      await isolation.store.transaction((store) => tellPlace(store, place))
    },
    busy: async (environment, wait) => {
      const notice = { key: 'busy', role: 'system', text: notices.busyNotice(environment) } as const
      await recordReplies(context, isolation.store, replyTarget(message), [notice])
      queue.outboxChanged()
      await run.whileWaiting(wait)
    },
    found: async (store, { ended, planted }) => {
      after = []
      await tell(store, [
        ...numbered('late', notices.endedRunNotices(codebase, ended)),
        ...numbered('between-runs', planted.length === 0 ? [] : [notices.betweenRunsNotice(codebase, planted)]),
      ])
    },
    committed: () => {
      for (const one of after) one()
      after = []
    },
    event: (event) => {
      if (event.type === 'text') {
        text += event.text
        changes.emit({ type: 'progress', platform, conversationId, kind: 'text', text: event.text })
      } else {
        // An agent chooses its words; the line about its action has this machine's paths.
        tool = isPublic ? hideLocalDetails(event.line.slice(0, 1_000), known) : event.line
        changes.emit({ type: 'progress', platform, conversationId, kind: 'tool', text: event.line })
      }
      showProgress()
    },
    ask: (signal) => askInThread(context, message, { ...run, signal }),
    began: async (child) => {
      await queue.began(message, child)
      showProgress()
    },
    left: (left) => run.onLeft?.(left),
  }
}

/** Leaves out what the conversation was told with an earlier message. */
const untold = async (
  store: Store,
  conversationId: string,
  all: readonly Notice[],
  now: number,
): Promise<readonly Notice[]> => {
  const news: Notice[] = []
  for (const notice of all) {
    const key = onceKey(notice)
    if (key === undefined || (await store.conversations.tellOnce(conversationId, key, now))) news.push(notice)
  }
  return news
}
