import { AppError } from '../../domain/errors.ts'
import type { MessageAttachment } from '../../domain/message.ts'
import { fetchFile } from '../fetch-file.ts'
import { signalFor, type TelegramApi, toDeliveryError } from './client.ts'

/** The most that Telegram lets a bot download ("getFile", Bot API). */
const MAX_BYTES = 20_000_000

export type FileParts = { readonly api: TelegramApi; readonly botToken: string; readonly apiUrl: string | undefined }

/** Downloads a file. Its URL contains the token, so no error has the URL in it. */
export const fetchTelegramFile = async (
  { api, botToken, apiUrl = 'https://api.telegram.org' }: FileParts,
  { reference, bytes = 0 }: MessageAttachment,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> => {
  if (bytes > MAX_BYTES) throw new AppError('unsupported', 'Telegram lets bots download files up to 20 MB only')
  const { file_path: path } = await api.getFile(reference, signalFor(signal)).catch((error: unknown) => {
    signal.throwIfAborted()
    throw new AppError('remote-unreachable', toDeliveryError(error).message)
  })
  // A Bot API server of one's own, started with --local, answers with a path on its disk.
  if (path === undefined || path.startsWith('/')) {
    throw new AppError('unsupported', "the Bot API server doesn't offer the file for download")
  }
  const url = `${apiUrl.replace(/\/$/, '')}/file/bot${botToken}/${path}`
  const { body } = await fetchFile({ url, origins: [new URL(apiUrl).origin], signal })
  return body
}
