import type { Grammar } from '../commands/command.ts'
import { type Parsed, parseWith } from '../commands/grammar/parse.ts'
import { chatOnly } from '../commands/table.ts'
import { type CliRow, commands, globalOptions } from './table.ts'
import { coppice, remedy } from '../domain/remedy.ts'

/** The command, with its arguments and options. */
export const parse = (argv: readonly string[]): Parsed<CliRow> => parseWith(grammar, argv)

const grammar: Grammar<CliRow> = {
  rows: commands,
  globalOptions: globalOptions,
  commandText: (command) => `coppice ${command}`,
  elsewhere: (word) =>
    chatOnly.some(({ name }) => name === word)
      ? remedy`send it to a conversation: ${coppice(`chat "/${word}" --conversation <id>`)}`
      : undefined,
  help: (name) => ['coppice', ...(name === undefined ? [] : [name]), '--help'].join(' '),
}
