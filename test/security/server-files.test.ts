import { spawn } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ensureToken, readToken } from '../../src/server/token-file.ts'
import { makeServer } from '../helpers/server.ts'

describe('the token file', () => {
  let home: string
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'coppice-token-'))
  })
  afterEach(() => rmSync(home, { recursive: true, force: true }))

  const mode = (): number => statSync(join(home, 'token')).mode & 0o777

  test('is made once: 32 random bytes that only its owner can read', () => {
    const first = ensureToken(home)
    expect(first).toMatchObject({ token: expect.stringMatching(/^[0-9a-f]{64}$/), created: true, tightened: false })
    expect(mode()).toBe(0o600)
    expect(ensureToken(home)).toMatchObject({ token: first.token, created: false })
    expect(readdirSync(home)).toEqual(['token'])
  })

  test('is private under any umask', () => {
    const before = process.umask(0)
    try {
      ensureToken(home)
    } finally {
      process.umask(before)
    }
    expect(mode()).toBe(0o600)
  })

  test('is one for processes that start together', async () => {
    const module = new URL('../../src/server/token-file.ts', import.meta.url).href
    const script = `import { ensureToken } from ${JSON.stringify(module)}; process.stdin.once('data', () => { console.log(JSON.stringify(ensureToken(${JSON.stringify(home)}))); process.exit() }); console.log('ready')`
    const children = Array.from({ length: 6 }, () => {
      const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', script], {
        stdio: ['pipe', 'pipe', 'inherit'],
      })
      let out = ''
      const ready = Promise.withResolvers<void>()
      child.stdout.on('data', (chunk: Buffer) => {
        out += chunk.toString()
        if (out.startsWith('ready')) ready.resolve()
      })
      const ended = new Promise<{ token: string; created: boolean }>((resolve, reject) => {
        child.on('close', () => {
          try {
            resolve(JSON.parse(out.replace('ready\n', '')) as { token: string; created: boolean })
          } catch (error) {
            reject(error)
          }
        })
      })
      return { child, ready: ready.promise, ended }
    })
    await Promise.all(children.map(({ ready }) => ready))
    for (const { child } of children) child.stdin.write('go')
    const tokens = await Promise.all(children.map(({ ended }) => ended))
    expect(new Set(tokens.map(({ token }) => token)).size).toBe(1)
    expect(tokens.filter(({ created }) => created)).toHaveLength(1)
    expect(readdirSync(home)).toEqual(['token'])
  })

  test.each([0o644, 0o640, 0o604, 0o666])('with mode %o is tightened, and that is said', (wide) => {
    const { token } = ensureToken(home)
    chmodSync(join(home, 'token'), wide)
    expect(readToken(home)).toMatchObject({ token, tightened: true })
    expect(mode()).toBe(0o600)
  })

  test.each([
    ['is empty', ''],
    ['is half', 'abc\n'],
    ['is something else', 'password\n'],
  ])('that %s is refused, not replaced', (_name, content) => {
    writeFileSync(join(home, 'token'), content, { mode: 0o600 })
    expect(() => ensureToken(home)).toThrow(/doesn't contain a token/)
    expect(readFileSync(join(home, 'token'), 'utf8')).toBe(content)
  })

  test('that is a link or a directory is refused, and nothing behind it changes', () => {
    const other = join(home, 'other')
    writeFileSync(other, `${'a'.repeat(64)}\n`, { mode: 0o644 })
    symlinkSync(other, join(home, 'token'))
    expect(() => ensureToken(home)).toThrow(/is a link/)
    expect(statSync(other).mode & 0o777).toBe(0o644)
    rmSync(join(home, 'token'))
    mkdirSync(join(home, 'token'), { mode: 0o755 })
    expect(() => ensureToken(home)).toThrow(/is not a plain file/)
    expect(mode()).toBe(0o755)
    // A home that is a file.
    expect(() => readToken(other)).toThrow(/can't use the token file .*: ENOTDIR/)
  })
})

describe('listening', () => {
  test.each(['0.0.0.0', '::', '', '192.0.2.1', 'example.org'])(
    'on %j is refused without the explicit word',
    async (host) => {
      await expect(makeServer({ listen: { host } })).rejects.toMatchObject({
        code: 'usage',
        remedy: expect.stringContaining('--allow-remote'),
      })
    },
  )

  test('with the explicit word it listens, and still answers to its own names only', async () => {
    await using server = await makeServer({ listen: { host: '0.0.0.0', allowRemote: true } })
    const { port } = server.server
    const ask = async (host: string): Promise<string> =>
      server.raw(`GET /healthz HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)
    expect(await ask(`127.0.0.1:${port}`)).toMatch(/^HTTP\/1\.1 200/)
    expect(await ask(`0.0.0.0:${port}`)).toMatch(/^HTTP\/1\.1 403/)
    expect(await ask(`192.0.2.1:${port}`)).toMatch(/^HTTP\/1\.1 403/)
  })

  test('on localhost means the loopback', async () => {
    await using server = await makeServer({ listen: { host: 'localhost' } })
    expect(server.server.url).toMatch(/^http:\/\/(?:127\.0\.0\.1|\[::1\]):\d+$/)
  })

  test('on a port in use gets a sentence', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as { port: number }
    try {
      await expect(makeServer({ listen: { port } })).rejects.toMatchObject({
        code: 'busy',
        message: `port ${port} on 127.0.0.1 is in use`,
        remedy: expect.stringContaining('--port'),
      })
    } finally {
      taken.close()
    }
  })
})
