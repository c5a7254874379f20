import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeServer, type ServerUnderTest } from '../../test/helpers/server.ts'
import type { IsolatedEnvironment } from '../domain/environment.ts'
import { toWork } from '../domain/work.ts'

let under: ServerUnderTest
beforeAll(async () => {
  under = await makeServer()
})
afterAll(() => under[Symbol.asyncDispose]())

const get = async (path: string): Promise<unknown> => {
  const answer = await under.call(path)
  expect([path, answer.status]).toEqual([path, 200])
  return answer.json()
}

const create = async (id: string): Promise<IsolatedEnvironment> => {
  const { provider, codebase } = under.world
  const made = await provider.create({ codebase, work: toWork('issue', id), hints: {}, createdBy: 'test', aliases: [] })
  if (made.outcome !== 'created') throw new Error(made.outcome)
  return made.environment
}

const remove = async (id: string, query = ''): Promise<{ status: number; body: Record<string, never> }> => {
  const answer = await under.call(`/api/environments/${id}${query}`, { method: 'DELETE' })
  return { status: answer.status, body: (await answer.json()) as Record<string, never> }
}

describe('codebases', () => {
  test('are registered by path, once', async () => {
    const { box, context } = under.world
    const repo = box.repo('another')
    const first = await under.post('/api/codebases', { location: repo.path, name: 'other' })
    expect([first.status, await first.json()]).toEqual([
      201,
      expect.objectContaining({ name: 'other', path: repo.path }),
    ])
    const again = await under.post('/api/codebases', { location: repo.path })
    expect([again.status, await again.json()]).toEqual([200, expect.objectContaining({ name: 'other' })])
    expect(await get('/api/codebases')).toEqual([
      expect.objectContaining({ name: 'other', environments: 0 }),
      expect.objectContaining({ name: 'project', environments: 0 }),
    ])
    expect(await context.store.codebases.byName(context.host, 'other')).toBeDefined()
  })

  test('that are no repository, or none that is there, are told apart from a fault', async () => {
    const missing = await under.post('/api/codebases', { location: '/nowhere/at/all' })
    expect([missing.status, await missing.json()]).toEqual([
      400,
      { error: expect.objectContaining({ code: 'not-a-repository' }) },
    ])
    expect((await under.call('/api/environments?codebase=nobody')).status).toBe(404)
    expect((await under.call('/api/conversations?codebase=nobody')).status).toBe(404)
  })
})

describe('environments', () => {
  test('are listed with what git knows where a codebase is named', async () => {
    const { id, branch } = await create('1')
    const recorded = {
      id,
      branch,
      codebase: 'project',
      work: { type: 'issue', id: '1' },
      status: 'active',
      owned: true,
    }
    expect(await get('/api/environments')).toEqual([expect.objectContaining(recorded)])
    expect(await get('/api/environments?codebase=project')).toEqual([
      expect.objectContaining({
        ...recorded,
        dirty: false,
        ahead: 0,
        merged: { value: false, proof: null },
        inUse: false,
      }),
    ])
    expect(await remove(id)).toMatchObject({ status: 200 })
  })

  test('are removed through the gates: 409 with the reasons, with force 200, and restored', async () => {
    const { store } = under.world.context
    const environment = await create('2')
    const held = {
      id: 'conversation-id',
      platform: 'web',
      conversationId: 'holder',
      codebaseId: environment.codebaseId,
      environmentId: environment.id,
      persistent: false,
      agent: undefined,
      lastActivityAt: Date.now(),
      closedAt: undefined,
      createdAt: Date.now(),
    }
    await store.conversations.ensure(held)
    writeFileSync(join(environment.path, 'new-file'), 'work\n')
    const refused = await remove(environment.id)
    expect(refused).toEqual({
      status: 409,
      body: {
        error: {
          code: 'refused',
          message: expect.stringContaining('1 untracked'),
          reasons: expect.arrayContaining([expect.objectContaining({ gate: 'nothing-uncommitted', answer: 'no' })]),
          remedies: expect.arrayContaining([expect.stringContaining('--force')]),
        },
      },
    })
    const removed = await remove(environment.id, '?force=true')
    expect(removed).toMatchObject({
      status: 200,
      body: { environment: { id: environment.id, status: 'removed' }, restorePoint: expect.any(String), leftOut: [] },
    })
    // Whoever else used it hears of it.
    const told = await store.outbox.ofConversation({ platform: 'web', conversationId: 'holder' }, 10)
    expect(told.map(({ role, text }) => [role, text])).toEqual([['system', expect.stringContaining('was removed')]])
    const restored = await under.call(`/api/environments/${environment.id}/restore`, { method: 'POST' })
    expect([restored.status, await restored.json()]).toEqual([
      200,
      expect.objectContaining({ branch: 'issue-2', status: 'active' }),
    ])
    const again = await under.call(`/api/environments/${environment.id}/restore`, { method: 'POST' })
    expect([again.status, await again.json()]).toEqual([
      409,
      { error: expect.objectContaining({ code: 'restore-failed' }) },
    ])
  })

  test('that do not exist are 404', async () => {
    expect((await remove('nothing')).status).toBe(404)
    expect((await under.call('/api/environments/nothing/restore', { method: 'POST' })).status).toBe(404)
  })

  test('a cleanup answers its report; a dry run touches nothing', async () => {
    const report = await under.post('/api/cleanup', { dryRun: true, codebase: 'project' })
    expect([report.status, await report.json()]).toEqual([
      200,
      { removed: [], skipped: [], missing: [], orphans: [], errors: [], failed: [], dryRun: true, notices: [] },
    ])
    const all = await under.call('/api/cleanup', { method: 'POST' })
    expect([all.status, await all.json()]).toEqual([200, expect.objectContaining({ dryRun: false, errors: [] })])
  })
})

