import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Run } from '../../src/runs/tokens.ts'
import type { EnvironmentId } from '../../src/domain/names.ts'
import { toWork } from '../../src/domain/work.ts'
import { makeServer, rawRequest, type ServerUnderTest, statusOf } from '../helpers/server.ts'

/*
 * What the token of a run opens. The routes are read from the description of the API, so that one that is added later is
 * tried without anybody having to think of it.
 */

const conversationId = 'C1/thread 2'
let under: ServerUnderTest
let environmentId: EnvironmentId
let token: string

beforeAll(async () => {
  under = await makeServer()
  environmentId = await createEnvironment('42')
  token = issue({ environmentId }).token
})
afterAll(() => under[Symbol.asyncDispose]())

const createEnvironment = async (id: string): Promise<EnvironmentId> => {
  const { provider, codebase } = under.world
  const made = await provider.create({ codebase, work: toWork('issue', id), hints: {}, createdBy: 'test', aliases: [] })
  if (made.outcome !== 'created') throw new Error(made.outcome)
  return made.environment.id
}

let messages = 0
const issue = (change: Partial<Run> = {}): { token: string; revoke: () => void } => {
  messages += 1
  const { variables, revoke } = under.runTokens.issue({
    platform: 'test',
    conversationId,
    messageId: `message-${messages}`,
    attempt: 1,
    codebaseId: under.world.codebase.id,
    environmentId: undefined,
    ...change,
  })
  expect(variables).toMatchObject({ COPPICE_URL: under.server.url })
  return { token: variables['COPPICE_RUN_TOKEN'] ?? '', revoke }
}

const ask = async (path: string, given = token, init: RequestInit = {}): Promise<number> =>
  (await under.call(path, { ...init, token: given })).status

const ownMessages = `/api/conversations/${encodeURIComponent(conversationId)}/messages`

