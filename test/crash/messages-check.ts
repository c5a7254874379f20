import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { OutgoingMessage } from '../../src/conversations/outbox/delivery.ts'
import { splitReply } from '../../src/conversations/outbox/split.ts'
import type { IncomingMessage } from '../../src/domain/message.ts'
import type { InboxMessage, Reply } from '../../src/store/store.ts'
import type { MessageWorld } from './messages-world.ts'
import { agentLog } from './messages-workplace.ts'

export type Found = {
  readonly problems: readonly string[]
  readonly messages: number
  readonly replies: number
  readonly deliveries: number
  readonly reruns: number
}

/**
 * Everything about messages that must hold once all is at rest. `failures`: an error was injected, so a sentence about
 * it is an answer too.
 */
export const checkMessages = async (
  world: MessageWorld,
  messages: readonly IncomingMessage[],
  { failures = false }: { failures?: boolean } = {},
): Promise<Found> => {
  const problems: string[] = []
  let [agentReplies, reruns] = [0, 0]
  for (const message of messages) {
    const row = await world.context.store.inbox.byDelivery(message.platform, message.deliveryId)
    const name = message.deliveryId
    if (row?.state !== 'done') {
      problems.push(`G7: ${name} is ${row?.state ?? 'gone'}`)
      continue
    }
    const replies = (await repliesIn(world, message.conversationId)).filter((reply) => isAbout(reply, row))
    agentReplies += replies.filter(({ role }) => role === 'agent').length
    if (row.attempts > 1) reruns += 1
    problems.push(...answeredOnce(row, replies, failures).map((problem) => `G7: ${name} ${problem}`))
    problems.push(...runsOf(world, row, failures).map((problem) => `G7: ${name} ${problem}`))
  }
  for (const conversationId of new Set(messages.map((one) => one.conversationId))) {
    problems.push(...(await conversationHolds(world, conversationId)).map((problem) => `${conversationId}: ${problem}`))
  }
  return {
    problems: [...problems, ...(await nothingLeft(world))],
    messages: messages.length,
    replies: agentReplies,
    deliveries: world.double.shown.length,
    reruns,
  }
}

/** A message that was never acknowledged: nothing of it is there, or all of it. */
export const absentOrHandled = async (world: MessageWorld, message: IncomingMessage): Promise<string[]> => {
  const row = await world.context.store.inbox.byDelivery(message.platform, message.deliveryId)
  if (row !== undefined) return row.state === 'done' ? [] : [`G7: ${message.deliveryId} was left ${row.state}`]
  const said = await repliesIn(world, message.conversationId)
  const about = said.filter(({ text }) => text.includes(`Did: ${message.text}\n`))
  return about.map(({ key }) => `G7: ${message.deliveryId} is not there, and its ${key} is`)
}

const repliesIn = (world: MessageWorld, conversationId: string): Promise<Reply[]> =>
  world.context.store.outbox.ofConversation({ platform: 'double', conversationId }, 1_000)

/** What closing a conversation removed is reported by the removal itself, in its own transaction: not tied to a message. */
const isAbout = ({ inboxId, key }: Reply, row: InboxMessage): boolean =>
  inboxId === row.id || (row.kind === 'closed' && isRemovalNotice(key))

const isRemovalNotice = (key: string): boolean => key.startsWith('lost:')

const isForAgent = ({ kind, text }: IncomingMessage): boolean => kind === 'message' && !text.startsWith('/')

const answeredOnce = (row: InboxMessage, replies: readonly Reply[], failures: boolean): string[] => {
  const removals = replies.filter(({ key }) => isRemovalNotice(key))
  const answers = replies.filter(({ key }) => key === 'reply')
  const answer = answers[0] ?? removals[0]
  // An error after a removal that has been reported is reported as well.
  const most = failures || removals.length === 0 ? 1 : 0
  if (answer === undefined || answers.length > most || removals.length > 1) {
    return [`has ${answers.length} answers and ${removals.length} removal notices`]
  }
  if (isForAgent(row) && answer.role === 'agent' && !answer.text.startsWith(`Did: ${row.text}\n`))
    return [`was answered with ${answer.text}`]
  if (isForAgent(row) && answer.role !== 'agent' && !failures) return [`was answered by nobody: ${answer.text}`]
  return replies.filter(({ state }) => state !== 'sent').map(({ key, state }) => `has a ${key} that is ${state}`)
}

