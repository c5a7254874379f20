import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { OutgoingMessage } from '../../src/conversations/outbox/delivery.ts'
import type { MessageAttachment } from '../../src/domain/message.ts'
import type { Platform } from '../../src/platforms/platform.ts'
import { inboxOf, type Received } from '../helpers/inbox.ts'
import { progressOf } from '../helpers/progress.ts'
import { until } from '../helpers/server-process.ts'
import { alice, commented, type GithubDouble, makeGithub, post, startDouble } from './github-double.ts'

const pull = 'acme/app#42'
const head = { ref: 'fix-login', sha: 'b'.repeat(40), repo: { full_name: 'acme/app' } }
const pullRequest = { id: 2, number: 42, title: 'Fix', body: '', user: alice, head, base: { repo: head.repo } }

let double: GithubDouble
let received: Received[]
beforeEach(async () => {
  double = await startDouble()
  double.permissions.set('alice', { id: 5, permission: 'write' })
  double.pulls.set(pull, pullRequest)
  received = []
})
afterEach(() => double.close())

const make = async (): Promise<Platform> => {
  const settings = { token: 'ghp_test', bot: 'coppice', apiUrl: double.url }
  const { platform } = await makeGithub(settings, { previewEveryMs: 20 })
  await platform.start(
    inboxOf(async (message) => {
      const isKnown = received.some(({ deliveryId }) => deliveryId === message.deliveryId)
      if (!isKnown) received.push(message)
      return { outcome: isKnown ? 'duplicate' : 'accepted', id: 'id' }
    }),
  )
  return platform
}

const reply = (id: string, replyTo: string | undefined, more: Partial<OutgoingMessage> = {}): OutgoingMessage => ({
  id,
  conversationId: pull,
  replyTo,
  role: 'agent',
  text: 'Done.',
  part: 1,
  parts: 1,
  ...more,
})
const inThread = (first: number): string[] =>
  (double.reviewComments.get(pull) ?? []).filter((one) => one.in_reply_to_id === first).map(({ body }) => body)
const reacted = (what: string): Promise<unknown> =>
  until(`${what} was reacted to`, async () => double.reactions.has(`${what} eyes`) || undefined)

/** What GitHub posts for a comment on a line. */
const reviewed = (comment: object) => ({
  event: 'pull_request_review_comment',
  payload: {
    action: 'created',
    repository: { full_name: 'acme/app' },
    sender: alice,
    pull_request: pullRequest,
    comment,
  },
})

test('a review comment is seen at once, worked on with its whole review, and answered in its thread', async () => {
  const platform = await make()
  const first = double.reviewComment(pull, 'this leaks', { pull_request_review_id: 70 })
  double.reviewComment(pull, 'and this is slow', { pull_request_review_id: 70, path: 'src/slow.ts' })
  const asked = double.reviewComment(pull, '@coppice address this review', { in_reply_to_id: first.id, user: alice })
  const now = new Date().toISOString()
  await post(platform, reviewed({ ...asked, created_at: now }))
  await reacted(`review-comment:${asked.id}`)
  const [message] = received
  if (message === undefined) throw new Error('it was not accepted')
  const { context = '', replyTo } = (await platform.prepare?.(message)) ?? {}
  expect(context).toMatch(/> this leaks[^]*> and this is slow/)
  platform.preview?.(pull, progressOf('I am looking'), replyTo)
  await until('progress is shown there', async () => inThread(first.id)[1]?.startsWith('I am looking') || undefined)
  await platform.send(reply('r-1.0', replyTo))
  expect(inThread(first.id)).toEqual(['@coppice address this review', 'Done.\n\n<!-- coppice:r-1.0 -->'])
  expect(double.bodies(pull)).toEqual([])
  await platform.stop()
})

