/*
 * Commands, each implemented once. In: a call from a chat, the command line or the HTTP API. Out: a typed result, which
 * the command's own file turns into text and JSON.
 */
import type { AgentAnswer, QuestionReply, ReadReply } from '../agents/question.ts'
import type { IsolationHints } from '../domain/hints.ts'
import type { Notice } from '../domain/notice.ts'
import type { Remedy } from '../domain/remedy.ts'
import type { LoadPlatforms, Reach } from '../domain/platform-capabilities.ts'
import type { FleetContext } from '../fleet/context.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { Environments } from '../isolation/environments.ts'
import type { Conversation } from '../store/store.ts'
import type { RunsContext } from '../runs/context.ts'
import type { Stopped } from '../runs/stop-run.ts'
import type { RepoCommandCache } from './repo-commands.ts'
import type { View } from './views/view.ts'

/** One row of the command table. Its code is loaded on call. */
export type CommandRow<C extends Call = Call> = CommandWords & { readonly load: () => Promise<LoadedCommand<C>> }

/** Everything about a command but its code. */
export type CommandWords = {
  /** The words that call it: `worktree create`. */
  readonly name: string
  /** Alternative names. */
  readonly aliases?: readonly string[]
  /** Its arguments. */
  readonly usage: string
  readonly summary: string
  /** What --help adds to the summary. */
  readonly details?: string
  readonly options: Readonly<Record<string, OptionRow>>
  /** Minimum and maximum number of arguments. */
  readonly words: readonly [least: number, most: number]
  readonly examples: readonly string[]
  /** Only for Coppice itself; not in the help. */
  readonly hidden?: true
  /** Where the chat form differs. A command without it isn't available in chats. */
  readonly chat?: ChatForm
}

export type ChatForm = Partial<Pick<CommandWords, 'name' | 'aliases' | 'usage' | 'summary' | 'words' | 'examples'>> & {
  /** The options a chat accepts (default: all). */
  readonly options?: readonly string[]
  /** Answered at once; other commands wait until the agent is done. */
  readonly atOnce?: true
  /** What follows is one argument, as typed: quotes and dashes mean nothing. */
  readonly verbatim?: true
}

export type OptionRow = {
  readonly type: 'string' | 'boolean'
  readonly multiple?: true
  readonly short?: string
  /** The value's placeholder in the help. */
  readonly value?: string
  readonly summary: string
}

export type Values = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>

/** Dependencies of commands, opened on first use: `--help` needs none of it. */
export type Workplace = {
  readonly context: IsolationContext
  /** Lazy: read-only commands don't need it. */
  readonly environments: () => Promise<Environments>
  /** Lazy, because only the fleet's commands need it. */
  readonly fleet: () => Promise<FleetContext>
  /** Prepares spares in the background. Never throws or blocks. */
  readonly keepSpares: (codebaseId: string) => void
  readonly platforms: LoadPlatforms
  readonly databaseName: string
}

export type Call = {
  readonly words: readonly string[]
  readonly values: Values
  /** `--codebase` */
  readonly codebase: string | undefined
  /** The current directory; undefined in a chat. */
  readonly cwd: string | undefined
  /** Set if a conversation is calling. */
  readonly chat?: ChatCall
  readonly signal: AbortSignal
  readonly open: () => Promise<Workplace>
  /** Shown beside the result: offline, diverged, files not restored. A string is shown as it is. */
  readonly notice: (notice: Notice | string) => void
}

export type ChatCall = {
  readonly conversation: Conversation
  /** What the platform said with this message. */
  readonly hints: IsolationHints
  readonly reach: Reach
  readonly controls: ChatControls
  readonly context: ChatContext
  /** All chat commands, for the help. */
  readonly grammar: Grammar<CommandRow>
}

export type ChatContext = Pick<RunsContext, 'isolation' | 'agents'> & { readonly repoCommands: RepoCommandCache }

/** How a command can act on its conversation, beside replying. */
export type ChatControls = {
  /** Stops its run. */
  stop(): Promise<Stopped>
  /** Picks up newly recorded messages. */
  wake(): void
  /** Answers the running agent's question. */
  answer?(reply: QuestionReply): QuestionOutcome
}

export type QuestionOutcome =
  | { readonly kind: 'answered'; readonly answer: AgentAnswer }
  | { readonly kind: 'nothing-asked' }
  /** The reply was to another question, which has been answered or withdrawn. */
  | { readonly kind: 'other-question' }
  | Exclude<ReadReply, { kind: 'answer' }>

/** The commands of one surface (chat or CLI), and how to write them. */
export type Grammar<Row extends CommandWords = CommandWords> = {
  readonly rows: readonly Row[]
  /** Accepted by every command. */
  readonly globalOptions: Readonly<Record<string, OptionRow>>
  /** `coppice worktree list`, or `/worktree list`. */
  readonly commandText: (command: string) => string
  /** The help command for this command or group; without a name, for all. */
  readonly help: (name?: string) => string
  /** Remedy for a command of the other surface. */
  readonly elsewhere?: (word: string) => Remedy | undefined
}

/** The base of relative paths. */
export const cwdOf = ({ cwd }: Pick<Call, 'cwd'>): string => cwd ?? '/'

/** A command's logic returns a typed result; its text and JSON forms are defined next to it. */
export type Implementation<Result, C extends Call = Call> = {
  readonly run: (call: C) => Promise<Result>
  readonly toText: (result: Result, view: View) => string
  /** With the view for programs: plain text, absolute paths. */
  readonly toJson: (result: Result, view: View) => unknown
  readonly exitCode?: (result: Result) => number
}

/** Hides the result type, so that one table can hold all commands. */
export type LoadedCommand<C extends Call = Call> = { readonly execute: (call: C) => Promise<Answered> }
export type Answered = {
  readonly text: (view: View) => string
  readonly json: (view: View) => unknown
  readonly exitCode: number
}

export const command = <Result, C extends Call = Call>({
  run,
  toText,
  toJson,
  exitCode,
}: Implementation<Result, C>): LoadedCommand<C> => ({
  execute: async (call) => {
    const result = await run(call)
    return {
      text: (view) => toText(result, view),
      json: (view) => toJson(result, view),
      exitCode: exitCode?.(result) ?? 0,
    }
  },
})

export const textOf = (values: Values, name: string): string | undefined => {
  const value = values[name]
  return typeof value === 'string' ? value : undefined
}

export const isSet = (values: Values, name: string): boolean => values[name] === true

export const listOf = (values: Values, name: string): string[] => {
  const value = values[name]
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}
