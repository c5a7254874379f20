import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fetchFile, type FileRequest } from './fetch-file.ts'

/* Two hosts of a service (two ports) and whatever they are asked with. */

const asked: { readonly host: string; readonly path: string; readonly authorization: string | undefined }[] = []
const answer = (request: IncomingMessage, response: ServerResponse): void => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://x')
  asked.push({ host: request.headers.host ?? '', path: pathname, authorization: request.headers.authorization })
  const to = searchParams.get('to')
  if (to !== null) response.writeHead(302, { location: to }).end()
  else if (pathname === '/slow') response.writeHead(200).write('first')
  else if (pathname === '/packed') sendPacked(response)
  else if (pathname === '/gone') response.writeHead(404).end('no')
  else response.writeHead(200, { 'content-type': 'Text/Plain; charset=utf-8' }).end('hello')
}
/** Zeros, packed a thousand to one, for as long as somebody reads. */
let open = 0
const sendPacked = (response: ServerResponse): void => {
  const pack = createGzip()
  const zeros = new Readable({ read: () => void zeros.push(Buffer.alloc(65_536)) })
  response.writeHead(200, { 'content-encoding': 'gzip' })
  open += 1
  response.on('close', () => {
    open -= 1
    zeros.destroy()
    pack.destroy()
  })
  zeros.pipe(pack).pipe(response)
}
const servers = [createServer(answer), createServer(answer)]
let one = ''
let other = ''

beforeAll(async () => {
  for (const server of servers) await once(server.listen(0, '127.0.0.1'), 'listening')
  const [first = '', second = ''] = servers.map(
    (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  )
  one = first
  other = second
})
afterAll(() => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
})

const get = async (path: string, more: Partial<FileRequest> = {}): Promise<string> => {
  asked.length = 0
  const request = { url: `${one}${path}`, origins: [one], headers: { authorization: 'Bearer t0ken' } }
  const { body } = await fetchFile({ ...request, signal: AbortSignal.timeout(5_000), ...more })
  let text = ''
  for await (const chunk of body) text += Buffer.from(chunk).toString()
  return text
}

test('a file is fetched with the credentials, and its type is what the service says', async () => {
  expect(await get('/a.txt')).toBe('hello')
  expect(asked).toMatchObject([{ authorization: 'Bearer t0ken' }])
  const { mediaType } = await fetchFile({ url: `${one}/a`, origins: [one], signal: AbortSignal.timeout(5_000) })
  expect(mediaType).toBe('text/plain')
})

test('a redirect to another allowed host is followed without the credentials', async () => {
  expect(await get(`/a?to=${other}/b`, { origins: [one, other] })).toBe('hello')
  expect(asked).toMatchObject([
    { path: '/a', authorization: 'Bearer t0ken' },
    { path: '/b', authorization: undefined },
  ])
})

test('a host that is not on the list is never asked, whether named or redirected to', async () => {
  await expect(get('', { url: `${other}/a` })).rejects.toMatchObject({ code: 'unsupported' })
  await expect(get(`/a?to=${other}/b`)).rejects.toMatchObject({ code: 'unsupported' })
  expect(asked.map(({ path }) => path)).toEqual(['/a'])
})

test.each([
  'http://files.example.com/a',
  'https://files.example.com:8443/a',
  'https://example.com.evil.test/a',
  'https://files.example.com.evil.test/a',
  'https://evilexample.com/a',
  'https://user:secret@files.example.com/a',
  'file:///etc/passwd',
  'data:text/plain,hello',
  'not a URL',
])('%s is not fetched from https://*.example.com', async (url) => {
  await expect(get('', { url, origins: ['https://*.example.com'] })).rejects.toMatchObject({ code: 'unsupported' })
})

test('a file at an address that is not accepted is not passed on, wherever the redirects began', async () => {
  const accepts = ({ pathname }: URL): boolean => pathname === '/b'
  expect(await get(`/a?to=${other}/b`, { origins: [one, other], accepts })).toBe('hello')
  await expect(get(`/b?to=${other}/c`, { origins: [one, other], accepts })).rejects.toMatchObject({
    code: 'unsupported',
  })
})

test('an endless redirect ends', async () => {
  await expect(get(`/loop?to=${encodeURIComponent('')}`)).rejects.toMatchObject({ message: /redirected too often/ })
  expect(asked).toHaveLength(6)
})

test('a failure names the host and not the URL', async () => {
  const failure = await get('/gone?token=s3cret').catch((error: unknown) => String(error))
  expect(failure).toContain('responded with status 404')
  expect(failure).not.toContain('s3cret')
})

test('a file that is packed small and unpacks without end stops when its reader does', async () => {
  const { body } = await fetchFile({ url: `${one}/packed`, origins: [one], signal: AbortSignal.timeout(5_000) })
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > 1_000_000) break
  }
  expect(bytes).toBeLessThan(10_000_000)
  await expect.poll(() => open).toBe(0)
})

test('a file that does not arrive in time, or is no longer wanted, is given up', async () => {
  const { signal } = new AbortController()
  await expect(get('/slow', { timeoutMs: 100, signal })).rejects.toMatchObject({ code: 'timeout' })
  const unwanted = new AbortController()
  setTimeout(() => unwanted.abort(), 50)
  await expect(get('/slow', { signal: unwanted.signal })).rejects.toMatchObject({ code: 'remote-unreachable' })
})