/** At least once, each run later than the one before, and each but the first knowing what it is. */
const runsOf = (world: MessageWorld, row: InboxMessage, failures: boolean): string[] => {
  if (!isForAgent(row)) return []
  const runs = agentLog(world.box).filter(({ id, what }) => id === row.id && what === 'start')
  if (runs.length === 0) return failures ? [] : ['was never run']
  const attempts = runs.map(({ attempt }) => attempt)
  const problems: string[] = []
  if (attempts.some((attempt, n) => attempt <= (attempts[n - 1] ?? 0))) problems.push(`ran as ${attempts.join(', ')}`)
  if (Math.max(...attempts) > row.attempts) problems.push('counted fewer attempts than there were runs')
  for (const { attempt, knows } of runs) {
    if (attempt > 1 !== (knows === 'yes')) problems.push(`attempt ${attempt} was told of a rerun: ${knows}`)
  }
  return problems
}

/** Order, wholeness and the notices of one conversation, as its users see it. */
const conversationHolds = async (world: MessageWorld, conversationId: string): Promise<string[]> => {
  const { double, context } = world
  const replies = await repliesIn(world, conversationId)
  const shown = double.shown.filter((one) => one.conversationId === conversationId)
  const expected = replies.flatMap(({ id, text }) =>
    splitReply(text, double.limit).map((part, n) => [`${id}.${n}`, part]),
  )
  // Doubled is a message that comes again before anything else does: nothing may overtake it.
  const seen = shown.filter(({ id }, n) => shown[n - 1]?.id !== id).map(({ id, text }) => [id, text])
  const problems: string[] = []
  if (JSON.stringify(seen) !== JSON.stringify(expected))
    problems.push(`G7: shown was ${show(shown)}, not ${show(replies)}`)
  const rows = await context.store.inbox.ofConversation({ platform: 'double', conversationId }, 1_000)
  const asked = rows.filter(({ id }) => replies.some(({ inboxId, key }) => inboxId === id && key === 'reply'))
  const answers = replies.filter(({ key }) => key === 'reply').map(({ inboxId }) => inboxId)
  const order = asked.filter(({ lane }) => lane === 'turn').map(({ id }) => id)
  if (answers.filter((id) => order.includes(id ?? '')).join() !== order.join())
    problems.push('G7: answered out of order')
  const places = replies.filter(({ text }) => text.startsWith('Working in isolated branch')).length
  const worked = agentLog(world.box).some(({ id }) => rows.some((row) => row.id === id))
  if (places > 1 || (worked && places === 0)) problems.push(`it was said ${places} times where the work happens`)
  if (replies.some(({ text }) => text.startsWith('The shared checkout'))) problems.push('G10: the tripwire was touched')
  return problems
}

const show = (all: readonly Pick<OutgoingMessage, 'id' | 'text'>[]): string =>
  JSON.stringify(all.map(({ id, text }) => `${id.slice(0, 4)} ${text.slice(0, 30)}`))

const nothingLeft = async ({ box, context }: MessageWorld): Promise<string[]> => {
  const overlaps = agentLog(box).filter(({ what }) => what === 'overlap')
  const contexts = join(context.home, 'context')
  return [
    ...overlaps.map(({ id }) => `G7: two agents worked in one tree, one of them for ${id}`),
    ...(await context.store.leases.all(context.host)).map(({ purpose }) => `G4: a lease is left: ${purpose}`),
    ...(existsSync(contexts) ? readdirSync(contexts) : []).map((name) => `G4: context file ${name} is left`),
  ]
}