describe('conversations', () => {
  const said = (message: string, more: object = {}) => ({ message, ...more })

  test('a message is answered with 202 once it is durable, under an id of its own', async () => {
    const { conversationId } = (await (await under.call('/api/conversations', { method: 'POST' })).json()) as {
      conversationId: string
    }
    const hints = { workflowType: 'issue', workflowId: 42, linkedPRs: [99] }
    const path = `/api/conversations/${encodeURIComponent(conversationId)}/messages`
    const body = said('fix it', { codebase: 'project', hints, context: 'earlier words' })
    const answer = await under.post(path, body)
    const accepted = (await answer.json()) as { id: string }
    expect([answer.status, accepted]).toEqual([202, { conversationId, id: expect.any(String), outcome: 'accepted' }])
    expect(await under.world.context.store.inbox.get(accepted.id)).toMatchObject({
      platform: 'web',
      conversationId,
      kind: 'message',
      text: 'fix it',
      state: 'waiting',
      details: {
        codebase: 'project',
        context: 'earlier words',
        hints: { workflowType: 'issue', workflowId: '42', linkedPRs: [99] },
      },
    })
    expect(await get(path)).toEqual([
      { id: accepted.id, role: 'user', text: 'fix it', at: expect.stringMatching(/Z$/), state: 'waiting' },
    ])
  })

  test('an id may be whatever a platform calls its threads', async () => {
    const id = 'owner/repo#42?x=ü %2F'
    const path = `/api/conversations/${encodeURIComponent(id)}/messages?platform=cli`
    const answer = await under.post(path, said('hello'))
    expect(await answer.json()).toMatchObject({ conversationId: id })
    expect(await get(path)).toMatchObject([{ text: 'hello' }])
    expect(await get(path.replace('cli', 'web'))).toEqual([])
  })

  test('a delivery id is known again in its own conversation and means nothing in another', async () => {
    const post = async (conversation: string): Promise<{ id: string; outcome: string }> =>
      (await (
        await under.post(`/api/conversations/${conversation}/messages`, said('m', { deliveryId: '1' }))
      ).json()) as { id: string; outcome: string }
    const first = await post('a')
    expect(await post('a')).toEqual({ ...first, outcome: 'duplicate' })
    expect((await post('b')).outcome).toBe('accepted')
  })

  test('closing is a message of its own kind, stopping is done at once', async () => {
    const closed = await under.call('/api/conversations/c-9/close', { method: 'POST' })
    expect([closed.status, await closed.json()]).toEqual([202, expect.objectContaining({ outcome: 'accepted' })])
    expect(under.accepted.at(-1)).toMatchObject({ platform: 'web', conversationId: 'c-9', kind: 'closed', text: '' })
    const stopped = await under.call('/api/conversations/c-9/stop', { method: 'POST' })
    expect([stopped.status, await stopped.json()]).toEqual([
      200,
      { outcome: 'nothing-running', left: { own: [], unknown: [] }, scripts: { ended: 0, running: [] } },
    ])
  })

  test('are listed by their latest activity', async () => {
    const all = (await get('/api/conversations?platform=web&codebase=project&limit=5')) as object[]
    expect(all).toEqual([expect.objectContaining({ conversationId: 'holder', codebase: 'project', closedAt: null })])
    expect(await get('/api/conversations?platform=slack')).toEqual([])
  })

  test('while the platform does not accept, 503 says when to come again', async () => {
    await using other = await makeServer()
    const { platforms } = other
    await platforms.get('web')?.stop()
    const answer = await other.post('/api/conversations/c/messages', said('m'))
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '2'])
  })
})

