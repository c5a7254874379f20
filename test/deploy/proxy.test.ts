import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeServerWorld, until } from '../helpers/server-process.ts'
import { alice, dated, type GithubDouble, headersFor, SECRET, startDouble } from '../platforms/github-double.ts'
import { repository } from './podman.ts'

/*
 * The proxies of deploy/, as installed except for ports and certificates: a signed webhook of GitHub reaches the server
 * through TLS, and nothing else does.
 */

let double: GithubDouble
beforeEach(async () => {
  double = await startDouble()
  double.permissions.set('alice', { id: 5, permission: 'admin' })
})
afterEach(() => double.close())

type Proxy = { readonly program: string; readonly args: readonly string[] }
type Place = { readonly directory: string; readonly port: number; readonly upstream: string }

const proxies: Record<string, (place: Place) => Proxy> = {
  nginx: ({ directory, port, upstream }) => {
    const certificate = join(directory, 'certificate.pem')
    const key = join(directory, 'key.pem')
    const subject = ['-subj', '/CN=coppice.example.com', '-days', '1', '-nodes']
    const made = ['req', '-x509', '-newkey', 'rsa:2048', '-keyout', key, '-out', certificate, ...subject]
    execFileSync('openssl', made, { stdio: 'pipe' })
    const site = replaced('nginx.conf', [
      ['listen 443 ssl', `listen 127.0.0.1:${port} ssl`],
      ['/etc/letsencrypt/live/coppice.example.com/fullchain.pem', certificate],
      ['/etc/letsencrypt/live/coppice.example.com/privkey.pem', key],
      ['http://127.0.0.1:4780', upstream],
    ])
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((n) => `${n}_temp_path ${directory}/${n};`)
    const user = process.getuid?.() === 0 ? 'user root;' : ''
    const file = join(directory, 'nginx.conf')
    writeFileSync(
      file,
      `${user} pid ${directory}/pid; error_log stderr; daemon off; events {} http { access_log off; ${paths.join(' ')}\n${site}}`,
    )
    return { program: 'nginx', args: ['-p', directory, '-c', file, '-e', 'stderr'] }
  },
  caddy: ({ directory, port, upstream }) => {
    const site = replaced('Caddyfile', [
      ['coppice.example.com {', `https://coppice.example.com:${port} {\n\ttls internal`],
      ['127.0.0.1:4780', upstream.replace('http://', '')],
    ])
    const file = join(directory, 'Caddyfile')
    writeFileSync(file, `{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n}\n${site}`)
    return { program: 'caddy', args: ['run', '--config', file, '--adapter', 'caddyfile'] }
  },
}

/** Each text occurs in the file: a proxy that no longer has it would be tried with something else. */
const replaced = (name: string, changes: readonly (readonly [string, string])[]): string =>
  changes.reduce(
    (text, [from, to]) => {
      expect(text).toContain(from)
      return text.replaceAll(from, to)
    },
    readFileSync(join(repository, 'deploy', name), 'utf8'),
  )

test.each(Object.keys(proxies))(
  'through %s, a signed webhook reaches the server, and nothing else does',
  async (name) => {
    await using world = makeServerWorld({ env: { COPPICE_AGENT_COMMAND: 'echo "heard $(cat)"' } })
    const repo = await world.project()
    await world.json(repo.path, 'codebase', 'add', repo.path, '--github', 'acme/app')
    const server = await world.serve({
      env: {
        GITHUB_TOKEN: 'ghp_0123456789abcdef0123',
        GITHUB_WEBHOOK_SECRET: SECRET,
        GITHUB_BOT: 'coppice',
        GITHUB_API_URL: double.url,
      },
    })
    const directory = join(world.box.root, name)
    mkdirSync(directory)
    const port = await freePort()
    const { program, args } = proxies[name]?.({ directory, port, upstream: server.url }) ?? { program: name, args: [] }
    const proxy = spawn(program, args, {
      stdio: 'pipe',
      env: { ...process.env, HOME: directory, XDG_DATA_HOME: directory },
    })
    let said = ''
    proxy.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
    try {
      const ask = asker(port)
      await until('the proxy answers', async () => {
        if (proxy.exitCode !== null) throw new Error(`${name} ended: ${said}`)
        return (await ask('GET', '/').catch(() => undefined)) === undefined ? undefined : true
      })
      const issue = { id: 1, number: 42, title: 'Broken', body: '@coppice hello', user: alice, ...dated() }
      const delivery = (number: number, filler = '') => {
        const shared = { repository: { full_name: 'acme/app' }, sender: alice, filler }
        const payload = { ...shared, action: 'opened', issue: { ...issue, id: number, number } }
        const body = JSON.stringify(payload)
        return { body, headers: headersFor({ event: 'issues', payload }, body) }
      }
      const small = delivery(42)
      expect(await ask('POST', '/webhooks/github', small)).toEqual([200, 'accepted'])
      const forged = { ...small, body: small.body.replace('hello', 'howdy') }
      expect((await ask('POST', '/webhooks/github', forged))[0]).toBe(401)
      // The largest that GitHub sends, and one that it doesn't.
      expect(await ask('POST', '/webhooks/github', delivery(43, 'x'.repeat(24_900_000)))).toEqual([200, 'accepted'])
      expect((await ask('POST', '/webhooks/github', delivery(44, 'x'.repeat(27_000_000))))[0]).toBe(413)
      const token = { headers: { authorization: `Bearer ${server.token}` } }
      for (const path of ['/', '/healthz', '/metrics', '/api/codebases', '/webhooks/github/', '/webhooks/test']) {
        expect([path, (await ask('GET', path, token))[0]]).toEqual([path, 404])
      }
      expect((await ask('GET', '/webhooks/github', token))[0]).toBeOneOf([403, 404])
      expect((await ask('POST', '/api/cleanup', { ...token, body: '{}' }))[0]).toBe(404)
      await server.quiet()
      expect(double.bodies('acme/app#42').at(-1)).toContain('heard hello')
    } finally {
      proxy.kill('SIGTERM')
      await new Promise((done) => (proxy.exitCode === null ? proxy.once('exit', done) : done(undefined)))
    }
  },
)

type Sent = { readonly headers?: Record<string, string>; readonly body?: string }

const asker =
  (port: number) =>
  (method: string, path: string, { headers = {}, body }: Sent = {}): Promise<[number, string]> =>
    new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
      const to = { host: '127.0.0.1', port, servername: 'coppice.example.com', rejectUnauthorized: false, agent: false }
      const sent = request(
        { ...to, method, path, headers: { ...headers, ...length, host: 'coppice.example.com' } },
        (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk: Buffer) => chunks.push(chunk))
          response.on('end', () => resolve([response.statusCode ?? 0, Buffer.concat(chunks).toString()]))
        },
      )
      sent.on('error', reject)
      sent.end(body)
    })

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
