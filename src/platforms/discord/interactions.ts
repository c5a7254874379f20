import {
  type APIInteraction,
  type APIMessageComponentButtonInteraction,
  ComponentType,
  InteractionType,
} from 'discord.js'
import { withStoreRetry } from '../../store/with-store-retry.ts'
import type { Authorised } from '../authorisation.ts'
import { disabledRows } from './buttons.ts'
import { addressOf, conversationIdOf } from './conversation-id.ts'
import type { ReceiverParts } from './receiver-parts.ts'

/** Commands from Discord's menu, and pressed buttons. Discord waits three seconds for the answer to either. */

type Parts = Pick<ReceiverParts, 'api' | 'inbox' | 'log' | 'buttons' | 'conversationOf' | 'onAccepted'>

export const NOT_SAVED = "Couldn't save this message, so nothing will happen. Send it again in a minute."
const EXPIRED = 'This button is too old. Write the command instead.'

export const isPress = (interaction: APIInteraction): interaction is APIMessageComponentButtonInteraction =>
  interaction.type === InteractionType.MessageComponent && interaction.data.component_type === ComponentType.Button

/** Acknowledges at once, and returns what to do in turn: it is the same as writing the command there. */
export const receivePress = (
  parts: Parts,
  interaction: APIMessageComponentButtonInteraction,
  by: Authorised,
): (() => Promise<void>) => {
  const { api, inbox, log, buttons, onAccepted } = parts
  const { id, data, message } = interaction
  const command = buttons.commandOf(data.custom_id).catch((error: unknown) => {
    log.warn('a button could not be looked up', { error })
    return undefined
  })
  const acknowledged = command
    .then((text) => (text === undefined ? api.whisper(interaction, EXPIRED) : api.acknowledgePress(interaction)))
    .catch((error: unknown) => log.warn('a press could not be acknowledged', { error }))
  return async () => {
    const text = await command
    if (text === undefined) return
    try {
      const conversationId = (await parts.conversationOf(message.id)) ?? placeOf(interaction)
      if (conversationId === undefined) return
      const delivery = {
        conversationId,
        // A button works once: a double click is two interactions.
        deliveryId: `press:${message.id}:${data.custom_id}`,
        kind: 'message',
        text,
        details: detailsOf(conversationId, by),
      } as const
      const accept = () => inbox.accept(delivery, by)
      const { outcome } = await withStoreRetry(accept, { log, what: 'a press on Discord' })
      if (outcome !== 'accepted') return
      onAccepted()
    } catch (error) {
      log.error('a press could not be accepted', { id, error })
      await acknowledged
      return api.whisperLater(interaction, NOT_SAVED)
    }
    await acknowledged
    // A button works once.
    await api.setComponents(message.channel_id, message.id, disabledRows(message)).catch((error: unknown) => {
      log.debug('used buttons could not be disabled', { error })
    })
  }
}

export const receiveCommand = async (
  { inbox, log, onAccepted }: Parts,
  interaction: APIInteraction,
  by: Authorised,
  { text, acknowledged }: { readonly text: string; readonly acknowledged: (content: string) => Promise<void> },
): Promise<void> => {
  const { id } = interaction
  const conversationId = placeOf(interaction)
  if (conversationId === undefined) return
  try {
    const details = detailsOf(conversationId, by)
    const delivery = { conversationId, deliveryId: id, kind: 'message', text, details } as const
    await withStoreRetry(() => inbox.accept(delivery, by), { log, what: 'a command from Discord' })
    onAccepted()
  } catch (error) {
    log.error('a command could not be accepted', { id, error })
    return acknowledged(NOT_SAVED)
  }
  // Discord shows only the command's name; the reply follows as a separate message.
  await acknowledged(`\`${text.replaceAll('`', "'")}\``)
}

const placeOf = ({ channel }: APIInteraction): string | undefined => {
  if (channel?.id === undefined) return undefined
  const parent = 'parent_id' in channel && 'thread_metadata' in channel ? (channel.parent_id ?? undefined) : undefined
  return conversationIdOf({ channel: channel.id, parent })
}

const detailsOf = (conversationId: string, { userId }: Authorised) => {
  const { parent } = addressOf(conversationId)
  return { ...(userId !== undefined && { userId }), ...(parent !== undefined && { channelId: parent }) }
}

/** Discord waits three seconds. If the command isn't durable by then, it is deferred and acknowledged later. */
export const acknowledgement = (
  { api, log }: Parts,
  interaction: APIInteraction,
  text: string,
): ((content: string) => Promise<void>) => {
  let deferred: Promise<void> | undefined
  const timer = setTimeout(() => {
    deferred = api.acknowledge(interaction, undefined)
    deferred.catch((error: unknown) => log.warn('a command could not be acknowledged', { text, error }))
  }, DEFER_AFTER_MS)
  return async (content) => {
    clearTimeout(timer)
    if (deferred === undefined) return api.acknowledge(interaction, content)
    await deferred.catch(() => undefined)
    await api.editAcknowledgement(interaction, content)
  }
}

const DEFER_AFTER_MS = 2_000
