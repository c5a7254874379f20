import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { DeliveryError, type OutgoingMessage } from '../../conversations/outbox/delivery.ts'
import type { ReplyAction } from '../../domain/message.ts'
import { progressOf, status } from '../../../test/helpers/progress.ts'
import { createLogger } from '../../process/log.ts'
import { createReplies, type Replies } from './engine.ts'
import type { Call, ReplyPort } from './port.ts'

/* A service of a few lines: threads are `unit/thread`, and each call can be made to fail. */

type Said = { readonly place: string; readonly id: number; body: string; mark: string; buttons: readonly string[] }
type Fault = 'refused' | 'lost' | { readonly waitMs: number }

type Service = {
  readonly said: Said[]
  readonly calls: string[]
  readonly faults: Partial<Record<Call, Fault[]>>
  replies: Replies<string>
  restart(): void
}

class Lost extends Error {}

const labels = (actions: readonly ReplyAction[]): readonly string[] => actions.map(({ label }) => label)

const service = (
  more: Partial<ReplyPort<string, number>> = {},
  previews: Partial<ReplyPort<string, number>['previews']> = {},
): Service => {
  let last = 0
  const made: Omit<Service, 'replies' | 'restart'> = { said: [], calls: [], faults: {} }
  const call = <T>(what: Call, place: string, work: () => T): T => {
    made.calls.push(`${what} ${place}`)
    const fault = made.faults[what]?.shift()
    if (fault === 'refused') throw new DeliveryError('refused', 'no')
    if (fault === 'lost') {
      work()
      throw new Lost('the answer was lost')
    }
    if (fault !== undefined) throw new DeliveryError('unreachable', 'slower', { retryAfterMs: fault.waitMs })
    return work()
  }
  const port: ReplyPort<string, number> = {
    placeOf: (id) => (/^\w+\/\w+$/.test(id) ? id : undefined),
    rateLimitOf: (place) => ({ name: place.split('/')[0] ?? '', everyMs: 5 }),
    render: (text) => text,
    post: async (place, body, { kind, id }, actions) =>
      call('post', place, () => {
        made.said.push({
          place,
          id: (last += 1),
          body,
          mark: kind === 'preview' ? 'preview' : id,
          buttons: labels(actions),
        })
        return last
      }),
    edit: async (place, id, body, mark, actions) =>
      call('edit', place, () => {
        const one = made.said.find((said) => said.id === id)
        if (one === undefined) throw new DeliveryError('refused', 'it was deleted')
        Object.assign(one, { body, mark: mark.kind === 'preview' ? 'preview' : mark.id, buttons: labels(actions) })
      }),
    delete: async (place, id) =>
      call('delete', place, () => {
        const at = made.said.findIndex((one) => one.id === id)
        if (at !== -1) made.said.splice(at, 1)
      }),
    find: async (place) =>
      call('find', place, () => {
        const own = made.said.filter((one) => one.place === place)
        const left = own.at(-1)
        return {
          has: (id: string) => own.some(({ mark }) => mark === id),
          preview: left?.mark === 'preview' ? left.id : undefined,
        }
      }),
    failureOf: (error) =>
      error instanceof DeliveryError
        ? { error, mayHaveSucceeded: false }
        : { error: new DeliveryError('unreachable', String(error)), mayHaveSucceeded: error instanceof Lost },
    ...more,
    previews: { limit: 500, render: (text) => `${text} …`, firstMs: 1, whenOvertaken: 'stay', ...previews },
  }
  const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })
  const start = (): Replies<string> => createReplies(port, { clock: Date.now, log })
  const whole: Service = Object.assign(made, {
    replies: start(),
    restart: () => {
      whole.replies = start()
    },
  })
  return whole
}