describe('the test platform', () => {
  test('takes messages, knows a delivery again, and shows what was delivered, as [{ role, text, at }]', async () => {
    const { store } = under.world.context
    const message = { conversationId: 't-1', message: 'hello', deliveryId: 'd-1' }
    const first = await under.post('/test/message', message)
    const again = await under.post('/test/message', message)
    expect([first.status, again.status]).toEqual([202, 202])
    const at = Date.now() + 1
    const reply = { platform: 'test', conversationId: 't-1', inboxId: undefined, nextAttemptAt: at, createdAt: at }
    await store.outbox.append([
      { ...reply, id: 'sent', key: 'a', role: 'agent', text: 'done' },
      { ...reply, id: 'waits', key: 'b', role: 'system', text: 'not yet' },
    ])
    await store.outbox.update('sent', { state: 'sent', sentAt: at })
    expect(await get('/test/messages/t-1')).toEqual([
      { role: 'user', text: 'hello', at: expect.any(String) },
      { role: 'agent', text: 'done', at: new Date(at).toISOString() },
    ])
    expect(await get('/test/messages/nobody')).toEqual([])
    const closed = await under.post('/test/close', { conversationId: 't-1' })
    expect(closed.status).toBe(202)
    expect(under.accepted.at(-1)).toMatchObject({ platform: 'test', conversationId: 't-1', kind: 'closed' })
  })

  test('does not exist unless it is on', async () => {
    await using other = await makeServer({ testPlatform: false })
    expect((await other.post('/test/message', { conversationId: 'c', message: 'm' })).status).toBe(404)
    expect((await other.call('/test/messages/c')).status).toBe(404)
    expect(await (await other.call('/api/openapi.json')).text()).not.toContain('/test/')
  })
})

describe('landings', () => {
  test('are queued and listed', async () => {
    const { repo, box } = under.world
    // Without a remote, the base is moved only where nobody has it checked out.
    repo.git('checkout', '-q', '-b', 'fix', 'main')
    const sha = repo.commit('fix', 'x')
    const queued = await under.post('/api/landings', { branch: 'fix', codebase: 'project' })
    const landing = { codebase: 'project', item: null, branch: 'fix', sha, state: 'queued', attempts: 0, gate: null }
    expect([queued.status, await queued.json()]).toEqual([202, expect.objectContaining(landing)])
    expect(await get('/api/landings?codebase=project')).toEqual([expect.objectContaining(landing)])
    const refused = await under.post('/api/landings', { branch: 'main', codebase: 'project' })
    expect([refused.status, await refused.json()]).toMatchObject([
      409,
      { error: { code: 'refused', reasons: [{ gate: 'is-base' }] } },
    ])
    expect((await under.post('/api/landings', { item: 99 })).status).toBe(404)
    expect((await under.post('/api/landings', { branch: 'fix' })).status).toBe(400)
    repo.git('checkout', '-q', 'main')
    expect(box.raw(repo.path, 'status', '--porcelain')).toBe('')
  })
})

describe('the rest', () => {
  test('the status says what runs where', async () => {
    expect(await get('/api/status')).toMatchObject({
      version: '1.2.3',
      ready: true,
      home: under.world.context.home,
      codebases: 2,
      messages: { running: 0 },
    })
  })

  test('a wake reaches who works', async () => {
    const before = under.woken.count
    expect((await under.call('/api/wake', { method: 'POST' })).status).toBe(204)
    expect(under.woken.count).toBe(before + 1)
  })

  test('the page says what this is, without a script and with a policy that allows none', async () => {
    const answer = await under.call('/', { token: null })
    const text = await answer.text()
    expect(answer.headers.get('content-type')).toMatch(/^text\/html/)
    expect(text).toContain('coppice chat')
    expect(text).not.toMatch(/<script|https?:\/\//)
    expect(answer.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-[\w+/=]+';/)
  })

  test('the description is whole: every reference in it leads somewhere, every path parameter is declared', async () => {
    const text = await (await under.call('/api/openapi.json')).text()
    const document = JSON.parse(text) as {
      paths: Record<string, Record<string, { parameters?: { in: string; name: string }[]; responses: object }>>
      components: { schemas: object; securitySchemes: object }
    }
    for (const [, name = ''] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      expect(document.components.schemas).toHaveProperty(name)
    }
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const operation of Object.values(methods)) {
        const declared = (operation.parameters ?? []).filter((one) => one.in === 'path').map(({ name }) => name)
        expect([path, ...declared]).toEqual([path, ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)])
        expect(Object.keys(operation.responses).some((status) => status.startsWith('2'))).toBe(true)
      }
    }
  })
})
