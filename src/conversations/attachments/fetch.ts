import { isAppError } from '../../domain/errors.ts'
import type { MessageAttachment } from '../../domain/message.ts'
import { untilAborted } from '../../domain/until-aborted.ts'
import {
  type AttachmentDirectory,
  attachmentDirectory,
  type AttachmentContent,
  type FetchedAttachments,
  type NotFetched,
  type NotFetchedReason,
} from '../../runs/attachments/directory.ts'
import { shownName } from '../../runs/attachments/file-name.ts'
import { imageSize } from '../../runs/attachments/images/image-size.ts'
import { kindOf, mayBeTaken } from '../../runs/attachments/kinds.ts'
import type { InboxMessage } from '../../store/store.ts'
import type { ConversationsContext } from '../context.ts'
import type { Delivery } from '../outbox/delivery.ts'

/** Enough for screenshots, logs and papers. Telegram gives bots no more than 20 MB. */
export const MAX_FILE_BYTES = 20 * 1024 * 1024
export const MAX_MESSAGE_BYTES = 50 * 1024 * 1024
export const MAX_FILES = 10
/** In pixels. Claude's models reject a request with a larger image, and all later ones of that session. */
export const MAX_IMAGE_SIDE = 8_000
const FILE_TIMEOUT_MS = 60_000
/** Enough to recognise a kind by. */
const BEGINNING_BYTES = 4_096

/**
 * Fetches the files that came with a message, once, however often it is run. What can't be fetched is named with the
 * reason, and never fails the run. Throws only when `signal` aborts.
 */
export const fetchAttachments = async (
  { deliveries, isolation: { home, log }, redact }: Pick<ConversationsContext, 'deliveries' | 'isolation' | 'redact'>,
  message: Pick<InboxMessage, 'id' | 'platform' | 'details'>,
  signal: AbortSignal,
  fileTimeoutMs = FILE_TIMEOUT_MS,
): Promise<FetchedAttachments> => {
  const wanted = message.details.attachments ?? []
  if (wanted.length === 0) return { files: [], notFetched: [] }
  const directory = attachmentDirectory(home, message.id)
  const earlier = await directory.load()
  if (earlier !== undefined) return earlier
  try {
    await directory.clear()
    const delivery = deliveries.get(message.platform)
    const fetched = await fetchAll(wanted, { directory, delivery, signal, redact, fileTimeoutMs })
    directory.complete(fetched)
    return fetched
  } catch (error) {
    signal.throwIfAborted()
    // The home can't be written: the next attempt tries again.
    log.warn("attachments couldn't be stored", { id: message.id, error })
    const why = { kind: 'failed', problem: "couldn't be stored on the server" } as const
    return { files: [], notFetched: wanted.slice(0, MAX_FILES).map(({ name }) => ({ name: shownName(name), why })) }
  }
}

type Fetching = {
  readonly directory: AttachmentDirectory
  readonly delivery: Delivery | undefined
  readonly signal: AbortSignal
  readonly redact: (text: string) => string
  readonly fileTimeoutMs: number
}

const fetchAll = async (
  wanted: readonly MessageAttachment[],
  { directory, ...fetching }: Fetching,
): Promise<FetchedAttachments> => {
  const files: FetchedAttachments['files'][number][] = []
  const notFetched: NotFetched[] = []
  let left = MAX_MESSAGE_BYTES
  for (const [n, one] of wanted.entries()) {
    const name = shownName(one.name)
    const file = n < MAX_FILES ? await fetchOne(one, { ...fetching, left }) : ({ kind: 'too-many' } as const)
    if ('content' in file) {
      left -= file.content.byteLength
      files.push(directory.add(name, { ...file, fromOthers: one.fromOthers }))
    } else notFetched.push({ name, why: file })
  }
  return { files, notFetched }
}

const fetchOne = async (
  attachment: MessageAttachment,
  { delivery, signal, redact, fileTimeoutMs, left }: Omit<Fetching, 'directory'> & { readonly left: number },
): Promise<AttachmentContent | NotFetchedReason> => {
  if (delivery?.fetchAttachment === undefined) return { kind: 'unsupported' }
  if ((attachment.bytes ?? 0) > MAX_FILE_BYTES) return { kind: 'too-large' }
  const limit = AbortSignal.any([signal, AbortSignal.timeout(fileTimeoutMs)])
  const reading = read(delivery, attachment, Math.min(MAX_FILE_BYTES, left), limit)
  // A platform that doesn't heed the signal must not hold the run.
  const ended = await Promise.race([reading.catch((error: unknown) => ({ error })), untilAborted(limit)])
  signal.throwIfAborted()
  if (ended === undefined) return { kind: 'failed', problem: 'the service took too long' }
  if ('error' in ended) return { kind: 'failed', problem: redact(problemOf(ended.error)) }
  if ('kind' in ended && left < MAX_FILE_BYTES && ended.kind === 'too-large') return { kind: 'message-too-large' }
  return ended
}

/** Only our own errors are written for people; a service's may contain anything. */
const problemOf = (error: unknown): string => (isAppError(error) ? error.message : "the service didn't provide it")

const read = async (
  delivery: Delivery,
  attachment: MessageAttachment,
  most: number,
  signal: AbortSignal,
): Promise<AttachmentContent | NotFetchedReason> => {
  const chunks: Uint8Array[] = []
  let bytes = 0
  let isChecked = false
  for await (const chunk of (await delivery.fetchAttachment?.(attachment, signal)) ?? []) {
    signal.throwIfAborted()
    chunks.push(chunk)
    bytes += chunk.byteLength
    if (bytes > most) return { kind: 'too-large' }
    if (isChecked || bytes < BEGINNING_BYTES) continue
    isChecked = true
    if (!mayBeTaken(Buffer.concat(chunks).subarray(0, BEGINNING_BYTES))) return { kind: 'kind-not-taken' }
  }
  const content = Buffer.concat(chunks)
  return checked(content)
}

const checked = (content: Uint8Array): AttachmentContent | NotFetchedReason => {
  const is = kindOf(content)
  if (is === undefined) return { kind: 'kind-not-taken' }
  if (!is.mediaType.startsWith('image/')) return { content, is }
  const size = imageSize(content, is.mediaType)
  if (size === undefined) return { kind: 'damaged-image' }
  const longestSide = Math.max(size.width, size.height)
  return longestSide > MAX_IMAGE_SIDE ? { kind: 'too-many-pixels' } : { content, is, longestSide }
}
