import { AppError } from '../domain/errors.ts'

export type FileRequest = {
  readonly url: string
  /**
   * Origins that may be asked, also after a redirect: `https://files.slack.com`, `https://*.slack.com` for its
   * subdomains. The URL comes with a message, so nothing else keeps a stranger from pointing us at the local network.
   */
  readonly origins: readonly string[]
  /** Sent to the first URL's origin only: a redirect elsewhere doesn't get the token. */
  readonly headers?: Readonly<Record<string, string>>
  /** Asked about the address that has the file, after redirects (default: any that `origins` allows). */
  readonly accepts?: (address: URL) => boolean
  readonly signal: AbortSignal
  /** For the whole file (default: 60 s). */
  readonly timeoutMs?: number
}

export type FetchedFile = {
  /** What the service says, without parameters; not verified. */
  readonly mediaType: string | undefined
  /** Stop reading to stop the download. */
  readonly body: AsyncIterable<Uint8Array>
}

const TIMEOUT_MS = 60_000
const MOST_REDIRECTS = 5

/**
 * Starts to download a file that a message names. Throws an AppError whose message may be shown: it has the host, and
 * never the URL, which may contain a token.
 */
export const fetchFile = async (request: FileRequest): Promise<FetchedFile> => {
  const { headers = {}, signal, timeoutMs = TIMEOUT_MS } = request
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
  let url = allowedUrl(request.url, request.origins)
  const { origin } = url
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
    const response = await ask(url, url.origin === origin ? headers : {}, limit)
    if (!redirectStatuses.has(response.status)) return opened(url, response, request)
    await response.body?.cancel()
    url = allowedUrl(response.headers.get('location') ?? '', request.origins, url)
  }
  throw new AppError('remote-unreachable', `${url.host} redirected too often`)
}

const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

const ask = async (url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Response> => {
  try {
    return await fetch(url, { headers, signal, redirect: 'manual' })
  } catch (error) {
    throw failed(url, error)
  }
}

const opened = async (
  url: URL,
  response: Response,
  { accepts = () => true }: Pick<FileRequest, 'accepts'>,
): Promise<FetchedFile> => {
  const { status, body } = response
  if (status !== 200 || body === null) {
    await body?.cancel()
    const code = status === 404 ? 'not-found' : 'remote-unreachable'
    throw new AppError(code, `${url.host} responded with status ${status}`)
  }
  if (!accepts(url)) {
    await body.cancel()
    throw new AppError('unsupported', "it isn't a file of this conversation")
  }
  const [mediaType] = (response.headers.get('content-type') ?? '').slice(0, 200).split(';', 1)
  return { mediaType: mediaType?.trim().toLowerCase() || undefined, body: chunks(url, body) }
}

const chunks = async function* (url: URL, body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    // Ends when the request's signal aborts.
    yield* body
  } catch (error) {
    throw failed(url, error)
  }
}

/** The service's own errors may contain the URL. */
const failed = ({ host }: URL, error: unknown): AppError => {
  const timedOut = error instanceof Error && error.name === 'TimeoutError'
  return timedOut
    ? new AppError('timeout', `${host} took too long to send the file`)
    : new AppError('remote-unreachable', `${host} couldn't be reached`)
}

const allowedUrl = (text: string, origins: readonly string[], base?: URL): URL => {
  const url = URL.parse(text, base?.href)
  if (url === null || url.username !== '' || url.password !== '') {
    throw new AppError('unsupported', 'the file has an invalid address')
  }
  if (origins.some((origin) => covers(origin, url))) return url
  throw new AppError('unsupported', `files from ${url.host.slice(0, 100) || url.protocol} aren't fetched`)
}

const covers = (allowed: string, { origin, protocol, hostname, port }: URL): boolean => {
  const [, suffix] = /^https:\/\/\*(\.[a-z0-9.-]{1,200})$/.exec(allowed) ?? []
  if (suffix === undefined) return origin === allowed
  return protocol === 'https:' && port === '' && hostname.endsWith(suffix)
}
