import { toAppError } from '../domain/errors.ts'
import type { IsolationHints } from '../domain/hints.ts'
import type { Lane } from '../domain/message.ts'
import type { Notice } from '../domain/notice.ts'
import { capabilitiesOf } from '../domain/platform-capabilities.ts'
import type { Conversation } from '../store/store.ts'
import type { ConversationsContext } from './context.ts'
import { promptOf, type RepoCommand, repoCommandsOf } from '../commands/repo-commands.ts'
import { atOnce, chatCommands, chatGrammar, chatCommandText, verbatim } from '../commands/chat-table.ts'
import type { Call, ChatControls, CommandRow, Values } from '../commands/command.ts'
import { forChat } from './notices.ts'
import { failureText, faultOf } from '../commands/views/failure.ts'
import { inWords } from '../commands/views/notices.ts'
import { isForServer } from '../commands/views/remedy.ts'
import { helpText } from '../commands/help.ts'
import { boundCodebase } from '../commands/target.ts'
import { parseWith } from '../commands/grammar/parse.ts'
import { nearest } from '../commands/grammar/suggest.ts'
import { usage } from '../commands/grammar/usage.ts'
import { markdown, placeholdersAsCode, printable, type View } from '../commands/views/view.ts'
import { splitWords } from '../commands/grammar/split-words.ts'
import { coppice, remedy, shell } from '../domain/remedy.ts'

export type ChatAnswer =
  | { readonly kind: 'answer'; readonly text: string }
  /** A command of the repository: its prompt goes to the agent. */
  | { readonly kind: 'run'; readonly command: RepoCommand; readonly prompt: string }

export type ChatRequest = {
  readonly conversation: Conversation
  readonly text: string
  readonly hints?: IsolationHints
  readonly controls: ChatControls
  readonly signal: AbortSignal
}

/** `/usr/bin/env says …` isn't a command, `/status@coppice_bot` is. */
const called = /^\/([A-Za-z][\w-]*)(?:@[\w.-]+)?(?:\s+(\S[\s\S]*)?)?$/

export const isChatCommand = (text: string): boolean => called.test(text)

export const laneOf = (text: string): Lane => (atOnce.has(nameIn(text)) ? 'at-once' : 'turn')

/** Phones capitalise the first letter. */
const nameIn = (text: string): string => (called.exec(text)?.[1] ?? '').toLowerCase()

/**
 * Answers a slash command, without isolation or an agent. Errors are answers too: what happened and what to do, a
 * sentence each. Throws only if cancelled.
 */
export const answerCommand = async (context: ConversationsContext, request: ChatRequest): Promise<ChatAnswer> => {
  const view = viewOf(context)
  const notices: (Notice | string)[] = []
  try {
    const name = nameIn(request.text)
    const own = isOwnWord(name) ? undefined : await ownCommand(context, request, name)
    if (own !== undefined) return own
    return { kind: 'answer', text: printable(await answerTo(context, request, view, notices)) }
  } catch (thrown) {
    const { fault, cancelled } = faultOf(thrown, request.signal)
    if (cancelled || request.signal.aborted) throw thrown
    // The log also has the commands that a chat doesn't show.
    if (unforeseen.has(fault.code) || (fault.remedy !== undefined && isForServer(fault.remedy, view)))
      context.isolation.log.error('a command failed', { text: nameIn(request.text), error: thrown })
    const told = toAppError(forChat(fault))
    const failure = placeholdersAsCode(begun(failureText(told, view, 'See the log for details.')))
    return { kind: 'answer', text: printable([failure, ...notesOf(notices, view)].join('\n')) }
  }
}

const notesOf = (notices: readonly (Notice | string)[], view: View): string[] =>
  notices.map((notice) => `Note: ${inWords(notice, view)}`)

/** Capitalises only these words: a message may begin with a name. */
const begun = (text: string): string =>
  text.replace(
    /^(?:an?|another|can't|cannot|clone|couldn't|invalid|its?|missing|no|not|specify|that|the|there|these|this|unexpected|unknown)(?= )/,
    (word) => word.charAt(0).toUpperCase() + word.slice(1),
  )

const unforeseen: ReadonlySet<string> = new Set(['unexpected', 'git-failed', 'store-failed'])

const firstWords: ReadonlySet<string> = new Set(
  chatCommands.flatMap(({ name, aliases = [] }) => [name, ...aliases].map((words) => words.split(' ')[0] ?? words)),
)

/** Coppice's own commands hide the repository's of the same name. */
export const isOwnWord = (name: string): boolean => firstWords.has(name)

const answerTo = async (
  context: ConversationsContext,
  request: ChatRequest,
  view: View,
  notices: (Notice | string)[],
): Promise<string> => {
  const parsed = parseWith(chatGrammar, wordsOf(request.text))
  switch (parsed.kind) {
    case 'version':
      return helpText(undefined, chatCommands, view)
    case 'help':
      return helpText(parsed.of, chatCommands, view)
    case 'command':
      return execute(context, request, parsed, view, notices)
  }
}

const wordsOf = (text: string): string[] => {
  const [name, rest = ''] = [nameIn(text), called.exec(text)?.[2]]
  if (verbatim.has(name)) return rest === '' ? [name] : [name, '--', rest]
  return [name, ...splitWords(rest)]
}

const execute = async (
  context: ConversationsContext,
  { conversation, hints = {}, controls, signal }: ChatRequest,
  { row, words, values }: { row: CommandRow; words: readonly string[]; values: Values },
  view: View,
  notices: (Notice | string)[],
): Promise<string> => {
  const { reach } = capabilitiesOf(await context.platforms(), conversation.platform)
  const call: Call = {
    words,
    values,
    codebase: undefined,
    cwd: undefined,
    chat: { conversation, hints, reach, controls, context, grammar: chatGrammar },
    signal,
    open: async () => ({
      context: context.isolation,
      environments: context.environments,
      fleet: context.fleet,
      keepSpares: context.keepSpares,
      platforms: context.platforms,
      databaseName: context.isolation.store.engine,
    }),
    notice: (notice) => notices.push(notice),
  }
  const answered = await (await row.load()).execute(call)
  return [answered.text(view), ...notesOf(notices, view)].filter((part) => part !== '').join('\n')
}

/** The repository's own command. If unknown, suggests the nearest one. */
const ownCommand = async (
  context: ConversationsContext,
  { conversation, text, signal }: ChatRequest,
  name: string,
): Promise<ChatAnswer | undefined> => {
  const codebase = await boundCodebase({ context: context.isolation }, { conversation })
  const own = codebase && (await repoCommandsOf(context, codebase, { signal }))
  const command = own?.commands.get(name)
  if (command !== undefined) {
    return { kind: 'run', command, prompt: promptOf(command, (called.exec(text)?.[2] ?? '').trim()) }
  }
  const problem = own?.problems.get(name)
  if (problem !== undefined) throw problem
  const guess = nearest(name, [...firstWords, ...(own?.commands.keys() ?? [])])
  throw usage(
    `unknown command "/${name}"`,
    remedy`${guess === undefined ? '' : remedy`did you mean ${shell(`/${guess}`)}? `}Run ${coppice('help')} for a list of commands`,
  )
}

/** A chat shows about a hundred characters without scrolling. */
export const viewOf = ({ isolation }: ConversationsContext): View => ({
  paint: markdown,
  now: isolation.clock(),
  userHome: isolation.programEnvironment['HOME'],
  commandText: chatCommandText,
  columns: 100,
  chat: true,
  redact: isolation.secrets.redactKnown,
})
