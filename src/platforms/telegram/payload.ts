import { z } from 'zod'

/* Only the fields of an update that we read. */

const user = z.object({
  id: z.int(),
  is_bot: z.boolean(),
  first_name: z.string().optional(),
  username: z.string().optional(),
})

const entity = z.object({ type: z.string(), offset: z.int(), length: z.int() })

const words = z.object({
  from: user.optional(),
  text: z.string().optional(),
  entities: z.array(entity).optional(),
  caption: z.string().optional(),
  caption_entities: z.array(entity).optional(),
  forum_topic_created: z.unknown().optional(),
})

const chat = z.object({ id: z.int(), type: z.string() })

const file = z.object({ file_id: z.string(), file_size: z.number().optional() })

/** One picture in several sizes. */
const photo = z.array(file.extend({ width: z.number(), height: z.number() }))
const document = file.extend({ file_name: z.string().optional(), mime_type: z.string().optional() })

const message = words.extend({
  message_id: z.int(),
  date: z.int(),
  chat,
  /** A channel, or an anonymous administrator. */
  sender_chat: z.unknown().optional(),
  via_bot: z.unknown().optional(),
  forward_origin: z.unknown().optional(),
  edit_date: z.int().optional(),
  message_thread_id: z.int().optional(),
  is_topic_message: z.boolean().optional(),
  // Only context: what can't be read of it doesn't lose the message.
  reply_to_message: words
    .extend({
      message_id: z.int().catch(0),
      photo: photo.optional().catch(undefined),
      document: document.optional().catch(undefined),
    })
    .optional(),
  quote: z.object({ text: z.string() }).optional(),
  /** The same for all messages of an album. */
  media_group_id: z.string().optional(),
  photo: photo.optional(),
  document: document.optional(),
})

/** Messages as they are stored while their rest is awaited. */
export const messagesPayload = z.array(message)

/** Somebody pressed a button. `message` is ours, with the button. */
const press = z.object({
  id: z.string(),
  from: user,
  data: z.string().optional(),
  message: z
    .object({
      message_id: z.int(),
      chat,
      message_thread_id: z.int().optional(),
      is_topic_message: z.boolean().optional(),
    })
    .optional(),
})

export const updatePayload = z.object({
  update_id: z.int().nonnegative(),
  message: message.optional(),
  callback_query: press.optional(),
})

export type TelegramWords = z.infer<typeof words>
export type TelegramMessage = z.infer<typeof message>
export type TelegramEntity = z.infer<typeof entity>
export type TelegramPress = z.infer<typeof press>
