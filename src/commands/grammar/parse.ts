/*
 * Reading a command. In: words, and the rows of a command table. Out: the command with its options, a request for help,
 * or a usage error.
 */
import { parseArgs } from 'node:util'
import type { AppError } from '../../domain/errors.ts'
import type { CommandWords, Grammar, Values } from '../command.ts'
import { nearest } from './suggest.ts'
import { usage } from './usage.ts'
import { type Remedy, remedy, shell } from '../../domain/remedy.ts'

export type Parsed<Row extends CommandWords = CommandWords> =
  | { readonly kind: 'version' }
  /** For one command, a group, or all. */
  | { readonly kind: 'help'; readonly of: Row | string | undefined }
  | { readonly kind: 'command'; readonly row: Row; readonly words: readonly string[]; readonly values: Values }

/** The command with its arguments and options. Throws `usage` errors that say what to do instead. */
export const parseWith = <Row extends CommandWords>(grammar: Grammar<Row>, argv: readonly string[]): Parsed<Row> => {
  const words = leadingWords(grammar, argv)
  if (words.length === 0) return withoutCommand(grammar, argv)
  const called = findCalled(grammar, words)
  if (called === undefined) return withoutRow(grammar, argv, words)
  return withRow(grammar, argv, called)
}

/** As in `item import github`. */
const MOST_WORDS = 3

/** The words before the command's own arguments. `--home x worktree list` is valid. */
const leadingWords = ({ globalOptions }: Grammar, argv: readonly string[]): string[] => {
  const words: string[] = []
  for (let i = 0; i < argv.length && words.length < MOST_WORDS; i++) {
    const arg = argv[i] ?? ''
    if (arg === '--') break
    if (!arg.startsWith('-')) words.push(arg)
    // Skip global options and their values; the command's own options aren't known yet.
    else if (globalOptions[arg.slice(2)]?.type === 'string') i++
  }
  return words
}

type Called<Row> = { readonly row: Row; readonly by: readonly string[] }

/** The longest matching name: `codebase list` isn't the codebase `list`. */
const findCalled = <Row extends CommandWords>(
  { rows }: Grammar<Row>,
  words: readonly string[],
): Called<Row> | undefined => {
  const fitting = rows.flatMap((row) =>
    [row.name, ...(row.aliases ?? [])]
      .map((name) => ({ row, by: name.split(' ') }))
      .filter(({ by }) => by.every((part, i) => part === words[i])),
  )
  return fitting.toSorted((a, b) => b.by.length - a.by.length)[0]
}

const withoutCommand = (grammar: Grammar, argv: readonly string[]): Parsed<never> => {
  if (argv.some((arg) => arg === '--version' || arg === '-V')) return { kind: 'version' }
  const { values } = read(grammar, argv, {}, undefined)
  if (values['help'] === true || argv.length === 0) return { kind: 'help', of: undefined }
  throw usage('missing command', listAll(grammar))
}

const withoutRow = <Row extends CommandWords>(
  grammar: Grammar<Row>,
  argv: readonly string[],
  words: readonly string[],
): Parsed<Row> => {
  const [first = ''] = words
  const names = shownNames(grammar)
  if (first === 'help') return helpAbout(grammar, read(grammar, argv, {}, undefined).positionals.slice(1))
  const group = groupOf(names, words)
  if (group !== undefined) {
    const word = words[group.split(' ').length]
    if (word === undefined || argv.includes('--help') || argv.includes('-h')) return { kind: 'help', of: group }
    throw unknownMember(grammar, group, word)
  }
  const elsewhere = grammar.elsewhere?.(first)
  if (elsewhere !== undefined) throw usage(`unknown command ${quoted(grammar, first)}`, elsewhere)
  const firsts = [...new Set(names.map((name) => name.split(' ')[0] ?? name))]
  // People type `coppice list` and `coppice create`.
  const meant = names.find((name) => name.split(' ')[1] === first)
  throw unknownCommand(grammar, first, nearest(first, firsts) ?? meant, undefined)
}

const unknownMember = (grammar: Grammar, group: string, word: string): AppError => {
  const at = group.split(' ').length
  const within = shownNames(grammar).filter((name) => name.startsWith(`${group} `))
  const guess = nearest(word, [...new Set(within.map((name) => name.split(' ')[at] ?? ''))])
  return unknownCommand(grammar, `${group} ${word}`, guess && `${group} ${guess}`, group)
}

const shownNames = ({ rows }: Grammar): readonly string[] =>
  rows.filter(({ hidden }) => hidden !== true).map(({ name }) => name)

/** The longest command name that these words begin with: `item import` before `item`. */
const groupOf = (names: readonly string[], words: readonly string[]): string | undefined =>
  words
    .map((_, i) => words.slice(0, i + 1).join(' '))
    .findLast((group) => names.some((name) => name.startsWith(`${group} `)))