describe('the token of a run', () => {
  test('tells the run what it is about', async () => {
    const answer = await under.call('/api/run', { token })
    expect([answer.status, await answer.json()]).toEqual([
      200,
      {
        message: 'message-1',
        attempt: 1,
        conversation: { platform: 'test', conversationId },
        codebase: 'project',
        environment: expect.objectContaining({ id: environmentId, branch: 'issue-42', codebase: 'project' }),
        branch: 'issue-42',
        work: { type: 'issue', id: '42' },
      },
    ])
    const reading = await under.call('/api/run', { token: issue().token })
    expect(await reading.json()).toMatchObject({ environment: null, branch: null, work: null })
  })

  test('reads its own environment and its own conversation', async () => {
    expect(await ask(`/api/environments/${environmentId}`)).toBe(200)
    expect(await ask(`${ownMessages}?platform=test`)).toBe(200)
    expect(await ask(`${ownMessages}?limit=5&platform=test`)).toBe(200)
    const onTheWeb = issue({ platform: 'web' }).token
    expect(await ask(ownMessages, onTheWeb)).toBe(200)
  })

  test('opens no other route of the API', async () => {
    const document = (await (await under.call('/api/openapi.json')).json()) as {
      paths: Record<string, Record<string, { security?: unknown[] }>>
    }
    const opened: string[] = []
    let tried = 0
    for (const [template, methods] of Object.entries(document.paths)) {
      for (const [method, { security }] of Object.entries(methods)) {
        // Open to everybody, or judged by a signature of its own.
        if (security?.length === 0) continue
        tried += 1
        const path = template
          .replace('{id}', template.includes('environments') ? environmentId : encodeURIComponent(conversationId))
          .replace('{conversationId}', encodeURIComponent(conversationId))
        const status = await ask(`${path}${template.endsWith('/messages') ? '?platform=test' : ''}`, token, {
          method: method.toUpperCase(),
          ...(method === 'post' && { body: '{}', headers: { 'content-type': 'application/json' } }),
        })
        if (status !== 403) opened.push(`${method} ${template} ${status}`)
      }
    }
    expect(tried).toBeGreaterThan(18)
    expect(opened.toSorted()).toEqual([
      'get /api/conversations/{id}/messages 200',
      'get /api/environments/{id} 200',
      'get /api/run 200',
    ])
  })

  test('opens nothing of another run, however it is asked for', async () => {
    const other = await createEnvironment('43')
    const paths = [
      `/api/environments/${other}`,
      `/api/environments/${environmentId}?codebase=project`,
      `/api/environments/${environmentId}/`,
      `/api/environments/${environmentId}/../${other}`,
      `/api/environments/${environmentId}%2f..%2f${other}`,
      `/api/environments`,
      '/api/conversations/other/messages?platform=test',
      // Without a platform it is the web's conversation of the same name.
      ownMessages,
      `${ownMessages}?platform=web`,
      `${ownMessages}?platform=test&platform=web`,
      `${ownMessages}?platform=web&platform=test`,
      `${ownMessages}?platform=test&other=1`,
      `/api/conversations/C1/thread 2/messages?platform=test`,
      '/api/conversations/%E0%A4%A/messages?platform=test',
      '/api/run?x=1',
      '//api/run',
      '/api//run',
      '/API/run',
      '/metrics',
      '/api/nothing',
    ]
    for (const path of paths) expect([path, await ask(path)]).toEqual([path, 403])
    for (const method of ['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      expect([method, await ask('/api/run', token, { method })]).toEqual([method, 403])
    }
  })

  test('is worthless when the run is over, and one that was never given is unknown', async () => {
    const { token: over, revoke } = issue()
    expect(await ask('/api/run', over)).toBe(200)
    revoke()
    expect(await ask('/api/run', over)).toBe(401)
    for (const wrong of [`coppice_run_${'0'.repeat(64)}`, token.slice(0, -1), `${token}0`, token.toUpperCase()]) {
      expect([wrong, await ask('/api/run', wrong)]).toEqual([wrong, 401])
    }
  })

  test('cannot be exchanged for a cookie, nor lean on one', async () => {
    const cookie = (await under.call('/api/session', { method: 'POST' })).headers.get('set-cookie')?.split(';')[0] ?? ''
    expect(await ask('/api/session', token, { method: 'POST' })).toBe(403)
    expect(await ask('/api/status', token, { headers: { cookie } })).toBe(403)
  })

  test('does not get past the checks of Host and Origin', async () => {
    const head = (host: string): string =>
      `GET /api/run HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\nauthorization: Bearer ${token}\r\n\r\n`
    expect(statusOf(await rawRequest(under.server.port, head(`127.0.0.1:${under.server.port}`)))).toBe(200)
    expect(statusOf(await rawRequest(under.server.port, head('evil.example')))).toBe(403)
  })

  test('lets an agent that asks in a loop run into a limit of its own', async () => {
    await using limited = await makeServer({ deps: { limits: { run: { perSecond: 0.001, burst: 3 } } } })
    const run = { platform: 'test', conversationId, attempt: 1, codebaseId: limited.world.codebase.id } as const
    const of = (messageId: string): string =>
      limited.runTokens.issue({ ...run, messageId, environmentId: undefined }).variables['COPPICE_RUN_TOKEN'] ?? ''
    const [greedy, other] = [of('greedy'), of('other')]
    const status = async (given: string): Promise<number> => (await limited.call('/api/run', { token: given })).status
    expect([await status(greedy), await status(greedy), await status(greedy), await status(greedy)]).toEqual([
      200, 200, 200, 429,
    ])
    expect(await status(other)).toBe(200)
    expect((await limited.call('/api/status')).status).toBe(200)
  })

  test("the server's own token belongs to no run", async () => {
    expect(await ask('/api/run', under.token)).toBe(404)
    expect(await ask(`/api/environments/${environmentId}`, under.token)).toBe(200)
    expect(await ask('/api/environments/none', under.token)).toBe(404)
  })

  test('is hidden wherever it turns up, also when it is worthless', () => {
    const { secrets } = under.world.context
    const { token: shown, revoke } = issue()
    expect(secrets.redact(`it is ${shown}.`)).toBe('it is [hidden].')
    revoke()
    expect(secrets.redact(`it is ${shown}.`)).toBe('it is [hidden].')
  })
})

describe('an answer of the API', () => {
  test('has no known secret in it, whatever was named after one', async () => {
    await using named = await makeServer({ secret: 'named-after-a-secret' })
    const { provider, context, box } = named.world
    const name = 'named-after-a-secret-too'
    await named.post('/api/codebases', { location: box.repo('other').path, name })
    const codebase = await context.store.codebases.byName(context.host, name)
    if (codebase === undefined) throw new Error('it was not registered')
    const work = toWork('task', 'named-after-a-secret')
    const made = await provider.create({ codebase, work, hints: {}, createdBy: 'test', aliases: [] })
    expect(made.outcome).toBe('created')
    const events = await named.call('/api/events')
    const reader = events.body?.pipeThrough(new TextDecoderStream()).getReader()
    named.changes.emit({ type: 'codebase', id: 'x', name: 'named-after-a-secret' })
    let streamed = ''
    while (!streamed.includes('event: codebase')) streamed += (await reader?.read())?.value ?? ''
    await reader?.cancel()
    const answers = await Promise.all(
      ['/api/environments', '/api/codebases', '/metrics'].map(async (path) => (await named.call(path)).text()),
    )
    for (const text of [...answers, streamed]) {
      expect(text).toContain('[hidden]')
      expect(text).not.toContain('named-after-a-secret')
    }
    expect(JSON.parse(answers[0] ?? '')).toHaveLength(1)
  })
})
