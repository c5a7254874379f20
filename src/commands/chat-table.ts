import type { CommandRow, Grammar } from './command.ts'
import { chatOnly, firstWord, grouped, shared } from './table.ts'

/** A shared command in its chat form. */
const inChat = (row: CommandRow): CommandRow => {
  const { options, atOnce: _atOnce, verbatim: _verbatim, ...form } = row.chat ?? {}
  const kept = Object.entries(row.options).filter(([name]) => options === undefined || options.includes(name))
  // Aliases are for chats only: `coppice codebases` is `/codebases` there anyway.
  return { ...row, aliases: [], ...form, options: Object.fromEntries(kept) }
}

/** All chat commands, in help order. */
export const chatCommands: readonly CommandRow[] = grouped([...chatOnly, ...shared].map(inChat))

/** First words of the commands answered at once, even while the agent works. */
export const atOnce: ReadonlySet<string> = new Set(
  chatCommands.filter(({ chat }) => chat?.atOnce === true).map(({ name }) => firstWord(name)),
)

/** Commands that take the rest of the line as it was typed. */
export const verbatim: ReadonlySet<string> = new Set(
  chatCommands.filter(({ chat }) => chat?.verbatim === true).map(({ name }) => name),
)

/** `coppice worktree list` as `/worktree list`. Commands a chat doesn't have stay as they are. */
export const chatCommandText = (command: string): string => {
  for (const { name, aliases = [] } of chatCommands) {
    for (const words of [name, ...aliases]) {
      if (command === words || command.startsWith(`${words} `)) {
        // `codebase add <path or URL>`: match the longer name, not the codebase `add`.
        if (name === 'codebase' && /^codebase (?:add|list|remove|trust)\b/.test(command)) continue
        // Chats can't name server paths.
        if (/^codebase add <(?:new )?path>/.test(command)) continue
        return `/${name}${command.slice(words.length)}`
      }
    }
  }
  return `coppice ${command}`
}

export const chatGrammar: Grammar<CommandRow> = {
  rows: chatCommands,
  globalOptions: { help: { type: 'boolean', short: 'h', summary: 'show this help' } },
  commandText: (command) => `/${command}`,
  help: (name) => ['/help', ...(name === undefined ? [] : [name])].join(' '),
}
