import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createEmulator, type Emulator } from 'emulate'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { IncomingMessage } from '../../src/domain/message.ts'
import type { Platform } from '../../src/platforms/platform.ts'
import { inboxOf } from '../helpers/inbox.ts'
import { until } from '../helpers/server-process.ts'
import { makeGithub, SECRET } from './github-double.ts'

/* The same API with state and webhooks, as somebody else has built it. */

const events = ['issues', 'issue_comment', 'pull_request', 'pull_request_review', 'pull_request_review_comment']

type Hook = { readonly url: string; readonly close: () => Promise<void>; platform: Platform | undefined }

/** The one route of our server that GitHub sees. */
const startHook = async (): Promise<Hook> => {
  const hook: { platform: Platform | undefined } = { platform: undefined }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
      const answering = hook.platform?.webhook?.({ headers, body: Buffer.concat(chunks) })
      void answering?.then(({ status, body }) => response.writeHead(status).end(body))
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return Object.assign(hook, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks/github`,
    close: () =>
      new Promise<void>((closed) => {
        server.close(() => closed())
        server.closeAllConnections()
      }),
  })
}

let hook: Hook
let github: Emulator
let received: Omit<IncomingMessage, 'platform'>[]
beforeEach(async () => {
  hook = await startHook()
  received = []
})
afterEach(async () => {
  await hook.platform?.stop()
  await github.close()
  await hook.close()
})

const listen = async (platform: Platform): Promise<Platform> => {
  hook.platform = platform
  await platform.start(
    inboxOf(async (message) => {
      received.push(message)
      return { outcome: 'accepted', id: String(received.length) }
    }),
  )
  return platform
}

const as =
  (token: string) =>
  async <T = { number: number; id: number }>(method: string, path: string, body?: object): Promise<T> => {
    const response = await fetch(`${github.url}${path}`, {
      method,
      headers: { authorization: `token ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as T
  }

const arrived = (count: number): Promise<unknown> =>
  until(`${count} messages arrived`, async () => (received.length >= count ? true : undefined))

const users = [{ login: 'alice' }, { login: 'mallory' }, { login: 'coppice-machine' }]
const repos = [{ owner: 'alice', name: 'app', auto_init: true }]
const tokens = {
  token_alice: { login: 'alice', scopes: ['repo', 'admin:repo_hook'] },
  token_mallory: { login: 'mallory', scopes: ['repo'] },
  token_bot: { login: 'coppice-machine', scopes: ['repo'] },
}
const freePort = async (): Promise<number> => {
  const server = createServer()
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  await new Promise((closed) => server.close(closed))
  return port
}

describe('with a token', () => {
  beforeEach(async () => {
    github = await createEmulator({
      service: 'github',
      port: await freePort(),
      seed: { tokens, github: { users, repos } },
    })
    await as('token_alice')('PUT', '/repos/alice/app/collaborators/coppice-machine', { permission: 'push' }).catch(
      () => undefined,
    )
    await as('token_alice')('POST', '/repos/alice/app/hooks', {
      name: 'web',
      events,
      config: { url: hook.url, secret: SECRET, content_type: 'json' },
    })
    const { platform } = await makeGithub({ token: 'token_bot', bot: 'coppice-machine', apiUrl: github.url })
    await listen(platform)
  })

  test('an issue that calls the bot is answered below it, and its end is reported', async () => {
    const alice = as('token_alice')
    const { number } = await alice('POST', '/repos/alice/app/issues', {
      title: 'Login is broken',
      body: '@coppice-machine fix it',
    })
    await arrived(1)
    const conversationId = `alice/app#${number}`
    expect(received[0]).toMatchObject({
      conversationId,
      kind: 'message',
      text: 'fix it',
      details: { github: 'alice/app', hints: { workflowType: 'issue', workflowId: String(number) } },
    })
    await hook.platform?.send({ id: 'r.0', conversationId, role: 'agent', text: 'Done.', part: 1, parts: 1 })
    const path = `/repos/alice/app/issues/${number}/comments`
    const [comment] = await alice<{ body: string; user: { login: string } }[]>('GET', path)
    expect(comment).toMatchObject({ body: 'Done.\n\n<!-- coppice:r.0 -->', user: { login: 'coppice-machine' } })
    await alice('PATCH', `/repos/alice/app/issues/${number}`, { state: 'closed' })
    await arrived(2)
    expect(received[1]).toMatchObject({ conversationId, kind: 'closed' })
    // Its own comment came by as well, and was none of its business.
    expect(received).toHaveLength(2)
  })

  test('what was said before is the context', async () => {
    const alice = as('token_alice')
    const { number } = await alice('POST', '/repos/alice/app/issues', { title: 'Login' })
    const path = `/repos/alice/app/issues/${number}/comments`
    await alice('POST', path, { body: 'I had a look.' })
    await alice('POST', path, { body: '@coppice-machine rename it' })
    await arrived(1)
    const [message] = received
    const details = message && (await hook.platform?.prepare?.(message))
    expect(details?.context).toMatch(/Comment by @alice, .*:\n> I had a look\.$/)
  })

  test('a pull request that calls the bot brings head and linked issue by its text', async () => {
    const pull = await as('token_alice')<{ number: number; head: { sha: string } }>('POST', '/repos/alice/app/pulls', {
      title: 'Fix the login',
      body: '@coppice-machine review this. Fixes #77',
      head: 'fix-login',
      base: 'main',
    })
    await arrived(1)
    const [message] = received
    expect((message && (await hook.platform?.prepare?.(message)))?.hints).toEqual({
      workflowType: 'pr',
      workflowId: String(pull.number),
      prBranch: 'fix-login',
      prSha: pull.head.sha,
      isForkPR: false,
      linkedIssues: [77],
    })
  })

  test('who may only read is not heard', async () => {
    await as('token_mallory')('POST', '/repos/alice/app/issues', { title: 'x', body: '@coppice-machine do evil' })
    await as('token_alice')('POST', '/repos/alice/app/issues', { title: 'y', body: '@coppice-machine do good' })
    await arrived(1)
    expect(received.map(({ text }) => text)).toEqual(['do good'])
  })
})

test('as an app it finds its installation by the repository, and speaks as itself', async () => {
  const permissions = { contents: 'read', issues: 'write', pull_requests: 'write', metadata: 'read' }
  const installations = [{ installation_id: 100, account: 'alice', repository_selection: 'all', permissions }]
  github = await createEmulator({
    service: 'github',
    port: await freePort(),
    seed: {
      tokens,
      github: {
        users,
        repos,
        apps: [
          {
            app_id: 12_345,
            slug: 'coppice',
            name: 'Coppice',
            permissions,
            events,
            webhook_url: hook.url,
            webhook_secret: SECRET,
            installations,
          },
        ],
      },
    },
  })
  const privateKey = github.generatedSecrets[0]?.value ?? ''
  const { platform } = await makeGithub({ appId: '12345', privateKey, apiUrl: github.url, allowedUsers: [] })
  await listen(platform)
  const alice = as('token_alice')
  const { number } = await alice('POST', '/repos/alice/app/issues', { title: 'Login', body: '@coppice fix it' })
  await arrived(1)
  const conversationId = `alice/app#${number}`
  expect(received[0]).toMatchObject({ conversationId, text: 'fix it' })
  const reply = { id: 'r.0', conversationId, role: 'agent', text: 'Done.', part: 1, parts: 1 } as const
  await platform.send(reply)
  // Another process would find it there.
  const { platform: next } = await makeGithub({ appId: '12345', privateKey, apiUrl: github.url })
  await next.send(reply)
  const path = `/repos/alice/app/issues/${number}/comments`
  const comments = await alice<{ body: string; user: { login: string } }[]>('GET', path)
  expect(comments.map(({ body, user }) => [body, user.login])).toEqual([
    ['Done.\n\n<!-- coppice:r.0 -->', 'coppice[bot]'],
  ])
  await expect(platform.send({ ...reply, id: 's.0', conversationId: 'alice/other#1' })).rejects.toMatchObject({
    kind: 'refused',
  })
})
