import { chooseAgent } from '../agents/registry.ts'
import { type CommandMatch, isShort, matchCommand } from '../commands/match-command.ts'
import { type RepoCommand, repoCommandsOf } from '../commands/repo-commands.ts'
import type { Codebase } from '../domain/environment.ts'
import { currentConfig } from '../isolation/codebases/base-and-config.ts'
import type { Conversation, InboxMessage } from '../store/store.ts'
import { isOwnWord } from './answer-command.ts'
import { codebaseFor } from './bind-codebase.ts'
import type { ConversationsContext } from './context.ts'
import { lastOffer } from './last-offer.ts'
import * as notices from './notices.ts'
import { type NewReply, recordReplies, replyTarget } from './outbox/replies.ts'

export type Routed =
  /**
   * To be handled with this text: as it was, or as the command that it asks for. `of`: the earlier message whose text
   * it is, if this one only answers an offer.
   */
  | { readonly kind: 'text'; readonly text: string; readonly of?: InboxMessage }
  | { readonly kind: 'offer'; readonly reply: NewReply }

const KEY = 'route:'

/**
 * Plain words that ask for one of the repository's commands (`commands.route`): run it, or offer it. What comes out is
 * the command as somebody would have typed it, so everything that holds for a typed one holds here.
 */
export const routeMessage = async (
  context: ConversationsContext,
  message: InboxMessage,
  conversation: Conversation,
): Promise<Routed> => {
  const asIs = { kind: 'text', text: message.text } as const
  if (message.kind !== 'message') return asIs
  const answer = await answerToOffer(context, message)
  if (answer !== undefined) return answer
  try {
    if (!isShort(message.text)) return asIs
    const bound = await codebaseFor(context, conversation, message)
    if ('refusal' in bound) return asIs
    const { codebase } = bound
    const found = await routeIn(context, codebase, message.text)
    if (found === undefined) return asIs
    const { command, clear } = found.match
    if (found.route === 'suggest' || !clear || !(await runsUnasked(context, command, codebase, conversation))) {
      return { kind: 'offer', reply: offerOf(command) }
    }
    await announce(context, message, command)
    return { kind: 'text', text: asTyped(command.name, message.text) }
  } catch (error) {
    // Optional: handling the message itself reports what is wrong with the repository.
    context.isolation.log.warn('a message could not be matched with commands', { error: String(error) })
    return asIs
  }
}

const routeIn = async (
  context: ConversationsContext,
  codebase: Codebase,
  text: string,
): Promise<{ readonly route: 'suggest' | 'run'; readonly match: CommandMatch } | undefined> => {
  const { route } = (await currentConfig(context.isolation, codebase)) ?? {}
  if (route === undefined) return undefined
  const { commands } = await repoCommandsOf(context, codebase)
  const match = matchCommand(
    text,
    [...commands.values()].filter(({ name }) => !isOwnWord(name)),
  )
  return match && { route, match }
}

/**
 * Only what can't change anything: a `read` command with reading tools alone, by an agent that can't write then. A
 * shell command that the file allows (`Bash(…)`) may write, whatever its `type` says.
 */
const runsUnasked = async (
  { agents, isolation }: ConversationsContext,
  { type, allowedTools }: RepoCommand,
  { defaultAgent }: Codebase,
  conversation: Conversation,
): Promise<boolean> => {
  if (type !== 'read' || !allowedTools.every((tool) => readingTools.has(tool))) return false
  const choice = { agents, wanted: conversation.agent, codebaseDefault: defaultAgent, settings: isolation.settings }
  return (await chooseAgent(choice)).agent.enforcesReadOnly === true
}

const readingTools: ReadonlySet<string> = new Set(['Glob', 'Grep', 'LS', 'NotebookRead', 'Read'])

const offerOf = ({ name, description, type }: RepoCommand): NewReply => ({
  key: `${KEY}${name}`,
  role: 'system',
  text: notices.commandOfferNotice({ name, description, type }),
})

const announce = async (context: ConversationsContext, message: InboxMessage, { name }: RepoCommand): Promise<void> => {
  const reply = { key: 'routed', role: 'system', text: notices.routedNotice(name) } as const
  await recordReplies(context, context.isolation.store, replyTarget(message), [reply])
  context.queue.outboxChanged()
}

/** A message, not a shell's command line: its words need no quotes. */
const asTyped = (name: string, words: string): string => [`/${name}`, words].join(' ')

/** The message as if it had been said like this. An answer that names no work is about that of the earlier message. */
export const asRouted = (message: InboxMessage, { text, of }: Extract<Routed, { kind: 'text' }>): InboxMessage => {
  const { hints } = message.details
  if (of?.details.hints === undefined || hints?.workflowType !== undefined) return { ...message, text }
  return { ...message, text, details: { ...message.details, hints: { ...of.details.hints, ...hints } } }
}

/** `yes` runs the offered command with what was said before; `no` sends that to the agent. */
const answerToOffer = async (
  { isolation: { store } }: ConversationsContext,
  message: InboxMessage,
): Promise<Routed | undefined> => {
  const [, word] = /^`?(yes|no)`?[.!]?$/i.exec(message.text.trim()) ?? []
  if (word === undefined) return undefined
  const offer = await lastOffer(store, message, KEY)
  const asked = offer?.inboxId === undefined ? undefined : await store.inbox.get(offer.inboxId)
  if (offer === undefined || asked === undefined) return undefined
  const text = word.toLowerCase() === 'yes' ? asTyped(offer.value, asked.text) : asked.text
  return { kind: 'text', text, of: asked }
}
