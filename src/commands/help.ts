import { isAppError } from '../domain/errors.ts'
import { type RepoCommands, repoCommandsOf } from './repo-commands.ts'
import { type Call, type CommandRow, type CommandWords, command } from './command.ts'
import { boundCodebase } from './target.ts'
import { onlyInChat } from './only-in-chat.ts'
import { parseWith } from './grammar/parse.ts'
import { code, printable, type View } from './views/view.ts'

export type HelpResult = {
  /** A command, a group, or all. */
  readonly of: CommandWords | string | undefined
  readonly commands: readonly CommandRow[]
  readonly codebase: string | undefined
  readonly own: RepoCommands | undefined
}

const run = async (call: Call): Promise<HelpResult> => {
  const { grammar } = onlyInChat(call, 'help')
  const parsed = parseWith(grammar, [...call.words, '--help'])
  const of = parsed.kind === 'help' ? parsed.of : undefined
  const own = of === undefined ? await ownCommands(call) : { codebase: undefined, own: undefined }
  return { of, commands: grammar.rows, ...own }
}

/** Help must work even if the repository can't be read. */
const ownCommands = async (call: Call): Promise<Pick<HelpResult, 'codebase' | 'own'>> => {
  const chat = onlyInChat(call, 'help')
  const codebase = await boundCodebase(await call.open(), chat)
  if (codebase === undefined) return { codebase: undefined, own: undefined }
  try {
    return { codebase: codebase.name, own: await repoCommandsOf(chat.context, codebase, { signal: call.signal }) }
  } catch (error) {
    if (!isAppError(error) || isAppError(error, 'cancelled')) throw error
    return { codebase: codebase.name, own: { commands: new Map(), problems: new Map([['', error]]) } }
  }
}

const toText = ({ of, commands, codebase, own }: HelpResult, view: View): string => {
  if (of !== undefined && typeof of !== 'string') return helpFor(of, view)
  const rows = commands.filter(({ name }) => of === undefined || name.startsWith(`${of} `))
  const lines = rows.map(({ name, usage, summary }) => described(`/${name} ${usage}`, summary, view))
  if (of !== undefined) return [...lines, '', `For details: ${code(`/help ${of} <command>`, view)}`].join('\n')
  return [
    "Anything that isn't a command goes to the agent, which works in its own worktree.",
    '',
    view.paint('bold', 'Commands'),
    ...lines,
    ...ownLines(codebase, own, view),
    '',
    `For details: ${code('/help <command>', view)}`,
  ].join('\n')
}

const ownLines = (codebase: string | undefined, own: RepoCommands | undefined, view: View): string[] => {
  if (own === undefined || own.commands.size + own.problems.size === 0) return []
  return [
    '',
    view.paint('bold', `Commands from ${codebase ?? 'the repository'}`),
    ...[...own.commands.values()].map(({ name, description }) =>
      described(`/${name} …`, printable(description ?? ''), view),
    ),
    ...[...own.problems].map(([name, problem]) =>
      name === ''
        ? `- couldn't be read: ${printable(problem.message)}`
        : described(`/${name}`, `can't be used: ${printable(problem.message)}`, view),
    ),
  ]
}

/** Generated from the table. */
export const helpFor = (row: CommandWords, view: View): string => {
  const options = Object.entries(row.options).map(([name, { value, summary }]) =>
    described(`--${name}${value === undefined ? '' : ` <${value}>`}`, summary, view),
  )
  const examples = row.examples.map((line) => `- ${code(line.replace(/^coppice /, '/'), view)}`)
  return [
    `${code(`/${row.name} ${row.usage}`.trimEnd(), view)}: ${row.summary}.`,
    ...(options.length === 0 ? [] : ['', view.paint('bold', 'Options'), ...options]),
    ...(examples.length === 0 ? [] : ['', view.paint('bold', 'Examples'), ...examples]),
  ].join('\n')
}

const described = (name: string, summary: string, view: View): string =>
  `- ${code(name.trimEnd(), view)}${summary === '' ? '' : ` ${summary}`}`

export const help = command<HelpResult>({
  run,
  toText,
  toJson: ({ of, commands, own }) => ({
    of: of === undefined || typeof of === 'string' ? (of ?? null) : of.name,
    commands: commands.map(({ name, usage, summary }) => ({ name, usage, summary })),
    own: [...(own?.commands.values() ?? [])].map(({ name, description }) => ({
      name,
      description: description ?? null,
    })),
  }),
})

/** Help for a group or command called with `--help`, or without its subcommand. */
export const helpText = (of: HelpResult['of'], commands: readonly CommandRow[], view: View): string =>
  toText({ of, commands, codebase: undefined, own: undefined }, view)
