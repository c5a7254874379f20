/*
 * Commands, each implemented once. In: a call from a chat, the command line or the HTTP API. Out: a typed result, which
 * the command's own file turns into text and JSON.
 */
import type { Notice } from '../domain/notice.ts'
import type { Remedy } from '../domain/remedy.ts'
import type { LoadPlatforms, Reach } from '../domain/platform-capabilities.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { Environments } from '../isolation/environments.ts'
import type { Conversation } from '../store/store.ts'
import type { RunsContext } from '../runs/context.ts'
import type { Stopped } from '../runs/stop-run.ts'
import type { RepoCommandCache } from './repo-commands.ts'
import type { View } from './views/view.ts'

/** One row of the command table; a command's code is loaded when it is called. */
export type CommandRow<C extends Call = Call> = CommandWords & { readonly load: () => Promise<LoadedCommand<C>> }

/** Everything about a command but its code. */
export type CommandWords = {
  /** The words that call it: `worktree create`. */
  readonly name: string
  /** Other words that call it too. */
  readonly aliases?: readonly string[]
  /** What comes after the words. */
  readonly usage: string
  readonly summary: string
  /** What --help adds to the summary. */
  readonly details?: string
  readonly options: Readonly<Record<string, OptionRow>>
  /** How many words may follow; more or fewer is wrong usage. */
  readonly words: readonly [least: number, most: number]
  readonly examples: readonly string[]
  /** Called by Coppice itself: in no help text. */
  readonly hidden?: true
  /** How it is called in a chat, as far as that differs; a command without it cannot be called there. */
  readonly chat?: ChatForm
}

export type ChatForm = Partial<Pick<CommandWords, 'name' | 'aliases' | 'usage' | 'summary' | 'words' | 'examples'>> & {
  /** Those of its options that mean something there (default: all). */
  readonly options?: readonly string[]
  /** Answered at once. The others wait until the agent has finished. */
  readonly atOnce?: true
}

export type OptionRow = {
  readonly type: 'string' | 'boolean'
  readonly multiple?: true
  readonly short?: string
  /** How its value is called in the help. */
  readonly value?: string
  readonly summary: string
}

export type Values = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>

/** What a command stands on, made once it is needed: `--help` needs none of it. */
export type Workplace = {
  readonly context: IsolationContext
  /** Loaded when it is asked for: looking needs none. */
  readonly environments: () => Promise<Environments>
  /** Prepares spares in the background. Never fails, never waits. */
  readonly keepSpares: (codebaseId: string) => void
  readonly platforms: LoadPlatforms
  readonly databaseName: string
}

export type Call = {
  readonly words: readonly string[]
  readonly values: Values
  /** `--codebase` */
  readonly codebase: string | undefined
  /** Where the asker stands; in a chat nobody stands anywhere. */
  readonly cwd: string | undefined
  /** Set when it is a conversation that asks. */
  readonly chat?: ChatCall
  readonly signal: AbortSignal
  readonly open: () => Promise<Workplace>
  /** Beside the answer: offline, diverged, what was not brought back. A string is a sentence of the command's own. */
  readonly notice: (notice: Notice | string) => void
}

export type ChatCall = {
  readonly conversation: Conversation
  readonly reach: Reach
  readonly controls: ChatControls
  readonly context: ChatContext
  /** All that can be called there, for the help. */
  readonly grammar: Grammar<CommandRow>
}

export type ChatContext = Pick<RunsContext, 'isolation' | 'agents'> & { readonly repoCommands: RepoCommandCache }

/** What a command can do to the conversation beside answering it. */
export type ChatControls = {
  /** Ends what runs there. */
  stop(): Promise<Stopped>
  /** Messages of the conversation were recorded: they are taken up now. */
  wake(): void
  /** Answers what the agent that runs there asked. */
  answer?(agreed: boolean): 'answered' | 'nothing-asked'
}

/** Which commands there are where somebody speaks, and how they are said there. */
export type Grammar<Row extends CommandWords = CommandWords> = {
  readonly rows: readonly Row[]
  /** Every command takes these. */
  readonly globalOptions: Readonly<Record<string, OptionRow>>
  /** `coppice worktree list`, or `/worktree list`. */
  readonly commandText: (command: string) => string
  /** What shows how this command or group is used; all of them without a name. */
  readonly help: (name?: string) => string
  /** What to do for a command that there is only elsewhere. */
  readonly elsewhere?: (word: string) => Remedy | undefined
}

/** What a relative path is relative to. */
export const cwdOf = ({ cwd }: Pick<Call, 'cwd'>): string => cwd ?? '/'

/** A command's logic answers a typed result; how it is shown to people and to programs stands beside it. */
export type Implementation<Result, C extends Call = Call> = {
  readonly run: (call: C) => Promise<Result>
  readonly toText: (result: Result, view: View) => string
  /** The view is that of a program: plain, with whole paths. */
  readonly toJson: (result: Result, view: View) => unknown
  /** Default: 0. */
  readonly exitCode?: (result: Result) => number
}

/** The result is tied to the ways of showing it, so that the table can hold commands of all types. */
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