/** `help worktree` shows the group, `help worktree create` the command. */
const helpAbout = <Row extends CommandWords>(grammar: Grammar<Row>, words: readonly string[]): Parsed<Row> => {
  if (words.length === 0) return { kind: 'help', of: undefined }
  const called = findCalled(grammar, words)
  return called === undefined ? withoutRow(grammar, words, words) : { kind: 'help', of: helpOf(grammar, called) }
}

/** `coppice fleet` is short for `fleet status`, but its help is that of the group. */
const helpOf = <Row extends CommandWords>(grammar: Grammar, { row, by }: Called<Row>): Row | string =>
  groupOf(shownNames(grammar), by) === by.join(' ') ? by.join(' ') : row

const withRow = <Row extends CommandWords>(
  grammar: Grammar<Row>,
  argv: readonly string[],
  called: Called<Row>,
): Parsed<Row> => {
  const { row, by } = called
  const { values, positionals } = read(grammar, argv, row.options, row)
  const of = helpOf(grammar, called)
  if (values['help'] === true) return { kind: 'help', of }
  const words = positionals.slice(by.length)
  const [least, most] = row.words
  const help = remedyFor(grammar, row)
  const [tooMuch] = words.slice(most)
  if (words.length < least)
    throw usage(`missing required argument: ${argumentsOf(row)[words.length] ?? row.usage}`, help)
  if (tooMuch !== undefined && most === 0 && typeof of === 'string') throw unknownMember(grammar, of, tooMuch)
  if (tooMuch !== undefined) throw usage(`unexpected argument ${JSON.stringify(tooMuch)}`, help)
  return { kind: 'command', row, words, values }
}

const read = (
  grammar: Grammar,
  argv: readonly string[],
  options: CommandWords['options'],
  row: CommandWords | undefined,
): { values: Values; positionals: string[] } => {
  const all = { ...grammar.globalOptions, ...options }
  const config = Object.fromEntries(
    Object.entries(all).map(([name, { type, multiple, short }]) => [
      name,
      { type, ...(multiple && { multiple }), ...(short !== undefined && { short }) },
    ]),
  )
  try {
    return parseArgs({ args: [...argv], options: config, allowPositionals: true, strict: true })
  } catch (error) {
    throw optionProblem(error, all, remedyFor(grammar, row))
  }
}

const optionProblem = (error: unknown, known: Grammar['globalOptions'], help: Remedy): AppError => {
  const message = error instanceof Error ? error.message : String(error)
  const given = /Unknown option '(-{1,2}[^']*)'/.exec(message)?.[1]
  if (given === undefined) return valueProblem(message, known, help)
  const guess = nearest(given.replace(/^-+/, ''), Object.keys(known))
  return usage(`unknown option ${given}`, guess === undefined ? help : `did you mean \`--${guess}\`?`)
}

/** Rewords Node's errors about a missing or unexpected option value. */
const valueProblem = (message: string, known: Grammar['globalOptions'], help: Remedy): AppError => {
  const name = /Option '(?:-\w, )?--([\w-]+)/.exec(message)?.[1]
  if (name === undefined) return usage(message.split(/[.\n]/)[0] ?? message, help)
  const called = known[name]?.value ?? 'value'
  if (message.includes('does not take an argument')) return usage(`--${name} doesn't take a value`, help)
  return message.includes('ambiguous')
    ? usage(
        `--${name} needs a value, but the next argument looks like an option`,
        `to pass it anyway, use --${name}=<${called}>`,
      )
    : usage(`--${name} needs a value`, `usage: --${name} <${called}>`)
}

const unknownCommand = (
  grammar: Grammar,
  words: string,
  guess: string | undefined,
  group: string | undefined,
): AppError =>
  usage(
    `unknown command ${quoted(grammar, words)}`,
    guess === undefined ? listAll(grammar, group) : remedy`did you mean ${shell(grammar.commandText(guess))}?`,
  )

/** `foo` on the command line, `/foo` in a chat. */
const quoted = ({ commandText }: Grammar, words: string): string =>
  JSON.stringify(commandText(words).replace(/^coppice /, ''))

/** `<path or name>` is one argument. */
const argumentsOf = ({ usage: text }: CommandWords): readonly string[] =>
  text.match(/<[^<>]{1,80}>|[^\s<>]{1,80}/g) ?? []

const listAll = ({ help }: Grammar, group?: string): Remedy => remedy`run ${shell(help(group))} for a list of commands`

const remedyFor = (grammar: Grammar, row: CommandWords | undefined): Remedy =>
  row === undefined ? listAll(grammar) : remedy`run ${shell(grammar.help(row.name))} for usage`
