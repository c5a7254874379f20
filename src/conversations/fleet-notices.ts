import { describeItemEvent } from '../commands/views/item-events.ts'
import type { FleetContext } from '../fleet/context.ts'
import { recordReplies, type ReplyContext } from './outbox/replies.ts'

/** Notifies the conversations that follow an item: one message each, recorded in the transaction of the event. */
export const createFollowerNotifier =
  (speaker: ReplyContext): FleetContext['notify'] =>
  async (store, event, except) => {
    if (!('item' in event)) return
    const text = describeItemEvent(event)
    for (const id of await store.items.followers(event.item.id)) {
      if (id === except) continue
      const conversation = await store.conversations.get(id)
      if (conversation === undefined) continue
      const { platform, conversationId } = conversation
      const key = `item:${event.item.id}:${event.kind}:${speaker.isolation.ids()}`
      await recordReplies(speaker, store, { platform, conversationId, inboxId: undefined }, [
        { key, role: 'system', text },
      ])
    }
  }
