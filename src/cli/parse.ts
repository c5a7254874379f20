import { type Grammar, type Parsed, parseWith } from '../conversations/commands/parse.ts'
import { type CliRow, commands, everywhere } from './table.ts'

/** Which command of the command line, with which words and options. */
export const parse = (argv: readonly string[]): Parsed<CliRow> => parseWith(grammar, argv)

const grammar: Grammar<CliRow> = {
  rows: commands,
  everywhere,
  say: (command) => `coppice ${command}`,
  help: (name) => ['coppice', ...(name === undefined ? [] : [name]), '--help'].join(' '),
}
