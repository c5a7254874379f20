import type { IncomingMessage } from '../../src/domain/message.ts'
import type { Passing } from './messages-child.ts'
import type { MessageWorld } from './messages-world.ts'
import { message } from './messages-workplace.ts'

export type MessageScenario = {
  readonly name: string
  readonly platform: 'tells' | 'cannot-tell'
  /** How long a message may be; replies are longer than the usual one. */
  readonly limit?: number
  /** Handled unharmed before. */
  readonly earlier?: readonly IncomingMessage[]
  readonly messages: readonly IncomingMessage[]
  /** Only these failpoints; the others of its way are passed in another scenario. */
  readonly only?: RegExp
  /** Fewer of them in `npm test`; `npm run test:every-case` takes them all. */
  readonly usually?: (passings: readonly Passing[]) => readonly Passing[]
  /** What must be true at the end besides. */
  readonly after?: (world: MessageWorld) => Promise<string[]>
}

/** Names that only a message passes; isolation's own are swept by the first message of a thread and by the close. */
export const ofMessages = /^(inbox|message|reply|run|lease)\./

/** What isolation passes is swept without messages in failpoints.test.ts: here its middle and its end. */
const fewOfIsolation = (passings: readonly Passing[]): readonly Passing[] =>
  passings.filter(({ name }) => ofMessages.test(name) || /^(create|remove)\.(tree|moved|active|recorded)$/.test(name))

/** Each name once: one at its first passing, the next at its second, and so on. */
export const eachNameOnce = (passings: readonly Passing[]): readonly Passing[] =>
  [...Map.groupBy(passings, ({ name }) => name).values()].flatMap((same, index) => same[index % same.length] ?? [])

/** One of each part of a message's way. Sorted: two servers may pass them in another order, and take the same. */
export const eachPartOnce = (passings: readonly Passing[]): readonly Passing[] => {
  const sorted = eachNameOnce(passings).toSorted((a, b) => a.name.localeCompare(b.name))
  return [...Map.groupBy(sorted, ({ name }) => name.split('.')[0]).values()].flatMap(
    (same, index) => same[index % same.length] ?? [],
  )
}

export const first: MessageScenario = {
  name: 'the first message of a thread',
  platform: 'tells',
  messages: [message('a', 'one')],
  usually: fewOfIsolation,
  after: async (world) => environments(world, 1),
}

export const scenarios: readonly MessageScenario[] = [
  first,
  {
    name: 'two messages in one thread and one in another',
    platform: 'cannot-tell',
    limit: 10_000,
    messages: [message('a', 'one'), message('b', 'other'), message('a', 'two')],
    only: /^(inbox|message|reply|run)\./,
    usually: eachNameOnce,
    after: async (world) => environments(world, 2),
  },
  {
    name: 'commands, in their turn and at once',
    platform: 'cannot-tell',
    earlier: [message('a', 'zero')],
    messages: [message('a', '/reset'), message('a', '/status')],
    only: ofMessages,
    usually: eachNameOnce,
    after: async (world) => environments(world, 1),
  },
  {
    name: 'a conversation that is closed',
    platform: 'tells',
    earlier: [message('a', 'zero')],
    messages: [message('a', '', 'closed')],
    usually: fewOfIsolation,
    after: (world) => closed(world),
  },
]

const environments = async ({ context, codebase }: MessageWorld, wanted: number): Promise<string[]> => {
  const { length } = await context.store.environments.live(codebase.id)
  return length === wanted ? [] : [`G2: there are ${length} environments, not ${wanted}`]
}

/** Removed, or kept with a reason; in any case the session is over and the thread was told. */
const closed = async (world: MessageWorld): Promise<string[]> => {
  const { store } = world.context
  const conversation = await store.conversations.find('double', 'a')
  if (conversation === undefined) return ['the conversation is gone']
  const replies = await store.outbox.ofConversation({ platform: 'double', conversationId: 'a' }, 100)
  const told = replies.at(-1)?.text ?? ''
  const live = await store.environments.live(world.codebase.id)
  return [
    ...(conversation.closedAt === undefined ? ['it is not closed'] : []),
    ...(conversation.environmentId === undefined ? [] : ['it still has its environment']),
    ...((await store.sessions.live(conversation.id)) === undefined ? [] : ['its session lives']),
    ...(live.length === 0 || / was not removed: .+/.test(told) ? [] : ['the environment stays without a reason']),
    ...(live.length > 0 || / was removed \(closed\)/.test(told) ? [] : [`it was removed, and told: ${told}`]),
  ]
}
