import type { Change } from '../../conversations/changes.ts'
import { command, textOf } from '../../commands/command.ts'
import { isChatCommand } from '../../conversations/answer-command.ts'
import { exitCodes } from '../../commands/views/failure.ts'
import { usage } from '../../commands/grammar/usage.ts'
import { printable, type View } from '../../commands/views/view.ts'
import { isAppError } from '../../domain/errors.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { resolveCodebase } from '../../isolation/codebases/codebases.ts'
import type { HistoryEntry } from '../../platforms/history.ts'
import { runningServer } from '../../server/record.ts'
import { readToken } from '../../server/token-file.ts'
import type { Exchange } from '../chat/exchange.ts'
import { plainMarkdown } from '../chat/plain-markdown.ts'
import { exchangeThrough } from '../chat/through-server.ts'
import { exchangeHere } from '../chat/without-server.ts'
import type { CliCall } from '../cli-call.ts'
import { coppice, remedy } from '../../domain/remedy.ts'

export type ChatResult = {
  readonly conversationId: string
  readonly isNew: boolean
  readonly answers: readonly HistoryEntry[]
  /** Whether the live view showed it already. */
  readonly wasShown: (answer: HistoryEntry) => boolean
  readonly isCommand: boolean
  /** Ctrl-C: stopping the run was its answer. */
  readonly interrupted: boolean
}

const run = async (call: CliCall): Promise<ChatResult> => {
  const text = call.words.join(' ')
  if (text.trim() === '') throw usage('the message is empty', remedy`usage: ${coppice('chat "fix the login bug"')}`)
  const { context } = await call.open()
  const named = textOf(call.values, 'conversation')
  const conversationId = named ?? `cli-${context.ids().slice(0, 8)}`
  const { watch, wasShown } = liveView(call.live)
  const answers = await exchangeFor(call, context.home)(
    {
      conversationId,
      deliveryId: context.ids(),
      text,
      codebase: await findTargetCodebase(call),
      move: call.codebase !== undefined,
      agent: textOf(call.values, 'agent'),
    },
    watch,
    call.signal,
  )
  const [isNew, interrupted] = [named === undefined, call.signal.aborted]
  return { conversationId, isNew, answers, wasShown, isCommand: isChatCommand(text), interrupted }
}

/** The running server, else ourselves. */
const exchangeFor = (call: CliCall, home: string): Exchange => {
  const server = runningServer(home)
  const token = server === undefined ? undefined : readToken(home)?.token
  return server === undefined || token === undefined
    ? exchangeHere((conversationId) => call.ownEngine(conversationId))
    : exchangeThrough({ url: server.url, token })
}

/** Outside a repository: the conversation's own codebase, or the reply says how to bind one. */
const findTargetCodebase = async (call: CliCall): Promise<string | undefined> => {
  const { context } = await call.open()
  try {
    return (await resolveCodebase(context, { name: call.codebase, cwd: call.cwd, signal: call.signal })).name
  } catch (error) {
    if (call.codebase === undefined && isAppError(error, 'not-a-repository')) return undefined
    throw error
  }
}

type LiveView = {
  readonly watch: (change: Change) => void
  readonly wasShown: (answer: HistoryEntry) => boolean
}

/** Streams the agent's text; notices and tool calls get their own lines. */
const liveView = (live: CliCall['live']): LiveView => {
  if (live === undefined) return { watch: () => undefined, wasShown: () => false }
  const shown = new Set<string>()
  let midLine = false
  let spoken = ''
  const line = (text: string): void => {
    live(`${midLine ? '\n' : ''}${printable(text)}\n`)
    midLine = false
  }
  // The streamed text is the reply, unless the stream started too late.
  const wasSpoken = (text: string): boolean => spoken.trim() !== '' && spoken.trim() === text.trim()
  const watch = (change: Change): void => {
    if (change.type === 'progress' && change.kind === 'tool') line(`  · ${change.text}`)
    if (change.type === 'progress' && change.kind === 'text') {
      const text = printable(change.text)
      spoken += change.text
      live(text)
      midLine = !text.endsWith('\n')
    }
    if (change.type !== 'reply') return
    if (change.role === 'system' || !wasSpoken(change.text)) line(shownText(change))
    shown.add(change.id)
  }
  return { watch, wasShown: ({ id, role, text }) => shown.has(id) || (role === 'agent' && wasSpoken(text)) }
}

/** The agent's text is shown unchanged. */
const shownText = ({ role, text }: Pick<HistoryEntry, 'role' | 'text'>): string =>
  role === 'system' ? plainMarkdown(text) : text

const toText = ({ answers, wasShown, isNew, conversationId, isCommand }: ChatResult, view: View): string => {
  const rest = answers.filter((answer) => !wasShown(answer)).map((answer) => printable(shownText(answer)))
  const goOn = view.commandText(`chat --conversation ${shellWord(conversationId)} "…"`)
  return [...rest, ...(isNew && !isCommand ? [view.paint('dim', `Continue with: ${goOn}`)] : [])].join('\n')
}

export const chat = command<ChatResult, CliCall>({
  run,
  toText,
  toJson: ({ conversationId, answers }) => ({
    conversationId,
    messages: answers.map(({ role, text, at }) => ({ role, text, at: new Date(at).toISOString() })),
  }),
  // A message that no agent answered was refused or failed; the reply says which.
  exitCode: ({ answers, isCommand, interrupted }) => {
    if (interrupted) return exitCodes.interrupted
    return isCommand || answers.some(({ role }) => role === 'agent') ? exitCodes.done : exitCodes.failed
  },
})
