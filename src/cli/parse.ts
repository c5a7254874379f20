import { type Grammar, type Parsed, parseWith } from '../conversations/commands/parse.ts'
import { commands, everywhere } from './table.ts'

/** Which command of the command line, with which words and options. */
export const parse = (argv: readonly string[]): Parsed => parseWith(grammar, argv)

const grammar: Grammar = {
  rows: commands,
  everywhere,
  say: (command) => `coppice ${command}`,
  help: (name) => ['coppice', ...(name === undefined ? [] : [name]), '--help'].join(' '),
}
