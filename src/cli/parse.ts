import { parseArgs } from 'node:util'
import { AppError } from '../domain/errors.ts'
import type { CommandRow, Values } from './command.ts'
import { nearest } from './suggest.ts'
import { commands, everywhere } from './table.ts'

export type Parsed =
  | { readonly kind: 'version' }
  /** Of one command, of a group of them, or of all. */
  | { readonly kind: 'help'; readonly of: CommandRow | string | undefined }
  | { readonly kind: 'command'; readonly row: CommandRow; readonly words: readonly string[]; readonly values: Values }

/** Which command, with which words and options. Whatever is wrong is an error `usage` that names what is right. */
export const parse = (argv: readonly string[]): Parsed => {
  const words = leadingWords(argv)
  if (words.length === 0) return withoutCommand(argv)
  const row = commands.find(({ name }) => isCalled(name, words))
  if (row === undefined) return withoutRow(argv, words)
  return withRow(argv, row)
}

/** The words before the command's own arguments: `--home x worktree list` is fine too. */
const leadingWords = (argv: readonly string[]): string[] => {
  const words: string[] = []
  for (let i = 0; i < argv.length && words.length < 2; i++) {
    const arg = argv[i] ?? ''
    if (arg === '--') break
    if (!arg.startsWith('-')) words.push(arg)
    // Options in between, with their values; those of a command are known only after it is.
    else if (everywhere[arg.slice(2)]?.type === 'string') i++
  }
  return words
}

const isCalled = (name: string, words: readonly string[]): boolean =>
  name.split(' ').every((part, i) => part === words[i])

const withoutCommand = (argv: readonly string[]): Parsed => {
  if (argv.some((arg) => arg === '--version' || arg === '-V')) return { kind: 'version' }
  const { values } = read(argv, {}, undefined)
  if (values['help'] === true || argv.length === 0) return { kind: 'help', of: undefined }
  throw usage('a command is missing', '`coppice --help` shows all of them')
}

const withoutRow = (argv: readonly string[], [first = '', second]: readonly string[]): Parsed => {
  const names = commands.filter(({ hidden }) => hidden !== true).map(({ name }) => name)
  const group = names.filter((name) => name.startsWith(`${first} `))
  if (first === 'help') return helpAbout(read(argv, {}, undefined).positionals.slice(1))
  if (group.length > 0 && (second === undefined || argv.includes('--help') || argv.includes('-h'))) {
    return { kind: 'help', of: first }
  }
  if (group.length > 0) {
    const guess = nearest(`${first} ${second}`, group)
    throw unknown(`coppice ${first} ${second}`, guess ?? undefined, `\`coppice ${first} --help\` shows what there is`)
  }
  const firsts = [...new Set(names.map((name) => name.split(' ')[0] ?? name))]
  // `coppice list` and `coppice create` are what the hand types.
  const meant = names.find((name) => name.split(' ')[1] === first)
  throw unknown(`coppice ${first}`, nearest(first, firsts) ?? meant, '`coppice --help` shows what there is')
}

/** `help worktree` is about the group, `help worktree create` about the command. */
const helpAbout = (words: readonly string[]): Parsed => {
  const [first] = words
  const row = commands.find(({ name }) => isCalled(name, words))
  if (first === undefined || row !== undefined) return { kind: 'help', of: row }
  return withoutRow(words, words)
}

const withRow = (argv: readonly string[], row: CommandRow): Parsed => {
  const { values, positionals } = read(argv, row.options, row)
  if (values['help'] === true) return { kind: 'help', of: row }
  const words = positionals.slice(row.name.split(' ').length)
  const [least, most] = row.words
  if (words.length < least) throw usage(`coppice ${row.name} needs ${row.usage.split(' ')[0]}`, remedyFor(row))
  if (words.length > most) throw usage(`${JSON.stringify(words[most])} is one word too many`, remedyFor(row))
  return { kind: 'command', row, words, values }
}

const read = (
  argv: readonly string[],
  options: CommandRow['options'],
  row: CommandRow | undefined,
): { values: Values; positionals: string[] } => {
  const all = { ...options, ...everywhere }
  const config = Object.fromEntries(
    Object.entries(all).map(([name, { type, multiple, short }]) => [
      name,
      { type, ...(multiple && { multiple }), ...(short !== undefined && { short }) },
    ]),
  )
  try {
    return parseArgs({ args: [...argv], options: config, allowPositionals: true, strict: true })
  } catch (error) {
    throw optionProblem(error, Object.keys(all), row)
  }
}

const optionProblem = (error: unknown, known: readonly string[], row: CommandRow | undefined): AppError => {
  const message = error instanceof Error ? error.message : String(error)
  const given = /Unknown option '(-{1,2}[^']*)'/.exec(message)?.[1]
  if (given === undefined) return valueProblem(message, row)
  const guess = nearest(given.replace(/^-+/, ''), known)
  return unknown(`the option ${given}`, guess === undefined ? undefined : `--${guess}`, remedyFor(row))
}

/** Node's own sentences about an option that wants a value or has one too many, in ours. */
const valueProblem = (message: string, row: CommandRow | undefined): AppError => {
  const name = /Option '(?:-\w, )?--([\w-]+)/.exec(message)?.[1]
  if (name === undefined) return usage(message.split(/[.\n]/)[0] ?? message, remedyFor(row))
  const called = { ...row?.options, ...everywhere }[name]?.value ?? 'value'
  if (message.includes('does not take an argument')) return usage(`--${name} takes no value`, remedyFor(row))
  return message.includes('ambiguous')
    ? usage(
        `--${name} needs a value, and what follows it looks like an option`,
        `if it is meant: --${name}=<${called}>`,
      )
    : usage(`--${name} needs a value`, `give it: --${name} <${called}>`)
}

const unknown = (what: string, guess: string | undefined, otherwise: string): AppError =>
  usage(
    `there is no ${what.startsWith('the ') ? what.slice(4) : `command \`${what}\``}`,
    guess === undefined ? otherwise : `did you mean \`${guess.startsWith('-') ? guess : `coppice ${guess}`}\`?`,
  )

export const usage = (message: string, remedy: string): AppError => new AppError('usage', message, { remedy })

const remedyFor = (row: CommandRow | undefined): string =>
  row === undefined ? '`coppice --help` shows what there is' : `\`coppice ${row.name} --help\` shows how it is used`
