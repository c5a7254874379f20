import type { Delivery } from '../../../conversations/outbox/delivery.ts'
import { AppError, isAppError } from '../../../domain/errors.ts'
import { fetchFile, type FetchedFile } from '../../fetch-file.ts'
import type { Thread } from '../conversation-id.ts'
import type { MessageClient } from '../message-client.ts'
import { type AttachmentSource, imageIdOf, sourceOf } from './uploads.ts'

export type FetchParts = {
  readonly client: Pick<MessageClient, 'html' | 'repositoryId'>
  readonly webUrl: string
  readonly token: string | undefined
}

/**
 * Fetches an uploaded file. In a private repository an image has an address that only the rendered message says, signed
 * for a few minutes; other files are only given to a classic token, never to an app or a fine-grained one.
 */
export const createFetchAttachment =
  (parts: FetchParts): NonNullable<Delivery['fetchAttachment']> =>
  async (attachment, signal) => {
    const source = sourceOf(attachment, parts.webUrl)
    if (source === undefined) throw new AppError('unsupported', "the file wasn't uploaded to GitHub")
    const image = imageIdOf(source.url)
    try {
      const file =
        image === undefined
          ? await fetchDocument(parts, source, signal)
          : await fetchImage(parts, { ...source, image }, signal)
      return file.body
    } catch (error) {
      if (!isAppError(error, 'not-found')) throw error
      throw new AppError('not-found', "GitHub doesn't have it, or doesn't give it to this token or app")
    }
  }

/** Without our token: only GitHub knows whose an image is, and signs addresses of those that the message may show. */
const fetchImage = async (
  { client, webUrl }: FetchParts,
  { thread, message, url, image }: AttachmentSource & { readonly image: string },
  signal: AbortSignal,
): Promise<FetchedFile> => {
  const origins = originsFor(webUrl)
  // One that isn't found there may still be public.
  const html = await client.html(thread, message).catch(() => '')
  return fetchFile({ url: signedAddress(html, image, origins) ?? url, origins, signal })
}

/**
 * A link may be to a file of another private repository, which our token can read and the people of this conversation
 * can't. Its URL doesn't say whose it is, but the address where GitHub keeps it does. So the token only gets files of
 * this repository; public ones don't need it.
 */
const fetchDocument = async (
  { client, webUrl, token }: FetchParts,
  { thread, url }: AttachmentSource,
  signal: AbortSignal,
): Promise<FetchedFile> => {
  const origins = originsFor(webUrl)
  try {
    return await fetchFile({ url, origins, signal })
  } catch (error) {
    if (token === undefined || !url.startsWith(`${webUrl}/`) || !isAppError(error, 'not-found')) throw error
  }
  const repository = await repositoryIdOf(client, thread)
  return fetchFile({
    url,
    origins,
    headers: { authorization: `Bearer ${token}` },
    accepts: (address) => repositoryIn(address) === repository,
    signal,
  })
}

const repositoryIdOf = async (client: FetchParts['client'], thread: Thread): Promise<string> => {
  try {
    return String(await client.repositoryId(thread))
  } catch {
    // The SDK's errors may contain anything.
    throw new AppError('remote-unreachable', "GitHub didn't say which repository this is")
  }
}

/** As in <https://objects.githubusercontent.com/github-production-repository-file-5c1aeb/56971819/3050967>. */
const repositoryIn = ({ origin, pathname }: URL): string | undefined =>
  (origin === REPOSITORY_FILES ? /^\/(\d{1,16})\/\d/ : /^\/github-production-repository-file-\w+\/(\d{1,16})\/\d/).exec(
    pathname,
  )?.[1]

const REPOSITORY_FILES = 'https://github-production-repository-file-5c1aeb.s3.amazonaws.com'

/** Where github.com keeps uploads, and redirects to. */
const originsFor = (webUrl: string): readonly string[] => [
  webUrl,
  'https://private-user-images.githubusercontent.com',
  'https://user-images.githubusercontent.com',
  'https://objects.githubusercontent.com',
  'https://github-production-user-asset-6210df.s3.amazonaws.com',
  REPOSITORY_FILES,
]

const signedAddress = (html: string, image: string, origins: readonly string[]): string | undefined => {
  for (const [, address = ''] of html.slice(0, MAX_HTML).matchAll(/\bsrc="(https?:\/\/[^"\s]{1,4000})"/g)) {
    const url = URL.parse(address.replaceAll('&amp;', '&'))
    if (url === null || !origins.includes(url.origin) || !url.searchParams.has('jwt')) continue
    if (url.pathname.includes(image)) return url.href
  }
  return undefined
}

const MAX_HTML = 1_000_000