describe('a reply to a review comment', () => {
  test('that a dead process sent, or was still writing, is not sent again', async () => {
    const first = double.reviewComment(pull, 'this leaks')
    const replyTo = `review-comment:${first.id}`
    const dead = await make()
    await dead.send(reply('r-1.0', replyTo))
    dead.preview?.(pull, progressOf('half'), replyTo)
    await until('it is shown', async () => inThread(first.id).length === 2 || undefined)
    const next = await make()
    await next.send(reply('r-1.0', replyTo))
    await next.send(reply('r-2.0', replyTo, { text: 'More.' }))
    expect(inThread(first.id).map((body) => body.split('\n')[0])).toEqual(['Done.', 'More.'])
  })

  test('whose thread was deleted goes to the conversation, once', async () => {
    await (await make()).send(reply('r-1.0', 'review-comment:5'))
    await (await make()).send(reply('r-1.0', 'review-comment:5'))
    expect(double.bodies(pull)).toEqual(['Done.\n\n<!-- coppice:r-1.0 -->'])
  })

  test('does not mix with those in the conversation, or in another thread', async () => {
    const [one, two] = [double.reviewComment(pull, 'a'), double.reviewComment(pull, 'b')]
    const platform = await make()
    platform.preview?.(pull, progressOf('first'), `review-comment:${one.id}`)
    platform.preview?.(pull, progressOf('second'), `review-comment:${two.id}`)
    await until('both are shown', async () => (inThread(one.id)[0] && inThread(two.id)[0]) || undefined)
    await platform.send(reply('n.0', undefined, { role: 'system', text: 'Notice.' }))
    await platform.send(reply('r-2.0', `review-comment:${two.id}`))
    expect(inThread(one.id)[0]).toMatch(/^first/)
    expect(inThread(two.id)).toEqual(['Done.\n\n<!-- coppice:r-2.0 -->'])
    expect(double.bodies(pull)).toEqual(['Notice.\n\n<!-- coppice:n.0 -->'])
    await platform.stop()
  })
})

test('a review and an opened issue are reacted to; a repetition and a stranger are not', async () => {
  const platform = await make()
  const { payload } = commented('') as { payload: { issue: object } }
  const opened = { ...payload, comment: undefined, action: 'opened' }
  const issue = { ...payload.issue, body: '@coppice go' }
  await post(platform, { event: 'issues', payload: { ...opened, issue } })
  await reacted('opened:42')
  expect(await post(platform, { event: 'issues', payload: { ...opened, issue } })).toMatchObject({ body: 'duplicate' })
  const review = { id: 70, body: '@coppice address this review', user: alice, submitted_at: new Date().toISOString() }
  const submitted = { action: 'submitted', sender: alice, pull_request: pullRequest, review }
  await post(platform, {
    event: 'pull_request_review',
    payload: { ...submitted, repository: { full_name: 'acme/app' } },
  })
  await reacted('review:70')
  await post(platform, commented('@coppice go', { id: 9, user: { id: 66, login: 'mallory', type: 'User' } }))
  expect([...double.reactions]).toEqual(['opened:42 eyes', 'review:70 eyes'])
  expect(double.requests.filter((line) => line.endsWith('/issues/42/reactions'))).toHaveLength(1)
  // GitHub can't whisper, so a stranger isn't told anything.
  expect(double.bodies(pull)).toEqual([])
})

test('an acknowledgement that fails costs nothing', async () => {
  const platform = await make()
  const isReaction = (line: string): boolean => line.endsWith('/reactions')
  double.trouble = (line) => (isReaction(line) ? { status: 403, headers: { 'retry-after': '60' } } : undefined)
  expect(await post(platform, commented('@coppice go', { id: 1 }))).toMatchObject({ body: 'accepted' })
  await until('it was tried', async () => double.requests.some(isReaction) || undefined)
  await until('its failure is known', async () => platform.status?.().lastError)
  // GitHub asked for a pause.
  expect(await post(platform, commented('@coppice go on', { id: 2 }))).toMatchObject({ body: 'accepted' })
  await platform.send(reply('r.0', undefined))
  expect(double.requests.filter(isReaction)).toHaveLength(1)
})

test('a review is worked on without what cannot be read', async () => {
  const platform = await make()
  const asked = double.reviewComment(pull, '@coppice why?', { user: alice })
  await post(platform, reviewed({ ...asked, created_at: new Date().toISOString() }))
  double.trouble = (line) => (/graphql|\/pulls\/42\/comments/.test(line) ? { status: 502 } : undefined)
  const [message] = received
  const { context = '' } = (message && (await platform.prepare?.(message))) ?? {}
  expect(context).toContain('about src/login.ts, line 12 of the new file:\n> @@ -10,2 +10,3 @@')
})

