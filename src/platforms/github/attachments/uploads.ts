import type { MessageAttachment } from '../../../domain/message.ts'
import { threadOf, type Thread } from '../conversation-id.ts'
import { type MessageRef, messageRefOf } from '../message-id.ts'
import { segmentsOf } from '../markdown/segments.ts'

/**
 * Files that were uploaded to GitHub and that the page shows or links: not those in code, and not those in text that
 * nobody sees. Links to other places are only text.
 */
export const attachmentsIn = (
  messages: readonly { readonly body: string; readonly messageId: string; readonly isOthers?: boolean }[],
  conversationId: string,
  webUrl: string,
): MessageAttachment[] => {
  const found = new Map<string, MessageAttachment>()
  for (const { body, messageId, isOthers = false } of messages) {
    for (const url of uploadsIn(body, webUrl)) {
      if (found.has(url) || found.size === MAX_ATTACHMENTS) continue
      const reference = `${conversationId} ${messageId} ${url}`
      found.set(url, { name: nameOf(url), reference, ...(isOthers && { fromOthers: true }) })
    }
  }
  return [...found.values()]
}

export type AttachmentSource = { readonly thread: Thread; readonly message: MessageRef; readonly url: string }

/** Undefined if it isn't one of ours: nothing else is fetched. */
export const sourceOf = (
  { reference }: Pick<MessageAttachment, 'reference'>,
  webUrl: string,
): AttachmentSource | undefined => {
  const [conversationId = '', messageId, url = ''] = reference.split(' ')
  const thread = threadOf(conversationId)
  const message = messageRefOf(messageId)
  const [upload] = uploadsIn(url, webUrl)
  return thread === undefined || message === undefined || upload !== url ? undefined : { thread, message, url }
}

/** Images have an ID, by which their signed address is found. */
export const imageIdOf = (url: string): string | undefined =>
  /\/assets\/(?:\d{1,20}\/)?([0-9a-f]{8}-[0-9a-f-]{27})$/.exec(url)?.[1]

const MAX_ATTACHMENTS = 20

const uploadsIn = (text: string, webUrl: string): string[] =>
  segmentsOf(text).flatMap((segment) =>
    isShown(segment)
      ? [...segment.text.matchAll(URL_LIKE)].map(([url]) => url).filter((url) => isUpload(url, webUrl))
      : [],
  )

/** `segmentsOf` returns a link's URL as code, and an `<img>` tag as hidden. */
const isShown = ({ kind, text }: ReturnType<typeof segmentsOf>[number]): boolean =>
  kind === 'text' || kind === 'quote' || (kind === 'code' ? text.startsWith('(') : /^<img\s/i.test(text))

const URL_LIKE = /https?:\/\/[\w.:-]{1,253}\/[\w./%~+@-]{1,500}/g

/** Not with `..` or `%2e%2e` in it, which lead to another page, with the token. */
const isUpload = (url: string, webUrl: string): boolean =>
  URL.parse(url)?.href === url &&
  (url.startsWith(`${webUrl}/`) ? UPLOAD_PATH.test(url.slice(webUrl.length)) : OLD_IMAGE.test(url))

const UPLOAD_PATH =
  /^(?:\/user-attachments|\/[\w.-]{1,100}\/[\w.-]{1,100})\/(?:assets\/(?:\d{1,20}\/)?[0-9a-f]{8}-[0-9a-f-]{27}|files\/\d{1,20}\/[\w.%~+@-]{1,255})$/

const OLD_IMAGE = /^https:\/\/user-images\.githubusercontent\.com\/\d{1,20}\/[\w.-]{1,255}$/

/** An image's URL has no file name; its type is detected from its content. */
const nameOf = (url: string): string => {
  const image = imageIdOf(url)
  if (image !== undefined) return `image-${image.slice(0, 8)}`
  const last = url.slice(url.lastIndexOf('/') + 1)
  try {
    return decodeURIComponent(last)
  } catch {
    return last
  }
}
