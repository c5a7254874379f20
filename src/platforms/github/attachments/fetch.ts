import type { Delivery } from '../../../conversations/outbox/delivery.ts'
import { AppError } from '../../../domain/errors.ts'
import { fetchFile } from '../../fetch-file.ts'
import { imageIdOf, sourceOf } from './uploads.ts'
import type { MessageClient } from '../message-client.ts'

/**
 * Fetches an uploaded file. In a private repository an image has an address that only the rendered message says, signed
 * for a few minutes; other files are only given to a classic token, never to an app or a fine-grained one.
 */
export const createFetchAttachment =
  ({
    client,
    webUrl,
    token,
  }: {
    readonly client: Pick<MessageClient, 'html'>
    readonly webUrl: string
    readonly token: string | undefined
  }): NonNullable<Delivery['fetchAttachment']> =>
  async (attachment, signal) => {
    const source = sourceOf(attachment, webUrl)
    if (source === undefined) throw new AppError('unsupported', "the file wasn't uploaded to GitHub")
    const image = imageIdOf(source.url)
    const origins = [webUrl, ...STORAGE]
    // An image that isn't found there may still be public.
    const html = image === undefined ? '' : await client.html(source.thread, source.message).catch(() => '')
    const signed = image === undefined ? undefined : signedAddress(html, image, origins)
    const isOnPage = signed === undefined && source.url.startsWith(`${webUrl}/`)
    const { body } = await fetchFile({
      url: signed ?? source.url,
      origins,
      ...(isOnPage && token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
      signal,
    })
    return body
  }

/** Where github.com keeps uploads, and redirects to. */
const STORAGE = [
  'https://private-user-images.githubusercontent.com',
  'https://user-images.githubusercontent.com',
  'https://objects.githubusercontent.com',
  'https://github-production-user-asset-6210df.s3.amazonaws.com',
  'https://github-production-repository-file-5c1aeb.s3.amazonaws.com',
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