const reply = (conversationId: string, id: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage => ({
  id,
  conversationId,
  role: 'agent',
  text: `${id}!`,
  part: 1,
  parts: 1,
  ...more,
})
const notice = (conversationId: string, id: string): OutgoingMessage => reply(conversationId, id, { role: 'system' })
const bodies = ({ said }: Service): string[] => said.map(({ body }) => body)
const preview = (text: string): string => `${text}\n\n${status} …`
const shown = async (one: Service, text: string): Promise<void> => {
  await vi.advanceTimersByTimeAsync(20)
  expect(bodies(one)).toContain(preview(text))
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('a pause that the service asks for holds its whole unit, without asking, and no other', async () => {
  const one = service()
  one.faults.post = [{ waitMs: 30_000 }]
  await expect(one.replies.send(reply('a/1', 'r1'))).rejects.toMatchObject({ retryAfterMs: 30_000 })
  one.calls.length = 0
  await vi.advanceTimersByTimeAsync(10_000)
  for (const id of ['a/1', 'a/2']) {
    await expect(one.replies.send(reply(id, 'r1'))).rejects.toMatchObject({
      kind: 'unreachable',
      retryAfterMs: 20_000,
    })
  }
  expect(one.calls).toEqual([])
  await one.replies.send(reply('b/1', 'r2'))
  await vi.advanceTimersByTimeAsync(20_000)
  await one.replies.send(reply('a/2', 'r3'))
  expect(bodies(one)).toEqual(['r2!', 'r3!'])
})

test('a later and shorter pause does not end a longer one', async () => {
  const one = service()
  one.replies.onUserMessage('a/1', { isNew: true })
  one.replies.onUserMessage('a/2', { isNew: true })
  one.faults.post = [{ waitMs: 30_000 }, { waitMs: 1_000 }]
  // Both were on their way before either was answered.
  const both = ['a/1', 'a/2'].map((id) => one.replies.send(reply(id, id)))
  await Promise.allSettled(both)
  await vi.advanceTimersByTimeAsync(2_000)
  await expect(one.replies.send(reply('a/1', 'a/1'))).rejects.toMatchObject({ retryAfterMs: 28_000 })
})

test('no more replies of a unit are on their way at once than it takes; the next wait in the outbox', async () => {
  const held = Promise.withResolvers<number>()
  const unitOf = (place: string) => ({ name: place.slice(0, 1), everyMs: 5, queue: { most: 2, eachMs: 3_000 } })
  const one = service({ rateLimitOf: unitOf, post: () => held.promise })
  const sending = ['a/1', 'a/2', 'b/1'].map((id) => one.replies.send(reply(id, 'r')))
  await expect(one.replies.send(reply('a/3', 'r'))).rejects.toMatchObject({ kind: 'unreachable', retryAfterMs: 6_000 })
  held.resolve(1)
  await Promise.all(sending)
  await one.replies.send(reply('a/3', 'r'))
})

/** As a service that has nothing by which a message could be known again. */
const withoutFind = { find: undefined } as unknown as Partial<ReplyPort<string, number>>

test.each<[string, Partial<ReplyPort<string, number>>, number, number]>([
  ['is looked for where the service can be asked', {}, 1, 2],
  ['is sent again where nothing can be known again', withoutFind, 2, 0],
  ['is sent again without a look where the service knows it by its mark', { postsOnce: true }, 2, 1],
])('a reply whose confirmation was lost %s', async (_what, more, times, looks) => {
  const one = service(more)
  one.faults.post = ['lost']
  await expect(one.replies.send(reply('a/1', 'r1'))).rejects.toMatchObject({ kind: 'unreachable' })
  await one.replies.send(reply('a/1', 'r1'))
  await one.replies.send(reply('a/1', 'r1'))
  expect(bodies(one)).toEqual(Array.from({ length: times }, () => 'r1!'))
  expect(one.calls.filter((call) => call.startsWith('find'))).toHaveLength(looks)
})

test('after a restart the first reply is looked for, and what was half written becomes the answer', async () => {
  const one = service()
  await one.replies.send(reply('a/1', 'r1'))
  one.replies.preview('a/1', progressOf('half'))
  await shown(one, 'half')
  one.restart()
  await one.replies.send(reply('a/1', 'r1'))
  await one.replies.send(reply('a/1', 'r2'))
  expect(bodies(one)).toEqual(['r1!', 'r2!'])
})

test('a reply is not lost because its conversation cannot be read', async () => {
  const one = service()
  one.faults.find = ['refused']
  await one.replies.send(reply('a/1', 'r1'))
  expect(bodies(one)).toEqual(['r1!'])
})

test.each([
  ['stay', ['r1!', 'n1!']],
  ['repost', ['n1!', 'r1!']],
  ['remove', ['n1!', 'r1!']],
] as const)('a preview that is overtaken by a notice: %s', async (whenOvertaken, wanted) => {
  const one = service({}, { whenOvertaken })
  one.replies.preview('a/1', progressOf('so far'))
  await shown(one, 'so far')
  await one.replies.send(notice('a/1', 'n1'))
  expect(bodies(one)).toEqual(whenOvertaken === 'remove' ? ['n1!'] : [preview('so far'), 'n1!'])
  one.replies.preview('a/1', progressOf('so far so good'))
  await shown(one, 'so far so good')
  expect(bodies(one)).toHaveLength(2)
  await one.replies.send(reply('a/1', 'r1'))
  expect(bodies(one)).toEqual(wanted)
})

test('what a person writes below a preview puts the answer below that', async () => {
  const one = service()
  one.replies.preview('a/1', progressOf('so far'))
  await shown(one, 'so far')
  const [{ id } = { id: 0 }] = one.said
  one.replies.onUserMessage('a/1')
  await one.replies.send(reply('a/1', 'r1'))
  expect(one.said).toMatchObject([{ body: 'r1!' }])
  expect(one.said[0]?.id).not.toBe(id)
})

test('a preview that was deleted, or cannot be edited into the answer, costs nothing', async () => {
  const one = service({}, { fits: (body) => body !== 'long!' })
  one.replies.preview('a/1', progressOf('so far'))
  await shown(one, 'so far')
  one.said.length = 0
  await one.replies.send(reply('a/1', 'r1'))
  one.replies.preview('a/1', progressOf('more', { startedAt: 10 ** 14 + 1 }))
  await shown(one, 'more')
  await one.replies.send(reply('a/1', 'long'))
  expect(bodies(one)).toEqual(['r1!', 'long!'])
})

test('previews that the service refuses are not tried again in that run, and the next run has its own', async () => {
  const one = service()
  one.faults.post = ['refused']
  one.replies.preview('a/1', progressOf('one'))
  await vi.advanceTimersByTimeAsync(20)
  expect(one.calls).toContain('post a/1')
  one.calls.length = 0
  one.replies.preview('a/1', progressOf('one two'))
  one.replies.preview('a/2', progressOf('elsewhere'))
  await shown(one, 'elsewhere')
  expect(one.calls).not.toContain('post a/1')
  await one.replies.send(reply('a/1', 'r1'))
  one.replies.preview('a/1', progressOf('again', { startedAt: 10 ** 14 + 1 }))
  await shown(one, 'again')
})

test('words that come while a preview is being written are shown after it', async () => {
  const writing = Promise.withResolvers<void>()
  const bodiesEdited: string[] = []
  const edit = async (_place: string, _id: number, body: string): Promise<void> => {
    bodiesEdited.push(body)
    await writing.promise
  }
  const one = service({ edit })
  one.replies.preview('a/1', progressOf('one'))
  await shown(one, 'one')
  one.replies.preview('a/1', progressOf('one two'))
  await vi.advanceTimersByTimeAsync(20)
  expect(bodiesEdited).toEqual([preview('one two')])
  one.replies.preview('a/1', progressOf('one two three'))
  one.replies.preview('a/1', progressOf('one two three four'))
  writing.resolve()
  await vi.advanceTimersByTimeAsync(20)
  expect(bodiesEdited).toEqual([preview('one two'), preview('one two three four')])
})

test('what is no conversation of the service is refused, and an empty reply is not sent', async () => {
  const one = service()
  await expect(one.replies.send(reply('nowhere', 'r1'))).rejects.toMatchObject({ kind: 'refused' })
  await one.replies.send(reply('a/1', 'r1', { text: ' \n' }))
  expect(one.calls).toEqual([])
})

test('nothing is shown after the platform has become quiet', async () => {
  const one = service({}, { firstMs: 10 })
  one.replies.preview('a/1', progressOf('late'))
  one.replies.stopPreviews()
  one.replies.preview('a/2', progressOf('shown'))
  await shown(one, 'shown')
  expect(bodies(one)).toEqual([preview('shown')])
})

test('a preview shows the last action and the time, before the agent has written anything', async () => {
  const one = service({}, { render: (text) => text })
  const startedAt = Date.now()
  one.replies.preview('a/1', progressOf('', { startedAt }))
  await vi.advanceTimersByTimeAsync(2_000)
  expect(bodies(one)).toEqual(['Working · 0 s'])
  const tool = `ran \`npm test\` for @ada,\n${'x'.repeat(200)}`
  one.replies.preview('a/1', progressOf('', { startedAt, tool }))
  await vi.advanceTimersByTimeAsync(1)
  expect(bodies(one)).toEqual([`\`\` ran \`npm test\` for @ada, ${'x'.repeat(95)} … \`\` · 2 s`])
  one.replies.preview('a/1', progressOf('Open:\n```sh\nls', { startedAt, tool: 'read a.ts' }))
  await vi.advanceTimersByTimeAsync(1_000)
  expect(bodies(one)).toEqual(['Open:\n```sh\nls\n```\n\n`read a.ts` · 2 s'])
  expect(one.said.map(({ buttons }) => buttons)).toEqual([['Stop']])
  await one.replies.send(reply('a/1', 'r1'))
  expect(one.said).toMatchObject([{ body: 'r1!', buttons: [] }])
})

test('the time grows while the agent is silent: each 15 s at first, then each minute', async () => {
  const one = service({}, { render: (text) => text })
  one.replies.preview('a/1', progressOf('', { startedAt: Date.now() }))
  await vi.advanceTimersByTimeAsync(40_000)
  expect(bodies(one)).toEqual(['Working · 30 s'])
  await vi.advanceTimersByTimeAsync(20_100)
  one.calls.length = 0
  await vi.advanceTimersByTimeAsync(61 * 60_000)
  expect(bodies(one)).toEqual(['Working · 1 h 2 min'])
  expect(one.calls).toHaveLength(61)
})

test.each(['repost', 'remove'] as const)('the time alone posts nothing below a question: %s', async (whenOvertaken) => {
  const one = service({}, { whenOvertaken })
  const startedAt = Date.now()
  const marks = (): string[] => one.said.map(({ mark }) => mark)
  one.replies.preview('a/1', progressOf('so far', { startedAt }))
  await vi.advanceTimersByTimeAsync(20)
  await one.replies.send(notice('a/1', 'question'))
  await vi.advanceTimersByTimeAsync(60_000)
  expect(marks()).toEqual(whenOvertaken === 'remove' ? ['question'] : ['preview', 'question'])
  one.replies.preview('a/1', progressOf('so far so good', { startedAt }))
  await vi.advanceTimersByTimeAsync(20)
  expect(marks()).toEqual(['question', 'preview'])
})

test.each([
  ['what it wrote stays, without the button', 'Half', ['Half\n\n…', 'stopped!']],
  ['the notice takes the place of an empty preview', '', ['stopped!']],
])('a run that ends without an answer: %s', async (_what, text, wanted) => {
  const one = service()
  one.replies.preview('a/1', progressOf(text))
  await vi.advanceTimersByTimeAsync(20)
  expect(one.said).toHaveLength(1)
  one.replies.preview('a/1', undefined)
  await vi.advanceTimersByTimeAsync(120_000)
  await one.replies.send(notice('a/1', 'stopped'))
  expect(bodies(one)).toEqual(wanted)
  expect(one.said.flatMap(({ buttons }) => buttons)).toEqual([])
})

test.each([
  ['what it wrote', 'Half', ['Half\n\n…', 'stopped!']],
  ['nothing', '', ['stopped!']],
])(
  'a run ends without an answer and wrote %s: no preview stays if the service asks to wait',
  async (_what, text, wanted) => {
    const one = service()
    one.replies.preview('a/1', progressOf(text))
    await vi.advanceTimersByTimeAsync(20)
    one.replies.preview('a/1', undefined)
    one.faults.edit = [{ waitMs: 5_000 }]
    await expect(one.replies.send(notice('a/1', 'stopped'))).rejects.toMatchObject({ retryAfterMs: 5_000 })
    await vi.advanceTimersByTimeAsync(5_000)
    await one.replies.send(notice('a/1', 'stopped'))
    expect(bodies(one)).toEqual(wanted)
    expect(one.said.flatMap(({ buttons }) => buttons)).toEqual([])
  },
)

test('where nothing can be deleted, an obsolete preview loses its time and its button', async () => {
  const one = service({ delete: undefined } as unknown as Partial<ReplyPort<string, number>>)
  one.replies.preview('a/1', progressOf('Half'))
  await shown(one, 'Half')
  one.replies.onUserMessage('a/1')
  await one.replies.send(reply('a/1', 'r1'))
  expect(bodies(one)).toEqual(['Half\n\n…', 'r1!'])
  expect(one.said.flatMap(({ buttons }) => buttons)).toEqual([])
})

test('a reply has the buttons that it was given', async () => {
  const one = service()
  await one.replies.send(reply('a/1', 'r1', { actions: [{ label: 'Restore', command: '/worktree restore x' }] }))
  expect(one.said).toMatchObject([{ buttons: ['Restore'] }])
})
