import type { APIAttachment } from 'discord.js'
import { AppError } from '../../domain/errors.ts'
import type { MessageAttachment } from '../../domain/message.ts'
import { fetchFile } from '../fetch-file.ts'
import { withoutInvisible } from '../../domain/text/visible.ts'
import type { DiscordApi } from './client.ts'
import { deliveryError } from './errors.ts'

export type FileParts = { readonly api: Pick<DiscordApi, 'message'>; readonly origins: readonly string[] }

/** Where Discord keeps files; and whatever stands in for Discord's API. */
export const fileOrigins = (apiUrl: string | undefined): readonly string[] => [
  'https://cdn.discordapp.com',
  'https://media.discordapp.net',
  ...(apiUrl === undefined ? [] : [new URL(apiUrl).origin]),
]

/** By its IDs, since Discord's URLs expire after a day. */
export const attachmentOf = (
  { channel, message }: { readonly channel: string; readonly message: string },
  { id, filename, content_type: type, size }: APIAttachment,
): MessageAttachment => ({
  name: filename,
  ...(type !== undefined && { mediaType: type.split(';', 1)[0] ?? type }),
  bytes: size,
  reference: `${channel}/${message}/${id}`,
})

export const fetchDiscordFile = async (
  { api, origins }: FileParts,
  { reference }: MessageAttachment,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> => {
  const [channel = '', message = '', id] = reference.split('/')
  const { attachments } = await api.message(channel, message).catch((error: unknown) => {
    throw new AppError('remote-unreachable', deliveryError(error).message)
  })
  const found = attachments.find((one) => one.id === id)
  if (found === undefined) throw new AppError('not-found', 'the file was removed from the message')
  return (await fetchFile({ url: found.url, origins, signal })).body
}

const MAX_PASTE_BYTES = 100_000
const PASTE_TIMEOUT_MS = 10_000

/** Discord's client turns a paste over its limit into this file. A larger one stays a file. */
export const isPaste = ({ filename, content_type: type, size }: APIAttachment): boolean =>
  filename === 'message.txt' && type?.startsWith('text/plain') === true && size <= MAX_PASTE_BYTES

/** The text of a long paste. Throws if it can't be read whole. */
export const fetchPaste = async ({ url }: APIAttachment, origins: readonly string[]): Promise<string> => {
  const signal = AbortSignal.timeout(PASTE_TIMEOUT_MS)
  const { body } = await fetchFile({ url, origins, signal })
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > MAX_PASTE_BYTES) throw new AppError('unsupported', 'the file is larger than Discord said')
    chunks.push(chunk)
  }
  return withoutInvisible(Buffer.concat(chunks).toString('utf8')).trim()
}
