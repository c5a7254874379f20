import { execFileSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join, normalize } from 'node:path'

/*
 * Bare repositories over https, as static files: git's "dumb" protocol. The certificate is for localhost, made for
 * these tests and good for nothing else.
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

/** Lets a bare repository be read over http as it is now. */
export const publish = (path: string): void => {
  execFileSync('git', ['update-server-info'], { cwd: path })
}
