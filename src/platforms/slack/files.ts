import { AppError } from '../../domain/errors.ts'
import type { MessageAttachment } from '../../domain/message.ts'
import { fetchFile } from '../fetch-file.ts'
import type { SlackClient } from './client.ts'
import { isId } from './message/record.ts'

export type FilesParts = {
  readonly client: SlackClient
  readonly botToken: string
  readonly apiUrl: string | undefined
}

export type FetchAttachment = (attachment: MessageAttachment, signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>

/** Slack's own addresses, and wherever the token is sent anyway. */
const originsOf = (apiUrl: string | undefined): string[] => [
  'https://*.slack.com',
  'https://*.slack-gov.com',
  ...(apiUrl === undefined ? [] : [new URL(apiUrl).origin]),
]

/** Downloads a message's file with the bot token. */
export const createFetchAttachment = ({ client, botToken, apiUrl }: FilesParts): FetchAttachment => {
  const origins = originsOf(apiUrl)
  return async ({ reference, mediaType }, signal) => {
    const url = isId(reference) ? await addressOf(client, reference) : reference
    const file = await fetchFile({ url, origins, headers: { authorization: `Bearer ${botToken}` }, signal })
    // Without the scope, Slack sends its sign-in page with status 200.
    if (file.mediaType === 'text/html' && mediaType !== 'text/html') {
      throw new AppError(
        'unsupported',
        "Slack sent its sign-in page instead of the file: the bot's scope files:read is missing",
        {
          remedy: 'add it under OAuth & Permissions and install the app again',
        },
      )
    }
    return file.body
  }
}

/** For a file of another workspace, whose message says no more than its ID. */
const addressOf = async (client: SlackClient, id: string): Promise<string> => {
  const { file } = await client.files.info({ file: id })
  const url = file?.url_private_download ?? file?.url_private
  if (url === undefined) throw new AppError('not-found', 'Slack has no download address for this file')
  return url
}

/** A longer one is a file like any other. */
const MOST_SNIPPET_BYTES = 100_000

/** The text of a snippet; throws if it can't be read or is too long. */
export const readSnippet = async (
  fetchAttachment: FetchAttachment,
  snippet: MessageAttachment,
  signal: AbortSignal,
): Promise<string> => {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of await fetchAttachment(snippet, signal)) {
    size += chunk.length
    if (size > MOST_SNIPPET_BYTES) throw new AppError('unsupported', `the snippet has over ${MOST_SNIPPET_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