const contentOf = async (platform: Platform, attachment: MessageAttachment | undefined): Promise<string> => {
  if (attachment === undefined || platform.fetchAttachment === undefined) throw new Error('there is nothing to fetch')
  const chunks: Uint8Array[] = []
  for await (const chunk of await platform.fetchAttachment(attachment, new AbortController().signal)) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

describe('a file with a classic token', () => {
  const path = '/user-attachments/files/3/app.log'
  const file = (at = path) => ({ name: 'app.log', reference: `acme/app#42 comment:7 ${double.url}${at}` })

  test.each([path, '/acme/app/files/3/app.log'])('of this private repository is fetched: %s', async (at) => {
    double.files.set(at, 'GET /login 500')
    expect(await contentOf(await make(), file(at))).toBe('GET /login 500')
  })

  test.each([path, '/acme/other/files/3/app.log', '/acme/app/files/3/app.log'])(
    'of another private repository is not fetched: %s',
    async (at) => {
      double.files.set(at, 'a secret')
      double.filesOf.set(at, 99)
      await expect(contentOf(await make(), file(at))).rejects.toThrow("isn't a file of this conversation")
    },
  )

  test('of any public repository is fetched, without the token', async () => {
    double.files.set(path, 'public')
    double.filesOf.set(path, 'public')
    const platform = await make()
    double.authorizations.clear()
    expect(await contentOf(platform, file())).toBe('public')
    expect([...double.authorizations]).toEqual([''])
  })

  test('is not fetched if GitHub does not say which repository this is', async () => {
    double.files.set(path, 'GET /login 500')
    const platform = await make()
    double.trouble = (line) => (line === 'GET /repos/acme/app' ? { status: 502 } : undefined)
    await expect(contentOf(platform, file())).rejects.toThrow("GitHub didn't say which repository this is")
  })

  test('that GitHub itself answers with, instead of its storage, is not fetched', async () => {
    const platform = await make()
    double.trouble = (line) =>
      line.startsWith(`GET ${path}`) && double.authorizations.has('Bearer ghp_test')
        ? { status: 200, text: 'whose?' }
        : undefined
    double.authorizations.clear()
    await expect(contentOf(platform, file())).rejects.toThrow("isn't a file of this conversation")
  })
})

describe('an image of a private repository', () => {
  const id = '0b2c8d1e-1111-4222-8333-444455556666'
  const path = `/private-user-images/1/2-${id}.png`
  const attachment = () => ({
    name: 'image',
    reference: `acme/app#42 comment:7 ${double.url}/user-attachments/assets/${id}`,
  })
  test('is fetched from the address that the rendered comment says, without our token', async () => {
    const platform = await make()
    double.files.set(path, 'PNG')
    double.html.set('comment:7', `<p><img src="${double.url}${path}?a=1&amp;jwt=signed" alt="x"></p>`)
    expect(await contentOf(platform, attachment())).toBe('PNG')
  })
  test('is never fetched with our token, which may see more than this conversation', async () => {
    const platform = await make()
    double.files.set(`/user-attachments/assets/${id}`, 'of another repository')
    double.html.set('comment:7', '<p>nothing</p>')
    await expect(contentOf(platform, attachment())).rejects.toThrow("doesn't give it to this token")
  })
  test.each([
    ['of another image', (url: string) => `<img src="${url}/private-user-images/1/2-other.png?jwt=signed">`],
    ['without a signature', (url: string) => `<img src="${url}${path}">`],
    ['elsewhere', () => `<img src="https://evil.example/2-${id}.png?jwt=signed">`],
  ])('is not fetched from an address %s', async (_what, html) => {
    const platform = await make()
    double.files.set(path, 'PNG').set('/private-user-images/1/2-other.png', 'another one')
    double.html.set('comment:7', html(double.url))
    await expect(contentOf(platform, attachment())).rejects.toThrow("doesn't give it to this token")
  })
  test('is nothing else than what was uploaded to GitHub', async () => {
    const platform = await make()
    const reference = 'acme/app#42 comment:7 http://169.254.169.254/user-attachments/files/1/x'
    await expect(contentOf(platform, { name: 'x', reference })).rejects.toThrow("wasn't uploaded to GitHub")
  })
})
