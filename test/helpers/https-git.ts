import { execFileSync, spawn } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { type IncomingMessage, request as httpRequest, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join, normalize } from 'node:path'

/*
 * Bare repositories over https: as static files (git's "dumb" protocol), or by `git http-backend`, as a code host has
 * them. The certificate is for localhost, made for these tests and good for nothing else.
 */

export const certificate = `-----BEGIN CERTIFICATE-----
MIIBnDCCAUGgAwIBAgIUZGs3hLLhgFofx0DV8XssH7EfW8wwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTExNTE3NDE0NloYDzIxMjYxMDIy
MTc0MTQ2WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAARvYRewTzvcVCGxuC+6Z6IZEVO0K7tD0OxSPuLUjoQSEjffegztvLFK
x0lOiXATqGDqhV5+O72oA2Q0nzwW1nNqo28wbTAdBgNVHQ4EFgQUiUqMZ6cjnx4A
ilTqpob3f2W52q4wHwYDVR0jBBgwFoAUiUqMZ6cjnx4AilTqpob3f2W52q4wDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSQAwRgIhAKkhgvLrX+Z4psjFZZUiUl0FAqCLNxi5GW1P4+0rAOQrAiEA
vtyhePKAmi1wH0CR4i03wIK/vpzQgyFjix3+3wfgbjU=
-----END CERTIFICATE-----
`

const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgPWrdLgHo1SAQEYUs
uxu9EQ99kvnjq61eYkqg4RTUzYWhRANCAARvYRewTzvcVCGxuC+6Z6IZEVO0K7tD
0OxSPuLUjoQSEjffegztvLFKx0lOiXATqGDqhV5+O72oA2Q0nzwW1nNq
-----END PRIVATE KEY-----
`

export type HttpsGit = {
  readonly url: string
  /** `host:port` */
  readonly host: string
  /** Each repository that was asked for, with the credentials that came along. */
  readonly asked: { readonly repository: string; readonly authorization: string | undefined }[]
  close(): Promise<void>
}

/** Serves `root`. A repository whose name begins with `closed` wants credentials; `away` sends everybody elsewhere. */
export const serveGit = async (root: string): Promise<HttpsGit> => {
  const asked: HttpsGit['asked'] = []
  const server = createServer({ cert: certificate, key }, (request, response) => {
    const path = normalize(new URL(request.url ?? '/', 'https://localhost').pathname)
    const repository = path.split('/')[1] ?? ''
    const { authorization } = request.headers
    asked.push({ repository, authorization })
    if (repository.startsWith('away')) {
      response.writeHead(302, { location: path.replace(/^\/away[^/]*/, '/elsewhere.git') }).end()
    } else if (repository.startsWith('closed') && authorization === undefined) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end()
    } else {
      const file = join(root, path)
      const isFile = statSync(file, { throwIfNoEntry: false })?.isFile() === true
      if (isFile) response.writeHead(200).end(readFileSync(file))
      else response.writeHead(404).end()
    }
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const host = `localhost:${(server.address() as AddressInfo).port}`
  return {
    url: `https://${host}`,
    host,
    asked,
    close: () =>
      new Promise<void>((closed) => {
        server.close(() => closed())
        server.closeAllConnections()
      }),
  }
}

export type CodeHost = HttpsGit & {
  /** The base URL of its API, which is a double's. */
  readonly apiUrl: string
}

/** What a login may do: `none` is a wrong password, `hidden` a repository that it can't see, `https://…` is elsewhere. */
export type Access = 'write' | 'read' | 'hidden' | 'none' | `https://${string}`

/**
 * Git and an API on one host, as GitHub Enterprise Server has them: `/api/v3/…` goes to `api`, everything else is a
 * repository below `root`. All of them are private: nobody reads without a login. Refuses in GitHub's words.
 */
export const serveCodeHost = async (
  root: string,
  { api, access }: { readonly api: string; readonly access: (repository: string, secret: string) => Access },
): Promise<CodeHost> => {
  const asked: HttpsGit['asked'] = []
  const server = createServer({ cert: certificate, key }, (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'https://localhost')
    if (pathname.startsWith('/api/v3/')) return forward(request, response, api)
    const repository = /^\/([^/]+\/[^/]+?)(?:\.git)?\//.exec(pathname)?.[1] ?? ''
    const { authorization } = request.headers
    asked.push({ repository, authorization })
    const [user, secret = ''] = Buffer.from(authorization?.split(' ')[1] ?? '', 'base64')
      .toString()
      .split(':')
    const may = authorization === undefined || user !== 'x-access-token' ? 'none' : access(repository, secret)
    const isPush = pathname.endsWith('/git-receive-pack') || searchParams.get('service') === 'git-receive-pack'
    if (may === 'none') response.writeHead(401, { 'www-authenticate': 'Basic realm="GitHub"' }).end()
    else if (may.startsWith('https:')) response.writeHead(302, { location: `${may}${request.url}` }).end()
    else if (may === 'hidden') response.writeHead(404, plainText).end('Repository not found.')
    else if (may === 'read' && isPush)
      response.writeHead(403, plainText).end(`Permission to ${repository}.git denied to coppice[bot].`)
    else backend(root, request, response)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const host = `localhost:${(server.address() as AddressInfo).port}`
  return {
    url: `https://${host}`,
    host,
    apiUrl: `https://${host}/api/v3`,
    asked,
    close: () =>
      new Promise<void>((closed) => {
        server.close(() => closed())
        server.closeAllConnections()
      }),
  }
}

/** Git shows a body of this type after `remote:`. */
const plainText = { 'content-type': 'text/plain' }

const forward = (request: IncomingMessage, response: ServerResponse, api: string): void => {
  const { method = 'GET', headers } = request
  const passed = httpRequest(`${api}${(request.url ?? '').slice('/api/v3'.length)}`, { method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 500, answer.headers)
    answer.pipe(response)
  })
  request.pipe(passed)
}

/** A CGI program: headers, an empty line, the body. */
const backend = (root: string, request: IncomingMessage, response: ServerResponse): void => {
  const { pathname, search } = new URL(request.url ?? '/', 'https://localhost')
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env['PATH'],
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_CONFIG_NOSYSTEM: '1',
      REMOTE_USER: 'somebody',
      REQUEST_METHOD: request.method,
      PATH_INFO: pathname,
      QUERY_STRING: search.slice(1),
      CONTENT_TYPE: request.headers['content-type'],
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'],
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.stdin.on('error', () => undefined)
  request.pipe(child.stdin)
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.on('close', () => {
    const output = Buffer.concat(chunks)
    const end = output.indexOf('\r\n\r\n')
    const headers = output
      .subarray(0, end)
      .toString()
      .split('\r\n')
      .map((line) => line.split(': ') as [string, string])
    const status = Number(headers.find(([name]) => name === 'Status')?.[1]?.slice(0, 3) ?? 200)
    response.writeHead(status, Object.fromEntries(headers.filter(([name]) => name !== 'Status')))
    response.end(output.subarray(end + 4))
  })
}

/** Lets a bare repository be read over http as it is now. */
export const publish = (path: string): void => {
  execFileSync('git', ['update-server-info'], { cwd: path })
}
